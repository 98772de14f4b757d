"""A z-score that gross outliers do not move."""

from __future__ import annotations

import numpy as np
from scipy import special

from ._base import AffineNormalizer
from .quantiles import weighted_quantile

__all__ = ["RobustZScore"]


class RobustZScore(AffineNormalizer):
    """(log-density - median) / (1.4826 MAD): a few gross outliers among the ID data do not move it.

    Attributes
    ----------
    location_, scale_ : float
        Median, and median absolute deviation scaled to a normal's standard deviation, in nats.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        median = weighted_quantile(scores, 0.5, weights)
        mad = weighted_quantile(np.abs(scores - median), 0.5, weights)
        self._set_affine(median, mad / special.ndtri(0.75), "a median absolute deviation of")
