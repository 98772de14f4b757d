"""The range of the data, and what an input that is nowhere near it may score at most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ...evidence.normalizers import lower_tail_unit
from ...features.scaling import FEW, RANGES, limits, outside_of

#: Lower-tail units that the ceiling lies below the lowest held-out score: no half-point is as low.
_DEEP = 20.0


@dataclass(frozen=True, eq=False)
class Reach:
    """Features of the rows of the fit, and a ceiling for the score of what lies far outside.

    A score of fused ranks, or of a ratio, need not fall for ever. That of an input of which a
    feature lies more than `RANGES` times its range below the lowest or above the highest value
    seen is therefore at most ``ceiling - unit * log(ranges / RANGES)``.

    Attributes
    ----------
    low, width : ndarray, shape (p,)
        Lowest value of each feature, and its range; 1 for a constant feature.
    ceiling, unit : float
        Below every held-out score, and the lower-tail unit of these.
    """

    low: np.ndarray
    width: np.ndarray
    ceiling: float = np.inf
    unit: float = 1.0

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        """The reach of rows X (n, p); it has no ceiling before `below`."""
        with np.errstate(over="ignore"):
            low, width = X.min(axis=0), np.ptp(X, axis=0)
        return cls(low, np.where(width > 0, width, 1.0))

    def below(self, scores: np.ndarray, weights: np.ndarray | None) -> Reach:
        """The same with a ceiling below these scores (m,) of held-out rows, with weights (m,)."""
        finite = np.isfinite(scores)
        counts = np.ones(len(scores)) if weights is None else weights
        who = "a density of several"
        unit = lower_tail_unit(scores[finite], counts[finite], who)
        lowest = float(scores[finite].min())
        # As deep again as the lowest score is, so that rounding leaves a distance.
        return replace(self, ceiling=lowest - abs(lowest) - _DEEP * unit, unit=unit)

    def ranges_outside(self, X: np.ndarray) -> np.ndarray:
        """Ranges by which the farthest feature of each row of X (n, p) lies outside, shape (n,)."""
        with np.errstate(over="ignore"):
            place = (X - self.low) / self.width
        return np.asarray(np.maximum(-place, place - 1).max(axis=1))

    def held_down(self, scores: np.ndarray, X: np.ndarray) -> np.ndarray:
        """The scores (n,) of rows X (n, p), those of rows outside held down."""
        outside = np.maximum(self.ranges_outside(X), RANGES)
        ceiling = np.where(
            outside > RANGES, self.ceiling - self.unit * np.log(outside / RANGES), np.inf
        )
        return np.asarray(np.minimum(scores, ceiling))


@dataclass(frozen=True, eq=False)
class Fence:
    """What rows a density is fitted on: all, or all but a few that are far from the others.

    Far rows would set the scale of a covariance. They stay where they are more than a twentieth of
    all rows, or half of their class. A row is far if a feature lies more than `limit` (p,) from
    `centre` (p,).
    """

    centre: np.ndarray
    limit: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Self:
        """The fence about rows X (n, p), with labels and weights."""
        fence = cls(*limits(X, w))
        far = ~fence.near(X)
        counts = np.ones(len(X)) if w is None else w
        labels = np.unique(np.ravel(y), return_inverse=True)[1]
        crowded = np.bincount(labels, far * counts) > np.bincount(labels, counts) / 2
        many = np.average(far, weights=counts) > FEW
        return replace(fence, limit=fence.limit + np.inf) if many or crowded.any() else fence

    def near(self, X: np.ndarray) -> np.ndarray:
        """Which rows of X (n, p) are fitted, shape (n,)."""
        return np.asarray(~outside_of(self.centre, self.limit, X).any(axis=1))
