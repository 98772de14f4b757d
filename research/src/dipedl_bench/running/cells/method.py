"""A method of a cell: made, fitted with the cell's classifier, and applied to every split."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from dipedl.inputs import weight_argument
from dipedl.maths.dirichlet import max_prob, uncertainty_of

from ...results.known_truth import of_samples
from ...spec.build import accepts
from ...spec.cells import CellMethod
from ...spec.entries import CrossedMethod
from ..memo import Memory, Spent
from .classifier import Given

#: The method that is fitted with an unfitted classifier: it needs predictions on held-out rows.
_OURS = "DIPClassifier"


class Refusal(Exception):
    """A method said no, and may."""


@dataclass
class Predictions:
    """Predictions of a fitted method by split, for each row of a table, and their cost.

    In `spent`, "train" counts all fits of the classifier and all its predictions, as if no method
    had shared them, and "classifier", of that, the fits of the classifier; "predict <split>" the
    probabilities of a split, and "score <split> <row>" its uncertainty, beyond that.
    """

    probabilities: dict[str, np.ndarray] = field(default_factory=dict)
    uncertainty: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    #: Of a method that gives a Dirichlet, or samples of the probabilities.
    concentration: dict[str, np.ndarray] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def run_method(
    method: CellMethod,
    cell: Given,
    X: Mapping[str, np.ndarray],
    seed: int,
    known: Container[str] = (),
) -> Predictions:
    """Fit a method and apply it to the splits of X: the test rows and every OOD set.

    Of splits whose class probabilities are `known` it says what it says of these.
    Refusal if the method refuses classifier or rows with a ValueError or a TypeError, and may.
    """
    found = Predictions()
    try:
        model = _fitted(method, cell, seed, found)
        for split, rows in X.items():
            _predict(model, method, rows, split, cell.memory, found)
            if split in known and (alpha := _concentration(model, rows)) is not None:
                found.concentration[split] = alpha
    except (ValueError, TypeError) as error:
        if method.entry.may_refuse:
            raise Refusal(str(error)) from error
        raise
    found.about = _about(model)
    return found


def _fitted(method: CellMethod, cell: Given, seed: int, found: Predictions) -> Any:
    entry = method.entry
    cell = cell if entry.held_out is None else cell.frozen(entry.held_out)
    model = method.made(random_state=seed, **_parts(entry, cell))
    fitting = cell.memory.fitting
    with _alone(found, "train", cell.memory):
        held = entry.calibrate and cell.held is not None and accepts(model.fit, "calibration")
        weights = weight_argument(model, cell.w)
        model.fit(cell.X, cell.y, **weights, **({"calibration": cell.held} if held else {}))
    found.spent["classifier"] = cell.memory.fitting - fitting
    return model


def _parts(entry: CrossedMethod, cell: Given) -> dict[str, Any]:
    """Classifier and features for the constructor."""
    if entry.trains:
        names = ("backbone", "training")
        network = {name: getattr(cell.recipe, name) for name in names if hasattr(cell.recipe, name)}
        return {"estimator": cell.recipe, **network}
    if cell.features is not None:
        return {"estimator": cell.fitted, "features": cell.features}
    if entry.estimator == _OURS:
        # Its own default standardises; the paper's preset takes inputs as they are.
        own = {"features": StandardScaler()} if entry.preset else {}
        return {"estimator": cell.estimator, **own}
    return {"estimator": cell.fitted, "features": StandardScaler()}


def _predict(
    model: Any, method: CellMethod, rows: np.ndarray, split: str, memory: Memory, found: Predictions
) -> None:
    bare = method.entry.answers == "classifier_proba"
    dirichlet, scores = None, None
    with _alone(found, f"predict {split}", memory):
        if getattr(model, "has_evidence", False) and not bare:
            P, scores = model.proba_and_scores(rows)
            dirichlet = model.dirichlet_of(P, scores)
            P = dirichlet.mean
        else:
            P = model.classifier_proba(rows) if bare else model.predict_proba(rows)
    found.probabilities[split] = np.asarray(P, dtype=np.float64)
    for row, kind in method.kinds.items():
        with _alone(found, f"score {split} {row}", memory):
            u = max_prob(P) if bare else _uncertainty(model, rows, kind, dirichlet, scores)
        found.uncertainty.setdefault(row, {})[split] = np.asarray(u, dtype=np.float64)


def _concentration(model: Any, rows: np.ndarray) -> np.ndarray | None:
    """Return concentrations of Dirichlets, which have mean and variance of samples, if any."""
    if hasattr(model, "predict_dirichlet"):
        return np.asarray(model.predict_dirichlet(rows).concentration)
    return of_samples(model.sample_proba(rows)) if hasattr(model, "sample_proba") else None


def _uncertainty(
    model: Any, rows: np.ndarray, kind: str | None, dirichlet: Any, scores: Any
) -> np.ndarray:
    """As ``model.uncertainty``; what the Dirichlet already holds is not computed again."""
    if dirichlet is None or kind is None:
        return np.asarray(model.uncertainty(rows, **({} if kind is None else {"kind": kind})))
    return uncertainty_of(
        kind,
        lambda: dirichlet,
        lambda: model.proba_and_scores(rows)[0],
        lambda: np.asarray(scores),
    )


@contextmanager
def _alone(found: Predictions, step: str, memory: Memory) -> Iterator[None]:
    """Count what passes inside, as if no fit and no prediction of the classifier were shared."""
    # A copy of `here`: the memory adds to its own in place.
    alone, here, spent = memory.alone, replace(memory.here), Spent()
    with spent.counted():
        yield
    found.spent[step] = spent - (memory.here - here) + (memory.alone - alone)


def _about(model: Any) -> dict[str, Any]:
    """The temperature, and what a selection chose, in words, where the model has them."""
    evidence = getattr(model, "evidence_", None)
    about: dict[str, Any] = {}
    if (
        temperature := getattr(getattr(evidence, "calibrator_", None), "temperature_", None)
    ) is not None:
        about["temperature"] = float(temperature)
    density: Any = getattr(evidence, "density_", None)
    if hasattr(density, "choice_"):
        about |= {"chosen": str(density.choice_), "runner_up": str(density.runner_up_)}
    return about
