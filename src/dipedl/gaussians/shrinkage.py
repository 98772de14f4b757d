"""Shrinkage of a covariance towards ``trace / p`` times the identity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..maths.special import EPS
from .moments import Moments

Shrinkage = float | str | None
#: Estimated from the third and fourth powers of the features.
LEDOIT_WOLF = "ledoit-wolf"


def _ledoit_wolf(m: Moments, level: float) -> float:
    if m.higher is None:
        raise ValueError(
            "shrinkage='ledoit-wolf' needs the fourth moments of the features, and these moments "
            "were made without them; fit with shrinkage='ledoit-wolf', or Moments.of(X, "
            "higher=True)"
        )
    n, p = m.weight, len(m.offset)
    cov = m.gram / level
    total = float(m.higher.quartic.sum())
    if not np.finfo(np.float64).tiny < total < np.inf:
        raise ValueError(
            "shrinkage='ledoit-wolf' needs the fourth moments of the features, which overflow or "
            "underflow; rescale the features or use shrinkage='oas'"
        )
    square = float((cov * cov).sum())
    error, spread = (total / n / level / level - square) / n, square - p
    return min(error / spread, 1.0) if spread > EPS * p and error > 0 else 0.0


def _oas(m: Moments, level: float) -> float:
    cov, p = m.gram / level, len(m.offset)
    if m.diagonal:
        return _oas_of_variances(cov, m.weight)
    return oas_intensity(float((cov * cov).sum()) / p**2, m.weight, p)


def oas_intensity(mean_square: float, n: float, p: int) -> float:
    """OAS of n rows and p features, from the mean square of the covariance over its level."""
    denominator = (n + 1) * (mean_square - 1 / p)
    return min((mean_square + 1) / denominator, 1.0) if denominator > 0 else 1.0


def _oas_of_variances(variance: np.ndarray, n: float) -> float:
    """OAS of variances alone: under a Gaussian each has the sampling error 2 s^4 / n."""
    error = float((2 * variance * variance).sum() / n)
    spread = float(((variance - variance.mean()) ** 2).sum())
    return error / (error + spread) if error > 0 else 1.0


_ESTIMATED: dict[str, Callable[[Moments, float], float]] = {
    LEDOIT_WOLF: _ledoit_wolf,
    "oas": _oas,
}


def shrinkage_intensity(moments: Moments, shrinkage: Shrinkage) -> float:
    """Return the intensity in [0, 1] of the shrinkage towards ``trace / p`` times the identity.

    "ledoit-wolf" is Ledoit and Wolf (2004), "oas" is Chen et al. (2010), both as scikit-learn
    computes them for a full covariance. For a diagonal one both weigh the sampling error of the
    variances against their spread: "ledoit-wolf" from the fourth moments, "oas" as it is under a
    Gaussian. The "ledoit-wolf" intensity of two samples is zero: they look free of error.
    """
    if shrinkage is None:
        return 0.0
    if isinstance(shrinkage, str):
        if shrinkage not in _ESTIMATED:
            raise ValueError(
                f"shrinkage must be None, a number in [0, 1] or one of {sorted(_ESTIMATED)}, "
                f"got {shrinkage!r}"
            )
        return _estimated(moments, _ESTIMATED[shrinkage])
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage must lie in [0, 1], got {shrinkage!r}")
    return float(shrinkage)


def _estimated(moments: Moments, rule: Callable[[Moments, float], float]) -> float:
    level = mean_variance(moments)
    if not np.isfinite(level):
        raise ValueError("the covariance of the features overflows; rescale the features")
    if len(moments.offset) == 1:
        return 0.0
    # Relative to its own level a covariance can be squared in any unit.
    return rule(moments, level) if level > 0 else 1.0


def mean_variance(moments: Moments) -> float:
    """Return the mean variance of the features, trace / p: the level of the shrinkage target."""
    return moments.trace / moments.weight / len(moments.offset)


def class_shrinkage(
    moments: Moments, shrinkage: Shrinkage, pooled_variance: float | None
) -> tuple[float, float]:
    """Return intensity and target for one class; the pooled variance if its rows are one point.

    Rows that are all the same point have no level of their own. None leaves such a class as it is.
    """
    intensity, target = shrinkage_intensity(moments, shrinkage), mean_variance(moments)
    if target == 0 and pooled_variance is not None:
        return 1.0, pooled_variance
    return intensity, target
