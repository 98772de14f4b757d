"""Held-out answers on in-distribution data: what every statistic and threshold comes from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["Calibration"]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Answers on ID inputs that the model was not fitted on, in the order of their scores.

    Attributes
    ----------
    scores : ndarray, shape (m,)
        Log-density in nats, or the score of a density that fuses several; ascending.
    source : str
        Where the rows came from.
    weights : ndarray, shape (m,), or None
        How many inputs each stands for.
    proba : ndarray, shape (m, k), or None
        Probabilities of the classifier, after its calibrator.
    labels : ndarray, shape (m,), or None
        Indices 0..k-1 of the true classes.
    components : ndarray, shape (m, c), or None
        Scores of the parts of a density that has several.
    component_names : tuple of str
        Their names.
    """

    scores: np.ndarray
    source: str
    weights: np.ndarray | None = None
    proba: np.ndarray | None = None
    labels: np.ndarray | None = None
    components: np.ndarray | None = None
    component_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(len(self.scores) if self.weights is None else self.weights.sum())

    def sorted(self) -> Calibration:
        """The rows of positive weight, by ascending score."""
        kept = np.arange(len(self)) if self.weights is None else np.flatnonzero(self.weights > 0)
        rows = kept[np.argsort(self.scores[kept], kind="stable")]

        def taken(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[rows]

        return replace(
            self,
            scores=self.scores[rows],
            weights=taken(self.weights),
            proba=taken(self.proba),
            labels=taken(self.labels),
            components=taken(self.components),
        )
