"""The classifier of a cell: trained once, a network's weights stored, and given to every method."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ...datasets.splits import Splits
from ...results.receipt import receipt
from ...spec.cells import unfitted
from ..clock import Say, epoch_text
from ..memo import Memoised, Memory
from ..weights import restored, weights_of
from ..work import CellWork


@dataclass(frozen=True, eq=False)
class Given:
    """Inputs of the methods of a cell, to fit on X (n, d) and y (n,)."""

    X: np.ndarray
    y: np.ndarray
    #: Weights of the rows, if any.
    w: np.ndarray | None
    #: Rows and labels to calibrate on, where the classifier is frozen.
    held: tuple[np.ndarray, np.ndarray] | None
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

    def frozen(self, held_out: float) -> Given:
        """The last rows, a share of them, with the classifier as the others make it, frozen."""
        n = len(self.y) - round(held_out * len(self.y))
        w, kept = (None, None) if self.w is None else (self.w[:n], self.w[n:])
        fitted = Memoised(self.recipe, self.memory).fit(self.X[:n], self.y[:n], w)
        given = FrozenEstimator(fitted)
        features = None if self.features is None else given
        rest = replace(self, X=self.X[n:], y=self.y[n:], w=kept, held=None, features=features)
        return replace(rest, estimator=given, fitted=given)


def given(work: CellWork, splits: Splits, say: Say) -> Given:
    """Train the classifier of a cell, or restore it."""
    X, y, cell = splits.X, splits.y, work.unit
    recipe = unfitted(cell.entry, cell.where, cell.seed)
    memory = Memory()
    if cell.entry.frozen:
        network = _network(work, splits, say)
        frozen = FrozenEstimator(Memoised.of(network, memory))
        held = X["validation"], y["validation"]
        w = splits.weights.get("train")
        return Given(X["train"], y["train"], w, held, recipe, frozen, frozen, frozen, memory)
    rows = np.concatenate([X["train"], X["validation"]])
    labels = np.concatenate([y["train"], y["validation"]])
    estimator = Memoised(recipe, memory)
    w = (
        np.concatenate([splits.weights[s] for s in ("train", "validation")])
        if splits.weights
        else None
    )
    fitted = FrozenEstimator(Memoised(recipe, memory).fit(rows, labels, w))
    return Given(rows, labels, w, None, recipe, estimator, fitted, None, memory)


def _network(work: CellWork, splits: Splits, say: Say) -> Any:
    cell, store = work.unit, work.place.store
    key = cell.name, cell.digest, cell.seed
    if not store.has_arrays(*key):
        _train(work, splits, say)
    # also after training: a run that goes on later sees the same object
    weights = store.load(*key)["weights"]
    untrained = unfitted(cell.entry, cell.where, cell.seed)
    return restored(untrained, splits.X["train"], splits.y["train"], weights)


def _train(work: CellWork, splits: Splits, say: Say) -> None:
    """Train the network of a cell, and store its weights, whole or not at all."""
    cell, store = work.unit, work.place.store
    key = cell.name, cell.digest, cell.seed
    checkpoint = store.checkpoint(*key)
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    network = unfitted(cell.entry, cell.where, cell.seed)
    start = time.perf_counter()
    network.fit(
        splits.X["train"],
        splits.y["train"],
        validation=(splits.X["validation"], splits.y["validation"]),
        checkpoint=checkpoint,
        deadline=work.deadline,
        progress=lambda report: say(epoch_text(report)),
    )
    note = {"seconds": round(time.perf_counter() - start, 3), **receipt()}
    store.save_arrays(*key, {"weights": weights_of(network) or {}}, note)
    shutil.rmtree(checkpoint.parent, ignore_errors=True)
