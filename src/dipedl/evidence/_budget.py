"""The highest half-point whose held-out loss stays within a budget.

The loss is that of the shrunk mean ``(1 - u) p + u prior / alpha0`` of each row, a function of its
vacuity u. Each loss is a value: what it needs of probabilities and labels is computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from ..calibration.held_out import HeldOut

#: Log-odds above the half-point's at which evidence counts as full: 1 - sigmoid(40) = 4e-18.
_FULL = 40.0
_BISECTIONS = 45


@dataclass(frozen=True)
class BrierLoss:
    """``|mean - onehot|^2 = bare + 2 u cross + u^2 square``, each (m,): a parabola in u."""

    bare: np.ndarray
    cross: np.ndarray
    square: np.ndarray

    @classmethod
    def of(cls, proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Self:
        """From probabilities (m, k), labels (m,) and the prior's mean (k,)."""
        gap = proba.copy()
        gap[np.arange(len(y)), y] -= 1.0
        pull = base - proba
        inner = np.einsum
        return cls(inner("ij,ij->i", gap, gap), inner("ij,ij->i", gap, pull), (pull**2).sum(axis=1))

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Loss of each row at vacuity u, shape (m,)."""
        return np.asarray(self.bare + u * (2 * self.cross + u * self.square))


@dataclass(frozen=True)
class LogLoss:
    """``-log((1 - u) own + u base)`` with the probabilities (m,) of the row's own class."""

    own: np.ndarray
    base: np.ndarray

    @classmethod
    def of(cls, proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Self:
        """From probabilities (m, k), labels (m,) and the prior's mean (k,)."""
        return cls(proba[np.arange(len(y)), y], base[y])

    def __call__(self, u: np.ndarray | float) -> np.ndarray:
        """Loss of each row at vacuity u, in nats, shape (m,)."""
        return np.asarray(-np.log((1 - u) * self.own + u * self.base))


LOSSES: dict[str, type[BrierLoss] | type[LogLoss]] = {"brier": BrierLoss, "nll": LogLoss}


class Spent(NamedTuple):
    """Where a budget ends: half-point in log-odds, whether it is exhausted, and four losses."""

    half_point: float
    exhausted: bool
    full_loss: float
    lowest_loss: float
    loss: float
    allowed_loss: float


def spend(
    rows: HeldOut,
    loss: BrierLoss | LogLoss,
    x: np.ndarray,
    *,
    log_odds: float,
    log_ratio: float,
    budget: float,
    confidence: float,
) -> Spent:
    """The highest half-point within the budget, with what it costs.

    `x` (m,) are the scores of the rows in log-odds, `log_odds` those of full evidence at the
    half-point, `log_ratio` the log of full evidence over alpha0; the rest as in `CautionBudget`.
    """

    def losses(t: float) -> np.ndarray:
        # log(1/u - 1) is log_ratio + log sigmoid(.), the log of evidence over alpha0.
        missing = np.logaddexp(0.0, t - log_odds - x)
        return loss(special.expit(missing - log_ratio))

    counts, bare = rows.counts, loss(special.expit(-log_ratio))
    full_loss = rows.average(bare)
    gain = loss(1.0) - bare
    per_row = rows.average(loss(1.0)) / max(counts.sum(), 1.0)
    share = bare if full_loss <= rows.average(gain) else gain
    share = share if rows.average(share) >= per_row else np.full_like(bare, per_row)
    unit = rows.average(share)

    def over(cost: np.ndarray) -> bool:
        # Rounding of a mean must not make free what is not, nor costly what is free.
        return _upper_mean(cost - budget * share, counts, confidence) > 1e-12 * unit

    t, exhausted, lowest = _highest_within(_grid(x, log_odds), bare, losses, over, rows.average)
    # At -inf even the lowest half-point costs too much: the caller refuses it.
    lost = rows.average(losses(t)) if t > -np.inf else np.nan
    return Spent(t, exhausted, full_loss, lowest, lost, lowest + float(budget) * unit)


def _upper_mean(values: np.ndarray, weights: np.ndarray, confidence: float) -> float:
    """Upper confidence limit of the weighted mean; the mean at 0.5."""
    mean = float(np.average(values, weights=weights))
    error = np.sqrt(float(np.average((values - mean) ** 2, weights=weights)) / weights.sum())
    return float(mean + special.ndtri(confidence) * error)


def _highest_within(
    grid: np.ndarray,
    bare: np.ndarray,
    losses: Callable[[float], np.ndarray],
    over: Callable[[np.ndarray], bool],
    average: Callable[[np.ndarray], float],
) -> tuple[float, bool, float]:
    """Highest t within the budget, whether the budget ends there, and the lowest loss below it.

    What a half-point costs is its loss above the lowest so far, beginning with that of full
    evidence, `bare` (m,): what doubt earns pays for no more doubt. The first t of the `grid` that
    is over the budget ends the search; between it and the one before, the last t within is found
    by bisection. It is at most the end of the grid, where all ID inputs are in doubt.
    """
    best, lowest, last = bare, average(bare), None
    for t in grid:
        now = losses(t)
        if over(now - best):
            break
        last = t
        if average(now) < lowest:
            best, lowest = now, average(now)
    else:
        return float(grid[-1]), False, lowest
    return _last_within(lambda t: not over(losses(t) - best), last, t), True, lowest


def _grid(scores: np.ndarray, log_odds: float) -> np.ndarray:
    """Steps of one below the lowest score, and scores of geometrically growing rank above it.

    Scores and log-odds have slope and scale divided out.
    """
    finite = np.sort(scores[np.isfinite(scores)])
    below = finite[0] - np.arange(np.ceil(_FULL - min(log_odds, 0.0)), 0, -1.0)
    ranks = np.unique(np.geomspace(1, len(finite), 100).round().astype(int)) - 1
    return np.concatenate([below, finite[ranks]])


def _last_within(within: Callable[[float], bool], low: float | None, high: float) -> float:
    if low is None:
        return -np.inf
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
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
