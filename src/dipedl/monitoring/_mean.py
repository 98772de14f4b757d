"""Bets that the mean of a number in [0, 1] is above a bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

#: Sizes of the bets, as shares of the wealth that a number of 0 takes.
_STAKES = (0.02, 0.06, 0.2, 0.5)
BETTORS = len(_STAKES)


def upper_bound(values: np.ndarray, weights: np.ndarray | None, level: float) -> float:
    """Above the mean of the population that values (N,) in [0, 1] are of, but for a chance `level`.

    Exact for 0 and 1 (Clopper and Pearson, *Biometrika* 26, 1934); any other values count as so
    many draws of 0 and 1 as have their variance.
    """
    w = np.ones(len(values)) if weights is None else weights
    mean = float(np.average(values, weights=w))
    variance = float(np.average((values - mean) ** 2, weights=w))
    n = w.sum() ** 2 / (w**2).sum()
    if 0 < mean < 1 and variance > 0:
        n *= mean * (1 - mean) / variance
    k = min(mean, 1.0) * n
    return float(special.betaincinv(k + 1, n - k, 1 - level)) if k < n else 1.0


def mean_gains(values: np.ndarray, most: Any) -> np.ndarray:
    """Logarithms of what bettors gain on each row (..., n) if the mean is above `most`, (...).

    Returns shape (..., bettors, n).

    A bet multiplies the wealth by ``1 + b (x - most)``, which gains nothing on average while the
    mean is at most `most`, whatever else the distribution is. Gains on several rows add.

    References
    ----------
    I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", *JRSS B*
    86, 2024.
    """
    bound = np.maximum(most, 1e-9)[..., None, None]
    stakes = np.array(_STAKES)[:, None] / bound
    return np.asarray(np.log1p(stakes * (values[..., None, :] - bound)))
