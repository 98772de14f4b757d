"""The bounded map that the calibrated normalisers share: log-odds linear in the score."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ..inputs import check_positive_number, prior_vector
from ..maths.evidence import logistic
from ._base import BaseNormalizer, require_spread
from .quantiles import weighted_quantile

#: Share of ID scores below which the lower tail is measured.
_TAIL = 0.01


class LogisticNormalizer(BaseNormalizer):
    """``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``, so exp(z) in (0, 1).

    With ``log_odds_ = logit(alpha0 / (n gamma))`` the vacuity is 1/2 at `location_`, and ``log((1 -
    u) / u)`` rises by `slope` per `scale_` there and below. `scale_` is the lower-tail unit: how
    far a normal of the same lower tail falls per standard deviation.
    """

    slope: float

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        # A score that is too far for a float is infinitely far: z = -inf, evidence 0.
        with np.errstate(over="ignore"):
            z = logistic(scores, self.location_, self.scale_, self.slope, self.log_odds_)
        return np.asarray(z)


def half_point_log_odds(full: float, alpha0: float) -> float:
    """Log-odds of full evidence ``n gamma`` where the vacuity is 1/2: ``logit(alpha0 / full)``.

    Where the prior weighs more than half of the full evidence, no more than 0: the half-point is
    then the score at which half of the full evidence is left.
    """
    return float(special.logit(min(alpha0 / full, 0.5)))


def prior_strength(n: Any, prior: Any, gamma: float, k: int) -> tuple[float, np.ndarray]:
    """Full evidence ``n * gamma`` and the prior as a (k,) array, checked."""
    check_positive_number("n", n)
    check_positive_number("gamma", gamma)
    return float(n) * float(gamma), prior_vector(prior, k)


def lower_tail_unit(scores: np.ndarray, weights: np.ndarray, name: str) -> float:
    """``(median - q-quantile) / -ndtri(q)``: the standard deviation that the lower tail shows.

    q is 1 %, or 1 / (m + 1) where that is more (the lowest of m scores is that quantile), at most
    1/4. Where more than half of the scores tie, their standard deviation.
    """
    q = float(np.clip(1 / (weights.sum() + 1), _TAIL, 0.25))
    median = weighted_quantile(scores, 0.5, weights)
    unit = (median - weighted_quantile(scores, q, weights)) / -special.ndtri(q)
    if not unit > 1e-12 * max(1.0, abs(median)):
        mean = np.average(scores, weights=weights)
        unit = np.sqrt(np.average((scores - mean) ** 2, weights=weights))
    require_spread(median, unit, name, "a spread of")
    return float(unit)
