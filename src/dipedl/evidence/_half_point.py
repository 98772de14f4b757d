"""Where the half-point may lie at most, so that what it costs stays within the budget."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Log-odds above the half-point's at which evidence counts as full: 1 - sigmoid(40) = 4e-18.
_FULL = 40.0
_BISECTIONS = 45


def highest_within(
    excess: Callable[[float], float], scores: np.ndarray, log_odds: float
) -> tuple[float, bool]:
    """Highest t up to which ``excess(t) <= 0``, and whether the budget ends there.

    Scores and t are in log-odds (slope and scale divided out). The first crossing from below is
    taken: every half-point under it is within the budget too (the envelope ``max excess(t')`` over
    ``t' <= t`` crosses zero once). It is bracketed by steps of one below the lowest score and by
    scores of geometrically growing rank above it, then bisected; the answer is the side within the
    budget. It is at most the highest score, where all ID inputs are in doubt.
    """
    low = None
    for t in _grid(scores, log_odds):
        if excess(t) > 0:
            return (-np.inf if low is None else _bisected(excess, low, t)), True
        low = t
    return float(scores.max()), False


def _grid(scores: np.ndarray, log_odds: float) -> np.ndarray:
    finite = np.sort(scores[np.isfinite(scores)])
    below = finite[0] - np.arange(np.ceil(_FULL - min(log_odds, 0.0)), 0, -1.0)
    ranks = np.unique(np.geomspace(1, len(finite), 100).round().astype(int)) - 1
    return np.concatenate([below, finite[ranks]])


def _bisected(excess: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    return float(low)


def highest_keeping(
    scores: np.ndarray, weights: np.ndarray, right: np.ndarray, budget: float
) -> float:
    """Highest score with at most the share `budget` of the weight of right rows strictly below."""
    if not right.any():
        return float(scores.max())
    values, inverse = np.unique(scores[right], return_inverse=True)
    mass = np.bincount(inverse, weights=weights[right])
    below = np.cumsum(mass) - mass
    return float(values[below <= budget * mass.sum() * (1 + 1e-12)].max())
