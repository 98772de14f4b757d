"""Normal scores of the ranks of one component."""

from __future__ import annotations

import numpy as np
from scipy import special

from ...evidence import RankNormal
from ...evidence.normalizers import lower_tail_unit


class NormalScores(RankNormal):
    """Normal scores of ranks, with the slope of the lower tail beyond the ranks."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        super()._learn(scores, weights)
        self.scale_ = lower_tail_unit(scores, weights, "the normal scores of a component")

    def leave_one_out(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Normal scores of the rows of the fit, shape (m,), each by the ranks of all others.

        A weight counts a row that often; all but one of its copies stay.
        """
        at = np.searchsorted((self.knots_[1:] + self.knots_[:-1]) / 2, scores)
        mass = np.bincount(at, weights, minlength=len(self.knots_))
        below, left_out = np.cumsum(mass) - mass, np.minimum(mass, 1.0)
        others = mass.sum() - left_out
        own = special.ndtri((below + (mass - left_out) / 2) / others)
        centre = below + mass / 2
        left = special.ndtri(centre[:-1] / others[1:])
        right = special.ndtri((centre[1:] - left_out[:-1]) / others[:-1])
        return np.asarray(np.where(mass > 1, own, self._between(left, right))[at])

    def _between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Normal score (m,) at each knot on the line through those left and right of it, (m - 1,).

        At the ends, with the slope of the tail.
        """
        gap = np.diff(self.knots_)
        slope = (right[1:] - left[:-1]) / (gap[1:] + gap[:-1])
        first, last = right[0] - gap[0] / self.scale_, left[-1] + gap[-1] / self.scale_
        return np.concatenate([[first], left[:-1] + slope * gap[:-1], [last]])
