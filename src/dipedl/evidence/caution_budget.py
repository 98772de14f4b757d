"""Caution bought with a stated budget of held-out ID loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy import special

from ..inputs import prior_vector
from ..maths.arrays import (
    check_choice,
    check_number,
    check_positive_number,
    check_proba,
    class_indices,
)
from ..protocols import atomic
from .normalizers import (
    SOURCE,
    BaseNormalizer,
    half_point_log_odds,
    lower_tail_unit,
    weighted_quantile,
    weighted_scores,
)

__all__ = ["CautionBudget"]

#: Standard deviations below the median from which a held-out row is like no other, by the quantile
#: of a normal that few such rows do not move; and the most of them that are left out.
_FAR, _QUANTILE, _NORMAL, _MOST_FAR = 10.0, 0.1, 1.2815515655446004, 0.01
#: Log-odds above the half-point's at which evidence counts as full: 1 - sigmoid(40) = 4e-18.
_FULL = 40.0
_BISECTIONS = 45

#: Loss of each of m rows at the vacuity u, (m,).
Loss = Callable[[np.ndarray | float], np.ndarray]


@dataclass(eq=False, repr=False)
class CautionBudget(BaseNormalizer):
    """Bounded evidence whose half-point lies as high as a budget of held-out ID loss allows.

    ``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``: the evidence
    ``n gamma exp(z)`` counts equivalent training samples, at most ``n gamma`` of them, and the
    vacuity is 1/2 at `location_`. In-distribution data hardly reward caution, so it is bought: the
    half-point is the last, from below, before the held-out ID loss of the posterior mean
    ``(1 - u) p + u prior / alpha0`` exceeds

        ``lowest + budget * max(min(full, prior_loss - full), prior_loss / m)``,

    where `full` is the loss at full evidence, ``u = alpha0 / (alpha0 + n gamma)``: that of the bare
    classifier but for the weight of the prior. `lowest` is the lowest loss of the half-points
    below: `full`, or less where the classifier is too sure of its rarest rows: the loss gained by
    doubting those is not added to the budget. ``prior_loss - full`` is what the classifier gains
    over the prior: with noisy labels it is less than the loss, and all there is to lose.
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
        held-out score. With 1 the loss may double: about half of all inputs are then in doubt.
    measure : {"brier", "nll"}, default="brier"
        What is spent: Brier score or negative log-likelihood of the posterior mean. To state the
        share of inputs in doubt in place of a loss, use `QuantileEvidence`.
    slope : float, default=2.0
        Log-odds of being known per lower-tail unit of the scores, > 0. It is the log-likelihood
        ratio of two normals of that unit whose means are `slope` units apart: of inputs that lie,
        in the mean, so far below typical ones.
    confidence : float, default=0.5
        With what confidence new inputs keep the budget, from 0.5 (in the mean over held-out sets)
        to below 1: the upper confidence limit of the cost, by the normal approximation, must then
        stay within the budget.

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

    budget: float = 0.02
    measure: str = "brier"
    slope: float = 2.0
    confidence: float = 0.5

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        share = "in [0, 1], a share of the loss"
        check_number("budget", self.budget, share, lambda x: 0 <= x <= 1)
        check_choice("measure", self.measure, LOSSES)
        check_positive_number("slope", self.slope)
        check_number("confidence", self.confidence, "in [0.5, 1)", lambda x: 0.5 <= x < 1)

    @atomic
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
        self.check_parameters()
        scores, weights = weighted_scores(log_density, sample_weight)
        if proba is None or y is None:
            raise ValueError(
                "CautionBudget needs proba and y, held-out class probabilities and labels, "
                f"and {source} have none; without a classifier use normalizer=QuantileEvidence()"
            )
        P = check_proba("proba", proba, len(log_density))
        labels = class_indices(y, *P.shape)
        bad = np.isnan(scores) | (scores == np.inf)
        if bad.any() or not np.isfinite(scores).any():
            got = scores[bad][0] if bad.any() else "-inf throughout"
            raise ValueError(
                f"log_density must be finite to fit CautionBudget, or -inf for a few rows, got "
                f"{got} from {source}; use a density with unbounded support"
            )
        if sample_weight is not None and np.ndim(sample_weight):
            present = np.asarray(sample_weight) > 0
            P, labels = P[present], labels[present]
        if n is None or prior is None:
            raise ValueError(
                f"{type(self).__name__} needs n and prior, the number of training samples and "
                f"the prior concentration, got n={n!r}, prior={prior!r}"
            )
        check_positive_number("n", n)
        check_positive_number("gamma", gamma)
        full, alpha = float(n) * float(gamma), prior_vector(prior, P.shape[1])
        alpha0, total = float(alpha.sum()), float(weights.sum())
        self.log_odds_ = half_point_log_odds(full, alpha0)
        counted = self.in_budget(scores, weights)
        if not counted.all():
            rows = np.flatnonzero(counted)
            rows = rows[np.argsort(scores[rows], kind="stable")]
            scores, weights, P, labels = scores[rows], weights[rows], P[rows], labels[rows]
        finite = np.isfinite(scores)
        self.scale_ = lower_tail_unit(scores[finite], weights[finite], type(self).__name__)
        center = float(np.median(scores[finite]))
        # A score that is too far for a float is infinitely far.
        with np.errstate(over="ignore"):
            x = self.slope * (scores - center) / self.scale_
        loss = LOSSES[self.measure](P, labels, alpha / alpha0)
        t = self._spend(loss, x, weights, full / alpha0)
        if t == -np.inf:
            # Even the lowest half-point costs more than the budget.
            if finite.all():
                raise ValueError(
                    f"{len(scores)} rows from {source} are too few to keep budget={self.budget:g} "
                    f"with confidence={self.confidence:g}; hold out more, raise the budget or "
                    "lower the confidence"
                )
            raise ValueError(
                f"{(~finite).sum()} of {len(scores)} log-densities from {source} are -inf, and "
                f"these rows alone cost more than budget={self.budget:g} of the held-out "
                f"{self.measure}; use a density with unbounded support or raise the budget"
            )
        self.location_ = center + t * self.scale_ / self.slope
        self.n_, self.source_ = total, source
        return self

    def in_budget(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return whether the budget counts each of m held-out rows, shape (m,)."""
        finite = np.isfinite(scores)
        some, counts = scores[finite], weights[finite]
        median, low = (weighted_quantile(some, q, counts) for q in (0.5, _QUANTILE))
        # A limit that is too far for a float is infinitely far.
        with np.errstate(over="ignore"):
            far = finite & (scores < median - _FAR * (median - low) / _NORMAL)
        few = far.sum() == 1 or np.average(far, weights=weights) <= _MOST_FAR
        left_out = few and low < median and self.confidence == 0.5
        return ~far if left_out else np.ones(len(scores), dtype=bool)

    def _spend(self, loss: Loss, x: np.ndarray, weights: np.ndarray, ratio: float) -> float:
        """Return the highest half-point within the budget, in log-odds, and keep its losses.

        `x` (m,) are the scores in log-odds, `ratio` is full evidence over alpha0.
        What a half-point costs is its loss above the lowest so far. Half-points are tried from
        below; between the first over the budget and the one before, bisection finds the last
        within.
        """

        def losses(t: float) -> np.ndarray:
            # 1/u - 1 is the evidence over alpha0: that of full evidence times a sigmoid.
            with np.errstate(over="ignore"):
                doubt = np.exp(t - self.log_odds_ - x)
            return loss(1 / (1 + ratio / (1 + doubt)))

        average = partial(_average, weights=weights)
        bare = loss(1 / (1 + ratio))
        full_loss = average(bare)
        share = price_unit(bare, loss(1.0), weights)
        unit, allowed = average(share), self.budget * share
        errors, total = float(special.ndtri(self.confidence)), weights.sum()

        def within(now: np.ndarray) -> bool:
            cost = now - best - allowed
            mean = high = average(cost)
            if errors > 0:
                high += errors * np.sqrt(average((cost - mean) ** 2) / total)
            # Rounding of a mean must not make free what is not, nor costly what is free.
            return bool(high <= 1e-12 * unit)

        best, lowest, last = bare, full_loss, -np.inf
        self.exhausted_ = False
        for t in _grid(x, self.log_odds_):
            now = losses(t)
            if not within(now):
                self.exhausted_ = True
                high = float(t)
                for _ in range(_BISECTIONS if last > -np.inf else 0):
                    middle = (last + high) / 2
                    last, high = (middle, high) if within(losses(middle)) else (last, middle)
                break
            last = float(t)
            if average(now) < lowest:
                best, lowest = now, average(now)
        self.full_loss_, self.lowest_loss_ = full_loss, lowest
        # At -inf even the lowest half-point costs too much: the caller refuses it.
        self.loss_ = average(losses(last)) if last > -np.inf else np.nan
        self.allowed_loss_ = lowest + float(self.budget) * unit
        return last


def brier_loss(proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Loss:
    """Return the Brier score of ``(1 - u) proba + u base`` of each row as a function of u.

    ``|mean - onehot|^2 = bare + 2 u cross + u^2 square``, each (m,): a parabola in u.
    """
    gap, pull = proba.copy(), base - proba
    gap[np.arange(len(y)), y] -= 1.0
    bare, cross = np.einsum("ij,ij->i", gap, gap), np.einsum("ij,ij->i", gap, pull)
    square = (pull**2).sum(axis=1)
    return lambda u: np.asarray(bare + u * (2 * cross + u * square))


def price_unit(bare: np.ndarray, by_prior: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return for each of m rows the amount whose mean a price is a share of, (m,).

    The loss of the bare classifier, or its gain over the prior's loss if that is less; at least the
    cost of answering one row by the prior.
    """
    average = partial(_average, weights=weights)
    gain = by_prior - bare
    per_row = average(by_prior) / max(weights.sum(), 1.0)
    share = bare if average(bare) <= average(gain) else gain
    return share if average(share) >= per_row else np.full_like(bare, per_row)


def _average(values: np.ndarray, weights: np.ndarray) -> float:
    return float((values * weights).sum() / weights.sum())


def log_loss(proba: np.ndarray, y: np.ndarray, base: np.ndarray) -> Loss:
    """Return ``-log((1 - u) own + u base)`` of each row's own class as a function of u, in nats."""
    own, base = proba[np.arange(len(y)), y], base[y]
    return lambda u: np.asarray(-np.log((1 - u) * own + u * base))


#: By measure, from probabilities (m, k), labels (m,) and the prior's mean (k,).
LOSSES = {"brier": brier_loss, "nll": log_loss}


def _grid(scores: np.ndarray, log_odds: float) -> np.ndarray:
    """Steps of one below the lowest score, and scores of geometrically growing rank above it.

    Scores and log-odds have slope and scale divided out.
    """
    finite = np.sort(scores[np.isfinite(scores)])
    below = finite[0] - np.arange(np.ceil(_FULL - min(log_odds, 0.0)), 0, -1.0)
    ranks = np.unique(np.geomspace(1, len(finite), 100).round().astype(int)) - 1
    return np.concatenate([below, finite[ranks]])
