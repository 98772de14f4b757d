"""Normal scores of ranks."""

from __future__ import annotations

import numpy as np
from scipy import special

from ._base import BaseNormalizer
from .zscore import ZScore

__all__ = ["RankNormal"]


class RankNormal(BaseNormalizer):
    """Standard-normal score of the rank among the ID log-densities.

    Linear between the ID log-densities and, with the slope of the standard deviation, beyond them:
    z never ties.

    Attributes
    ----------
    knots_, normal_scores_ : ndarray, shape (m,)
        Distinct ID log-densities and their normal scores.
    scale_ : float
        Standard deviation of the ID log-densities, for the tails.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        self.scale_ = ZScore().fit(scores, weights).scale_
        # Knots closer than this would have a slope that overflows.
        step = 1e-9 * self.scale_
        self.knots_, inverse = np.unique(np.round(scores / step) * step, return_inverse=True)
        mass = np.bincount(inverse, weights=weights)
        self.normal_scores_ = special.ndtri((np.cumsum(mass) - mass / 2) / mass.sum())

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        low, high = self.knots_[0], self.knots_[-1]
        inside = np.interp(scores, self.knots_, self.normal_scores_)
        # Each clipped on its own side, so that an infinite score meets no inf - inf.
        below = (np.minimum(scores, low) - low) / self.scale_
        return np.asarray(inside + below + (np.maximum(scores, high) - high) / self.scale_)
