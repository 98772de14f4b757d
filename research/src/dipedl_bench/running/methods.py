"""Methods of a crossed suite: all of a cell in one process, with one classifier on the same rows.

The classifier is fitted once for all of them, or is a trained network, restored from its weights.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from dipedl.dirichlet import concentration_of_samples

from ..datasets.splits import Splits
from ..results.known_truth import distances
from ..results.receipt import receipt
from ..results.scores import score
from ..results.store import Store
from ..spec.build import accepts
from ..spec.plan import Cell, build_method, kinds_of
from ..spec.suite import Method
from .memo import Memory, Seconds, SharedClassifier, as_seconds, weight_argument
from .training import Say, describe_failure, load_splits, restore

Rows = Mapping[str, np.ndarray]
#: The method that is fitted with an unfitted classifier: it needs predictions on held-out rows.
_OURS = "DIPClassifier"


def run_methods(
    cell: Cell, store: Store, deadline: float | None = None, say: Say = lambda text: None
) -> dict[str, str]:
    """Run the methods of a cell that lack a row, and write rows; gives why one has none, by method.

    No method is begun after the deadline. A method that may refuse, and does with a ValueError or a
    TypeError, has rows without numbers.
    """
    splits = load_splits(cell.parts[-1], cell.seed, store)
    inputs = _inputs_of(cell, store, splits)
    scored = {s: rows for s, rows in splits.X.items() if s not in ("train", "validation")}
    # labels, or class probabilities where they are known
    truth = splits.truth
    far = distances(inputs.X, {split: scored[split] for split in truth}) if truth else {}
    targets = {s: {"truth": P, "distance": far[s]} for s, P in truth.items()}
    targets["test"] = {**targets.get("test", {}), "y": splits.y["test"]}
    failed = {}
    missing = store.missing(cell.heads)
    for name, method in cell.methods.items():
        kinds = [row for row in kinds_of(name, method) if row in missing]
        if not kinds:
            continue
        if deadline is not None and time.monotonic() > deadline:
            break
        start = time.perf_counter()
        where = f"{cell.parts[-1].where.partition(':')[0]}: methods.{name}"
        made: dict[str, dict[str, Any]] = {}
        try:
            made = _rows(name, method, where, inputs, scored, targets, cell)
        except Exception as error:
            if method.may_refuse and isinstance(error, ValueError | TypeError):
                empty = {"metrics": {}, "intervals": {}, "refused": str(error)}
                made = dict.fromkeys(kinds, empty)
            else:
                failed[name] = describe_failure(error, method.estimator)
        for row in (row for row in kinds if row in made):
            load = {"load": round(os.getloadavg()[0], 2)}
            store.append(missing[row] | load | receipt() | made[row])
        say(f"{name}: {failed.get(name) or f'{time.perf_counter() - start:.1f} s'}")
    return failed


@dataclass(frozen=True, eq=False)
class MethodInputs:
    """Inputs of the methods of a cell, to fit on X (n, d) and y (n,)."""

    X: np.ndarray
    y: np.ndarray
    #: Weights of the rows, if any.
    w: np.ndarray | None
    #: Rows and labels to calibrate on, where the classifier is frozen.
    calibration: tuple[np.ndarray, np.ndarray] | None
    #: The classifier, unfitted, for methods that train it themselves.
    recipe: Any
    #: For DIPClassifier: the frozen network, or an unfitted classifier, whose predictions it needs
    #: on rows that the classifier did not see.
    estimator: Any
    #: The classifier, frozen, fitted on X and y.
    fitted: Any
    #: The network's features; None where the classifier has none.
    features: Any
    memory: Memory

    def freeze_classifier(self, held_out: float) -> MethodInputs:
        """The last rows, a share of them, with the classifier as the others make it, frozen."""
        n = len(self.y) - round(held_out * len(self.y))
        w, rest_w = (None, None) if self.w is None else (self.w[:n], self.w[n:])
        shared = SharedClassifier(self.recipe, self.memory).fit(self.X[:n], self.y[:n], w)
        fitted = FrozenEstimator(shared)
        features = None if self.features is None else fitted
        rest = replace(self, X=self.X[n:], y=self.y[n:], w=rest_w, calibration=None)
        return replace(rest, features=features, estimator=fitted, fitted=fitted)

    def parts(self, method: Method) -> dict[str, Any]:
        """Classifier and features for the constructor of a method."""
        if method.trains:
            recipe = self.recipe
            names = (name for name in ("backbone", "training") if hasattr(recipe, name))
            return {"estimator": recipe, **{name: getattr(recipe, name) for name in names}}
        if self.features is not None:
            return {"estimator": self.fitted, "features": self.features}
        if method.estimator == _OURS:
            # Its own default standardises; the paper's preset takes inputs as they are.
            own = {"features": StandardScaler()} if method.preset else {}
            return {"estimator": self.estimator, **own}
        return {"estimator": self.fitted, "features": StandardScaler()}


def _inputs_of(cell: Cell, store: Store, splits: Splits) -> MethodInputs:
    """The classifier of a cell, fitted or restored, and the rows for the methods."""
    X, y, part = splits.X, splits.y, cell.parts[-1]
    recipe, memory = part.build(cell.seed), Memory()
    if part.below["classifier"] in cell.parts:
        weights = store.network(*cell.key(part))
        network = restore(part.build(cell.seed), X["train"], y["train"], weights)
        frozen = FrozenEstimator(SharedClassifier.of(network, memory))
        calibration, w = (X["validation"], y["validation"]), splits.weights.get("train")
        labelled = X["train"], y["train"], w, calibration
        return MethodInputs(*labelled, recipe, frozen, frozen, frozen, memory)
    both = ("train", "validation")
    rows, labels = (np.concatenate([of[split] for split in both]) for of in (X, y))
    w = np.concatenate([splits.weights[split] for split in both]) if splits.weights else None
    estimator = SharedClassifier(recipe, memory)
    fitted = FrozenEstimator(memory.fit(recipe, rows, labels, w))
    return MethodInputs(rows, labels, w, None, recipe, estimator, fitted, None, memory)


def _rows(
    name: str,
    method: Method,
    where: str,
    inputs: MethodInputs,
    X: Rows,
    targets: Mapping[str, Rows],
    cell: Cell,
) -> dict[str, dict[str, Any]]:
    """Numbers of each row of a method, fitted and applied to the splits of X, and their cost.

    In the costs, "train" counts all fits of the classifier and all its predictions, as if no method
    had shared them, and "classifier", of that, the fits of the classifier; "predict" the
    probabilities of the test rows, and "score" their uncertainty, beyond that.
    """
    n, memory = len(inputs.y), inputs.memory
    own = inputs if method.held_out is None else inputs.freeze_classifier(method.held_out)
    model = build_method(method, where, random_state=cell.seed, **own.parts(method))
    spent: dict[str, Seconds] = {}
    fitting = memory.fitting
    with _alone(spent, "train", memory):
        options: dict[str, Any] = weight_argument(model, own.w)
        if method.calibrate and own.calibration and accepts(model.fit, "calibration"):
            options["calibration"] = own.calibration
        model.fit(own.X, own.y, **options)
    spent["classifier"] = memory.fitting - fitting
    arrays: dict[str, dict[str, dict[str, np.ndarray]]] = {}
    for split, rows in X.items():
        steps = {} if split != "test" else spent
        shared, uncertainty = _predict(name, model, method, rows, steps, memory)
        shared |= targets.get(split, {})
        # Dirichlets, or those that have mean and variance of samples
        if "truth" in shared and hasattr(model, "predict_dirichlet"):
            shared["concentration"] = np.asarray(model.predict_dirichlet(rows).concentration)
        elif "truth" in shared and hasattr(model, "sample_proba"):
            shared["concentration"] = concentration_of_samples(model.sample_proba(rows))
        for row, u in uncertainty.items():
            arrays.setdefault(row, {})[split] = {**shared, "uncertainty": u}
    sizes = {"train": n, **{split: len(rows) for split, rows in X.items()}}
    common = {"n": sizes, **as_seconds(spent, 4), **_about(model)}
    return {row: score(of, cell.resamples) | common for row, of in arrays.items()}


def _predict(
    name: str,
    model: Any,
    method: Method,
    rows: np.ndarray,
    spent: dict[str, Seconds],
    memory: Memory,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Probabilities of a split, and the uncertainty of each row of the method.

    What the Dirichlet already holds is not computed again.
    """
    bare = method.answers == "classifier_proba"
    dirichlet, scores = None, None
    with _alone(spent, "predict", memory):
        if getattr(model, "has_evidence", False) and not bare:
            P, scores = model.proba_and_scores(rows)
            dirichlet = model.dirichlet_of(P, scores)
            P = dirichlet.mean
        else:
            P = model.classifier_proba(rows) if bare else model.predict_proba(rows)
    uncertainty = {}
    for row, kind in kinds_of(name, method).items():
        with _alone(spent if row == name else {}, "score", memory):
            if bare:
                # One minus the largest, added up: as a difference it is 0 for all confident rows.
                u = np.sort(P, axis=1)[:, :-1].sum(axis=1)
            elif dirichlet is not None and kind == "log_density":
                u = -np.asarray(scores)
            elif dirichlet is not None and kind is not None and hasattr(dirichlet, kind):
                u = getattr(dirichlet, kind)
            else:
                u = model.uncertainty(rows, **({} if kind is None else {"kind": kind}))
        uncertainty[row] = np.asarray(u, dtype=np.float64)
    return {"probabilities": np.asarray(P, dtype=np.float64)}, uncertainty


@contextmanager
def _alone(spent: dict[str, Seconds], step: str, memory: Memory) -> Iterator[None]:
    """Count what passes inside, as if no fit and no prediction of the classifier were shared."""
    # A copy of `here`: the memory adds to its own in place.
    alone, here, own = memory.alone, replace(memory.here), Seconds()
    with own.count():
        yield
    spent[step] = own - (memory.here - here) + (memory.alone - alone)


def _about(model: Any) -> dict[str, Any]:
    """The temperature, and what a selection chose, in words, where the model has them."""
    evidence = getattr(model, "evidence_", None)
    about: dict[str, Any] = {}
    temperature = getattr(getattr(evidence, "calibrator_", None), "temperature_", None)
    if temperature is not None:
        about["temperature"] = float(temperature)
    density: Any = getattr(evidence, "density_", None)
    if hasattr(density, "choice_"):
        about |= {"chosen": str(density.choice_), "runner_up": str(density.runner_up_)}
    return about
