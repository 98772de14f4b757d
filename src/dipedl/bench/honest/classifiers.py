"""The classifiers of a cell: trained once, a network kept on disk, and handed to every method."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..data.splits import Splits
from ..results.receipt import receipt
from ..results.store import Store
from ..run.memo import Memory, Remembered
from ..run.weights import restored, weights_of
from ..spec.build import build
from .study import ClassifierEntry

if TYPE_CHECKING:
    from .plan import Cell

__all__ = ["Given", "given", "keep_network", "restored_network", "unfitted"]

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Given:
    """What the methods of a cell are given.

    Attributes
    ----------
    X, y : ndarray, shapes (n, d) and (n,)
        Rows to fit on.
    held : (X, y) or None
        Rows to calibrate on, where the classifier is frozen.
    recipe : classifier
        Unfitted, for methods that train it themselves.
    estimator : classifier
        For DIPClassifier: the frozen network, or an unfitted classifier, of which it needs answers
        on rows that it did not see.
    fitted : classifier
        Frozen, fitted on X and y.
    features : transformer or None
        The network's features; None where the classifier has none.
    memory : Memory
        Of all fits and answers.
    """

    X: np.ndarray
    y: np.ndarray
    held: tuple[np.ndarray, np.ndarray] | None
    recipe: Any
    estimator: Any
    fitted: Any
    features: Any
    memory: Memory


def unfitted(entry: ClassifierEntry, where: str, seed: int = 0) -> Any:
    """The classifier of an entry; ValueError if a class or an argument does not exist."""
    made = build(entry.estimator, entry.arguments, where, random_state=seed)
    return make_pipeline(StandardScaler(), made) if entry.standardise else made


def given(cell: Cell, splits: Splits, store: Store, say: Say) -> Given:
    """Train the classifier of a cell, or restore it."""
    X, y = splits.X, splits.y
    recipe = unfitted(cell.entry, cell.where, cell.seed)
    memory = Memory()
    if cell.entry.frozen:
        network = _network(cell, splits, store, say)
        frozen = FrozenEstimator(Remembered.of(network, memory))
        held = X["validation"], y["validation"]
        return Given(X["train"], y["train"], held, recipe, frozen, frozen, frozen, memory)
    rows = np.concatenate([X["train"], X["validation"]])
    labels = np.concatenate([y["train"], y["validation"]])
    estimator = Remembered(recipe, memory)
    fitted = FrozenEstimator(Remembered(recipe, memory).fit(rows, labels))
    return Given(rows, labels, None, recipe, estimator, fitted, None, memory)


def keep_network(cell: Cell, network: Any, store: Store, seconds: float) -> None:
    """Write the weights of a trained network, whole or not at all."""
    weights = weights_of(network) or {}
    note = {"seconds": round(seconds, 3), **receipt()}
    store.save_arrays(cell.part, cell.digest, cell.seed, {"weights": weights}, note)


def restored_network(cell: Cell, splits: Splits, store: Store) -> Any:
    """The network whose weights were kept."""
    weights = store.load(cell.part, cell.digest, cell.seed)["weights"]
    untrained = unfitted(cell.entry, cell.where, cell.seed)
    return restored(untrained, splits.X["train"], splits.y["train"], weights)


def _network(cell: Cell, splits: Splits, store: Store, say: Say) -> Any:
    if not store.has_arrays(cell.part, cell.digest, cell.seed):
        checkpoint = _checkpoint(cell, store)
        network = unfitted(cell.entry, cell.where, cell.seed)
        start = time.perf_counter()
        network.fit(
            splits.X["train"],
            splits.y["train"],
            validation=(splits.X["validation"], splits.y["validation"]),
            checkpoint=checkpoint,
            progress=lambda report: say(_line(report)),
        )
        keep_network(cell, network, store, time.perf_counter() - start)
        shutil.rmtree(checkpoint.parent, ignore_errors=True)
    # Also after training: a run that goes on later asks the same object.
    return restored_network(cell, splits, store)


def _checkpoint(cell: Cell, store: Store) -> Path:
    folder = store.arrays_folder(cell.part, cell.digest, cell.seed)
    path = folder.with_name(f".{folder.name}.training") / "checkpoint"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _line(report: Mapping[str, Any]) -> str:
    left = round(report["seconds_left"])
    return f"epoch {report['epoch']}/{report['epochs']}, loss {report['loss']:.4g}, {left} s left"
