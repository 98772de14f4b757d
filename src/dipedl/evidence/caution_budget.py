"""As much caution as a stated budget of held-out ID loss pays for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from ..calibration.held_out import HeldOut
from ..fitting.all_or_nothing import all_or_nothing
from ..inputs import check_positive_number
from ._base import SOURCE
from ._budget import LOSSES, highest_keeping, spend
from ._checked_rows import checked_rows
from ._logistic import (
    LogisticNormalizer,
    half_point_log_odds,
    lower_tail_unit,
    prior_strength,
)
from .quantiles import weighted_quantile

__all__ = ["CautionBudget"]

_MEASURES = (*LOSSES, "accuracy")
#: Standard deviations below the median from which a held-out row is like no other, by the quantile
#: of a normal that few such rows do not move; and the most of them that are left out.
_FAR, _QUANTILE, _NORMAL, _MOST_FAR = 10.0, 0.1, 1.2815515655446004, 0.01


class CautionBudget(LogisticNormalizer):
    """Bounded evidence whose half-point lies as high as a budget of held-out ID loss allows.

    ``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``: the evidence
    ``n gamma exp(z)`` counts equivalent training samples, at most ``n gamma`` of them, and the
    vacuity is 1/2 at `location_`. In-distribution data hardly reward caution, so it is bought: the
    half-point is the last, from below, before the held-out ID loss of the posterior mean
    ``(1 - u) p + u prior / alpha0`` exceeds

        ``lowest + budget * max(min(full, prior_loss - full), prior_loss / m)``,

    where `full` is the loss at full evidence, ``u = alpha0 / (alpha0 + n gamma)``: that of the bare
    classifier but for the weight of the prior. `lowest` is the lowest loss of the half-points
    below: `full`, or less where the classifier is too sure of its rarest rows. What doubt earns
    there pays for no doubt elsewhere. ``prior_loss - full`` is what the classifier gains over the
    prior: with noisy labels it is less than the loss, and all there is to lose.
    ``prior_loss / m`` is what one of the m held-out rows costs when only the prior predicts it. It
    leaves a classifier without held-out errors something to spend.

    A row that lies more than ten times as far below the median as one standard deviation (of the
    normal with the same 10 % quantile) is like no other, and could spend the whole budget alone.
    One such row, or up to 1 % of the rows, are left out; their cost is not counted. With a
    `confidence` above 0.5 none is left out.

    Parameters
    ----------
    budget : float, default=0.02
        Share to spend of the held-out ID loss, or of its gain over the prior if that is less, from
        0 to 1. With 0 nothing is spent beyond what is free: the half-point is then far below every
        held-out score.
    measure : {"brier", "nll", "accuracy"}, default="brier"
        What is spent: Brier score or negative log-likelihood of the posterior mean; or answers: at
        most the share `budget` of the rows that the classifier gets right lies below the half-point
        (shrinking to an even prior never changes the most probable class).
    slope : float, default=2.0
        Log-odds of being known per lower-tail unit of the scores, > 0. It is the log-likelihood
        ratio of two normals of that unit whose means are `slope` units apart: of inputs that lie,
        in the mean, so far below typical ones.
    confidence : float, default=0.5
        With what confidence new inputs keep the budget, from 0.5 (in the mean over held-out sets)
        to below 1: the upper confidence limit of the cost, by the normal approximation, must then
        stay within the budget. Not for "accuracy".

    Attributes
    ----------
    location_, scale_, log_odds_ : float
        Half-point and lower-tail unit of the scores (`(median - 1 % quantile) / 2.326`), in nats
        for a log-density, and log-odds of full evidence at the half-point.
    full_loss_, lowest_loss_, loss_, allowed_loss_ : float
        Held-out loss at full evidence, the lowest of all half-points up to the chosen one, with the
        caution bought, and the most allowed, over the rows that are not left out.
    exhausted_ : bool
        Whether the budget sets the half-point; else it is the highest held-out score, and the
        classifier is worth little more than the prior.

    Notes
    -----
    The loss is a mean over m held-out rows, so at the default confidence the budget is kept on new
    inputs in the mean and not surely. Half-points are tried from below and the first failure ends
    the search, so that trying many costs no confidence (fixed-sequence testing). Where the prior
    outweighs half of the full evidence (n gamma < 2 alpha0) vacuity 1/2 means nothing, and the
    half-point is where half of the full evidence is left. Equal scores cannot be told apart; a
    constant score is refused.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan, Lei, "Learn then test: calibrating predictive algorithms to
    achieve risk control", arXiv:2110.01052 (2021), on fixed-sequence testing of a risk.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import CautionBudget
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 500)
    >>> proba = np.where(np.arange(2) == y[:, None], 0.8, 0.2)
    >>> caution = CautionBudget(0.02)
    >>> caution = caution.fit(rng.normal(size=500), proba=proba, y=y, n=1000, prior=[1.0, 1.0])
    >>> round(caution.loss_ / caution.full_loss_, 6)
    1.02
    """

    def __init__(
        self,
        budget: float = 0.02,
        measure: str = "brier",
        slope: float = 2.0,
        confidence: float = 0.5,
    ) -> None:
        self.budget = budget
        self.measure = measure
        self.slope = slope
        self.confidence = confidence

    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
        proba: np.ndarray | None = None,
        y: np.ndarray | None = None,
        n: float | None = None,
        prior: Any = None,
        gamma: float = 1.0,
    ) -> Self:
        """Learn from ID rows that neither the density nor the classifier was fitted on.

        Parameters
        ----------
        log_density : ndarray, shape (m,)
            Scores; higher is more typical; -inf where the density is zero.
        sample_weight : ndarray, shape (m,), optional
            How many inputs each row stands for.
        source : str
            Where the rows came from.
        proba : ndarray, shape (m, k)
            Class probabilities of the classifier.
        y : ndarray of int, shape (m,)
            Labels, as indices of the classes.
        n : float
            Number of training samples behind full evidence, > 0.
        prior : array-like, shape (k,), or float
            Concentration of the prior, > 0.
        gamma : float, default=1.0
            Scale of the evidence, > 0.

        Raises
        ------
        ValueError
            If anything is missing, out of range or constant, or if rows of zero density alone
            cost more than the budget.
        """
        with all_or_nothing(self):
            self._check_parameters()
            rows = checked_rows(log_density, sample_weight, proba, y, source)
            if n is None or prior is None:
                raise ValueError(
                    f"{type(self).__name__} needs n and prior, the number of training samples and "
                    f"the prior concentration, got n={n!r}, prior={prior!r}"
                )
            full, alpha = prior_strength(n, prior, gamma, rows.proba.shape[1])
            self.log_odds_ = half_point_log_odds(full, float(alpha.sum()))
            kept = self.counted(rows)
            counted = rows
            if not kept.all():
                counted = replace(rows, weights=np.where(kept, rows.counts, 0.0)).sorted()
            scores, counts = counted.scores[counted.finite], counted.counts[counted.finite]
            self.scale_ = lower_tail_unit(scores, counts, type(self).__name__)
            if self.measure == "accuracy":
                self._give_up_answers(counted)
            else:
                self._spend(counted, full, alpha)
            return self._learned(rows.counts, source)

    def counted(self, rows: HeldOut) -> np.ndarray:
        """Whether the budget counts each of m held-out rows, shape (m,)."""
        seen = rows.finite
        scores, counts = rows.scores[seen], rows.counts[seen]
        median, low = (weighted_quantile(scores, q, counts) for q in (0.5, _QUANTILE))
        # A limit that is too far for a float is infinitely far.
        with np.errstate(over="ignore"):
            far = seen & (rows.scores < median - _FAR * (median - low) / _NORMAL)
        few = far.sum() == 1 or rows.average(far) <= _MOST_FAR
        left_out = few and low < median and self.confidence == 0.5
        return ~far if left_out else np.ones(len(rows), dtype=bool)

    def _check_parameters(self) -> None:
        _check_number("budget", self.budget)
        if not 0 <= self.budget <= 1:
            raise ValueError(f"budget must lie in [0, 1], a share of the loss, got {self.budget!r}")
        if self.measure not in _MEASURES:
            raise ValueError(f"measure must be one of {_MEASURES}, got {self.measure!r}")
        check_positive_number("slope", self.slope)
        _check_number("confidence", self.confidence)
        if not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence must lie in [0.5, 1), got {self.confidence!r}")
        if self.measure == "accuracy" and self.confidence != 0.5:
            raise ValueError("measure='accuracy' has no confidence; leave confidence=0.5")

    def _give_up_answers(self, rows: HeldOut) -> None:
        right = ~rows.wrong
        accuracy = rows.average(right)
        t = highest_keeping(rows.scores, rows.counts, right, float(self.budget))
        self._set_half_point(t, rows)
        self.exhausted_ = bool(right.any())
        self.full_loss_ = self.lowest_loss_ = 1 - accuracy
        self.loss_ = 1 - rows.average(right & (rows.scores >= t))
        self.allowed_loss_ = 1 - (1 - float(self.budget)) * accuracy

    def _spend(self, rows: HeldOut, full: float, prior: np.ndarray) -> None:
        alpha0 = float(prior.sum())
        center = float(np.median(rows.scores[rows.finite]))
        # A score that is too far for a float is infinitely far.
        with np.errstate(over="ignore"):
            x = self.slope * (rows.scores - center) / self.scale_
        spent = spend(
            rows,
            LOSSES[self.measure].of(rows.proba, rows.labels, prior / alpha0),
            x,
            log_odds=self.log_odds_,
            log_ratio=float(np.log(full / alpha0)),
            budget=self.budget,
            confidence=float(self.confidence),
        )
        self._set_half_point(center + spent.half_point * self.scale_ / self.slope, rows)
        self.exhausted_ = spent.exhausted
        self.full_loss_, self.lowest_loss_, self.loss_, self.allowed_loss_ = spent[2:]

    def _set_half_point(self, location: float, rows: HeldOut) -> None:
        if location == -np.inf and rows.finite.all():
            raise ValueError(
                f"{len(rows.scores)} rows from {rows.source} are too few to keep "
                f"budget={self.budget:g} with confidence={self.confidence:g}; hold out more, raise "
                "the budget or lower the confidence"
            )
        if location == -np.inf:
            raise ValueError(
                f"{int((~rows.finite).sum())} of {len(rows)} log-densities from {rows.source} "
                f"are -inf, and these rows alone cost more than budget={self.budget:g} of the "
                f"held-out {self.measure}; use a density with unbounded support or raise the budget"
            )
        self.location_ = location


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number from 0 to 1, got {value!r}")
