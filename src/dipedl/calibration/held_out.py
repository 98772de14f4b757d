"""Predictions on held-out in-distribution rows: what every statistic and threshold comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

__all__ = ["HeldOut", "Origin"]

#: How held-out rows were got: left out of a fit; given apart from it; given apart, but to the fit
#: too; those of the fit itself; or given to the fit of a model whose density came fitted.
Origin = Literal["left out", "given", "given twice", "in-sample", "frozen density"]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions on ID rows that neither the density nor the classifier was fitted on.

    Attributes
    ----------
    scores : ndarray, shape (m,)
        Log-density in nats, or the score of a density that fuses several; -inf where the density
        is zero. Ascending once `sorted`.
    source : str
        Where the rows came from, in words.
    weights : ndarray, shape (m,), or None
        How many inputs each row stands for.
    proba : ndarray, shape (m, k), or None
        Probabilities of the classifier, after its calibrator.
    labels : ndarray, shape (m,), or None
        Indices 0..k-1 of the true classes.
    components : ndarray, shape (m, c), or None
        Scores of the parts of a density that has several.
    component_names : tuple of str
        Their names.
    origin : Origin
        Where the rows came from, as far as guarantees depend on it.
    """

    scores: np.ndarray
    source: str
    weights: np.ndarray | None = None
    proba: Any = None
    labels: Any = None
    components: np.ndarray | None = None
    component_names: tuple[str, ...] = ()
    origin: Origin = "left out"

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(len(self.scores) if self.weights is None else self.weights.sum())

    @property
    def counts(self) -> np.ndarray:
        """The weights, shape (m,); ones without weights."""
        return np.ones(len(self.scores)) if self.weights is None else self.weights

    @property
    def finite(self) -> np.ndarray:
        """Where the score is finite, shape (m,)."""
        return np.asarray(np.isfinite(self.scores))

    @property
    def labelled(self) -> bool:
        """Whether the classifier's probabilities and the true classes are known."""
        return self.proba is not None and self.labels is not None

    @property
    def wrong(self) -> np.ndarray:
        """Where the classifier errs, shape (m,); only if `labelled`."""
        return np.asarray(self.proba.argmax(axis=1) != self.labels)

    def average(self, values: np.ndarray) -> float:
        """Weighted mean of one value per row."""
        return float(np.average(values, weights=self.counts))

    def sorted(self) -> HeldOut:
        """The rows of positive weight, by ascending score."""
        kept = np.arange(len(self)) if self.weights is None else np.flatnonzero(self.weights > 0)
        rows = kept[np.argsort(self.scores[kept], kind="stable")]

        def taken(array: Any) -> Any:
            return None if array is None else array[rows]

        return replace(
            self,
            scores=self.scores[rows],
            weights=taken(self.weights),
            proba=taken(self.proba),
            labels=taken(self.labels),
            components=taken(self.components),
        )
