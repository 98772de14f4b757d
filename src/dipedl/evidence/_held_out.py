"""Held-out rows that a budget is measured on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from ..maths.simplex import check_simplex
from ._base import weighted_scores


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of positive weight that neither the density nor the classifier was fitted on.

    Attributes
    ----------
    scores, weights : ndarray, shape (m,)
        Log-densities, -inf for some where the density is zero, and how often each row counts.
    proba : ndarray, shape (m, k)
        Class probabilities.
    labels : ndarray, shape (m,)
        Indices of the true classes.
    source : str
        Where the rows came from.
    """

    scores: np.ndarray
    weights: np.ndarray
    proba: np.ndarray
    labels: np.ndarray
    source: str

    @classmethod
    def checked(
        cls,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None,
        proba: np.ndarray | None,
        y: np.ndarray | None,
        source: str,
    ) -> Self:
        """The rows of what ``CautionBudget.fit`` was given; ValueError names what is wrong."""
        scores, weights = weighted_scores(log_density, sample_weight)
        P, labels = _classified(proba, y, len(log_density), source)
        _require_scores(scores, source)
        kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
        return cls(scores, weights, P[kept], labels[kept], source)

    @property
    def seen(self) -> np.ndarray:
        """Which scores are finite, shape (m,)."""
        return np.asarray(np.isfinite(self.scores))

    def mean(self, values: np.ndarray) -> float:
        """Weighted mean of one value per row."""
        return float(np.average(values, weights=self.weights))

    def upper_mean(self, values: np.ndarray, confidence: float) -> float:
        """Upper confidence limit of the mean of one value per row; the mean at 0.5."""
        mean = self.mean(values)
        error = np.sqrt(self.mean((values - mean) ** 2) / self.weights.sum())
        return float(mean + special.ndtri(confidence) * error)


def _classified(
    proba: np.ndarray | None, y: np.ndarray | None, m: int, source: str
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (m, k) and class indices (m,), checked."""
    if proba is None or y is None:
        raise ValueError(
            "CautionBudget needs proba and y, held-out class probabilities and labels, "
            f"and {source} have none; without a classifier use normalizer=QuantileEvidence()"
        )
    P = np.asarray(proba, dtype=np.float64)
    if P.ndim != 2 or P.shape[0] != m or P.shape[1] < 2:
        raise ValueError(
            f"proba must have shape ({m}, k) with k >= 2, got {P.shape}; "
            "for one class use normalizer=QuantileEvidence()"
        )
    check_simplex("proba", P)
    return P, _indices(np.asarray(y), m, P.shape[1])


def _indices(labels: np.ndarray, m: int, k: int) -> np.ndarray:
    if labels.shape != (m,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"y must hold {m} class indices (int), got {labels.dtype} of shape {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= k:
        raise ValueError(
            f"y must hold class indices 0..{k - 1}, got {labels.min()}..{labels.max()}: "
            "labels that the classifier does not know"
        )
    return labels


def _require_scores(scores: np.ndarray, source: str) -> None:
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any() or not np.isfinite(scores).any():
        shown = scores[bad][0] if bad.any() else "-inf throughout"
        raise ValueError(
            f"log_density must be finite to fit CautionBudget, or -inf for a few rows, got {shown} "
            f"from {source}; use a density with unbounded support"
        )
