"""Bets that the mean of a number in [0, 1] is above a bound, and the bound from reference rows."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Sizes of the bets, as shares of the wealth that a number of 0 takes.
_STAKES = (0.02, 0.06, 0.2, 0.5)
BETTORS = len(_STAKES)
#: Sizes of the bets for the bound, as shares of the wealth that a number of 1 takes.
_BOUND_STAKES = 0.98 * 2.0 ** -np.arange(8)
_HALVINGS = 30


def upper_bound(values: np.ndarray, weights: np.ndarray | None, level: float) -> float:
    """Above the mean of the population that values (N,) in [0, 1] are of, but for a chance `level`.

    The smallest m that the values refute: bets ``1 - b (x - m)`` gain nothing on average if the
    mean is m or more, so that they multiply the wealth by ``1 / level`` with probability `level` at
    most. Holds for every N and every distribution, also if large values are rare and were not seen.
    Weights count rows, as many as Kish's effective number.

    References
    ----------
    I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables by betting", *JRSS B*
    86, 2024.
    """
    w = np.ones(len(values)) if weights is None else weights * weights.sum() / (weights**2).sum()
    low, high = float(np.average(values, weights=w)), 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        stakes = _BOUND_STAKES / max(1 - middle, 1e-9)
        logs = np.log1p(-stakes[:, None] * (values - middle)) @ w
        refuted = np.logaddexp.reduce(logs) - np.log(len(stakes)) >= -np.log(level)
        low, high = (low, middle) if refuted else (middle, high)
    return high


def mean_gains(values: np.ndarray, most: Any) -> np.ndarray:
    """Logarithms of what bettors gain on each row (..., n) if the mean is above `most`, (...).

    Returns shape (..., bettors, n).

    A bet multiplies the wealth by ``1 + b (x - most)``, which gains nothing on average while the
    mean is at most `most`, whatever else the distribution is. Gains on several rows add.
    """
    bound = np.maximum(most, 1e-9)[..., None, None]
    stakes = np.array(_STAKES)[:, None] / bound
    return np.asarray(np.log1p(stakes * (values[..., None, :] - bound)))
