"""Quantiles of weighted scores, and the alarm threshold of split conformal prediction."""

from __future__ import annotations

import numpy as np

__all__ = ["alarm_threshold", "weighted_quantile"]


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Smallest element with at least the share `q` in (0, 1] of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    w = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)[order]
    cumulative = np.cumsum(w)
    # A hair below: q * total must not jump to the next element by the last bit of the sum.
    position = np.searchsorted(cumulative, q * cumulative[-1] * (1 - 1e-12), side="left")
    return float(np.asarray(values)[order][min(position, len(values) - 1)])


def alarm_threshold(
    log_density: np.ndarray, rate: float, weights: np.ndarray | None = None
) -> float:
    """Log-density below which an input is flagged, so that at most `rate` of ID inputs are.

    With N held-out ID scores the threshold is the ``floor(rate * (N + 1))``-th smallest, and
    ``-inf`` (nothing is flagged) if that is zero: a new exchangeable ID score lies strictly below
    it with probability at most `rate`.

    Parameters
    ----------
    log_density : ndarray, shape (n,)
        Log-densities of ID inputs that the density was not fitted on.
    rate : float
        False-alarm rate in (0, 1).
    weights : ndarray, shape (n,), optional
        How many inputs each score stands for.

    References
    ----------
    Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World" (2005), on split conformal
    prediction.
    """
    values = np.asarray(log_density)
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(np.ones(len(values)) if weights is None else np.asarray(weights)[order])
    allowed = rate * (cumulative[-1] + 1) * (1 + 1e-12) - 1
    if allowed < 0:
        return -np.inf
    return float(values[order][np.searchsorted(cumulative, allowed, side="right")])
