"""Checks of the held-out rows that a budget is measured on."""

from __future__ import annotations

import numpy as np

from ..calibration.held_out import HeldOut
from ..maths.checks import check_simplex, class_indices
from ._base import weighted_scores


def checked_rows(
    log_density: np.ndarray,
    sample_weight: np.ndarray | None,
    proba: np.ndarray | None,
    y: np.ndarray | None,
    source: str,
) -> HeldOut:
    """The rows of positive weight that ``CautionBudget.fit`` was given, with weights.

    Raises ValueError that names what is wrong.
    """
    scores, weights = weighted_scores(log_density, sample_weight)
    P, labels = _classified(proba, y, len(log_density), source)
    _require_scores(scores, source)
    kept = slice(None) if sample_weight is None else np.asarray(sample_weight) > 0
    return HeldOut(scores, source, weights, P[kept], labels[kept])


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
    return P, class_indices(y, m, P.shape[1])


def _require_scores(scores: np.ndarray, source: str) -> None:
    bad = np.isnan(scores) | (scores == np.inf)
    if bad.any() or not np.isfinite(scores).any():
        shown = scores[bad][0] if bad.any() else "-inf throughout"
        raise ValueError(
            f"log_density must be finite to fit CautionBudget, or -inf for a few rows, got {shown} "
            f"from {source}; use a density with unbounded support"
        )
