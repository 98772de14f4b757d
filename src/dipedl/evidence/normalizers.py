"""Normalisers, from log-density in nats to a dimensionless z; log-evidence; weighted quantiles."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..inputs import check_weights, prior_vector
from ..maths.arrays import Array, check_positive_number, check_rate, float_array, namespace
from ..protocols import atomic

__all__ = [
    "Identity",
    "QuantileEvidence",
    "RankNormal",
    "RobustZScore",
    "ZScore",
    "alarm_threshold",
    "check_increasing",
    "log_evidence",
    "weighted_quantile",
]

SOURCE = "the log-densities given to fit"
#: Share of ID scores below which the lower tail is measured.
_TAIL = 0.01
_PROBES = 1000


def log_evidence(
    z: np.ndarray, n: float, gamma: float = 1.0, max_evidence: float | None = None
) -> np.ndarray:
    """Log pseudo-count ``log(n * gamma) + z``, shape (n,).

    Parameters
    ----------
    z : ndarray, shape (n,)
        Normalised log-density; ``-inf`` where the density is zero.
    n : float
        Number of training samples (sum of their weights), > 0.
    gamma : float, default=1.0
        Scale of the evidence, > 0.
    max_evidence : float, optional
        Largest pseudo-count, > 0. Points above it tie.

    References
    ----------
    Carlotti, Gligić, Farahi, Definition 3.1 and the appendix on underflow.
    """
    check_positive_number("n", n)
    check_positive_number("gamma", gamma)
    if max_evidence is not None:
        check_positive_number("max_evidence", max_evidence)
    value = np.log(n) + np.log(gamma) + np.asarray(z, dtype=np.float64)
    return np.asarray(cap_evidence(value, max_evidence))


def cap_evidence(log_evidence: Array, max_evidence: float | None) -> Array:
    """Cap log-evidence (n,) at ``log(max_evidence)``; NaN stays."""
    if max_evidence is None:
        return log_evidence
    top = float(np.log(float(max_evidence)))
    return namespace(log_evidence).where(log_evidence > top, top, log_evidence)


def affine(scores: Array, location: Any, scale: Any) -> Array:
    """``(score - location) / scale`` of scores (n,)."""
    return (scores - location) / scale


def logistic(scores: Array, location: Any, scale: Any, slope: float, log_odds: Any) -> Array:
    """``log sigmoid(log_odds + slope * (score - location) / scale)`` of scores (n,)."""
    x = log_odds + slope * affine(scores, location, scale)
    zero = x.new_zeros(()) if hasattr(x, "new_zeros") else 0.0
    return -namespace(x).logaddexp(zero, -x)


class BaseNormalizer(BaseEstimator):
    """A strictly increasing map from log-density to z, learned from ID log-densities.

    ``source_`` says which data the statistics came from, ``n_`` how many (sum of weights).
    """

    slope: float
    location_: float
    scale_: float
    log_odds_: float

    @atomic
    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
    ) -> Self:
        """Learn the statistics from ID log-densities (n,), with optional weights (n,) >= 0."""
        scores, weights = weighted_scores(log_density, sample_weight)
        require_finite(scores, type(self).__name__, source)
        self._learn(scores, weights)
        self.n_, self.source_ = float(weights.sum()), source
        return self

    def transform(self, log_density: np.ndarray) -> np.ndarray:
        """Normalised log-density z, shape (n,); strictly increasing in `log_density`."""
        if not hasattr(self, "source_"):
            check_is_fitted(self, "source_")
        return self._apply(np.asarray(log_density, dtype=np.float64))

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _learn")

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        """``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``: exp(z) in (0, 1).

        With ``log_odds_ = logit(alpha0 / (n gamma))`` the vacuity is 1/2 at `location_`, and
        ``log((1 - u) / u)`` rises by `slope` per `scale_` there and below. `scale_` is the
        lower-tail unit: how far a normal of the same lower tail falls per standard deviation. Maps
        without bounds have an `_apply` of their own.
        """
        # A score that is too far for a float is infinitely far: z = -inf, evidence 0.
        with np.errstate(over="ignore"):
            odds = self.slope, self.log_odds_
            return np.asarray(logistic(scores, self.location_, self.scale_, *odds))


def weighted_scores(
    log_density: np.ndarray, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and weights as float64 (n,); those of weight zero are dropped."""
    scores = float_array("log_density", log_density)
    if scores.ndim != 1 or not len(scores):
        raise ValueError(f"log_density must be a non-empty 1-d array, got shape {scores.shape}")
    checked = check_weights(sample_weight, scores)
    weights = np.ones(len(scores)) if checked is None else checked
    return scores[weights > 0], weights[weights > 0]


def require_finite(scores: np.ndarray, name: str, source: str) -> None:
    """Raise ValueError unless every score is finite."""
    if not np.isfinite(scores).all():
        raise ValueError(
            f"log_density must be finite to fit {name}, got "
            f"{scores[~np.isfinite(scores)][0]} from {source}; "
            "use a density with unbounded support"
        )


def is_spread(location: float, scale: float) -> bool:
    """Return whether `scale` is more than rounding error of scores near `location`."""
    return scale > 1e-12 * max(1.0, abs(location))


def require_spread(location: float, scale: float, name: str, measure: str) -> None:
    """Raise ValueError unless scores of this `location` and `scale` vary, see `is_spread`."""
    if not is_spread(location, scale):
        raise ValueError(
            f"log_density must vary to fit {name}, got {measure} {scale:.3g}; "
            "the density gives every input the same score: use normalizer=Identity()"
        )


class Identity(BaseNormalizer):
    """The raw log-density: evidence is ``n * gamma * p(x)``, Definition 3.1 to the letter."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        pass

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return scores


class ZScore(BaseNormalizer):
    """(log-density - mean) / standard deviation, the paper's normaliser.

    Attributes
    ----------
    location_, scale_ : float
        Mean and population standard deviation (ddof 0), in nats.

    References
    ----------
    Carlotti, Gligić, Farahi, appendix on underflow.

    Notes
    -----
    ``a + b`` is the normaliser fitted on the scores of both, exactly. The others are not mergeable:
    medians, ranks and budgets need the scores themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import ZScore
    >>> ZScore().fit([-4.0, -2.0, 0.0]).transform([-2.0, -100.0]).round(2)
    array([  0.  , -60.01])
    >>> both = ZScore().fit([-4.0, -2.0]) + ZScore().fit([0.0, 2.0, 3.0])
    >>> bool(np.isclose(both.location_, -0.2))
    True
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        self.location_, self.scale_ = _mean_and_deviation(scores, weights, type(self).__name__)

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(affine(scores, self.location_, self.scale_))

    def __add__(self, other: ZScore) -> ZScore:
        """The normaliser of the scores of both."""
        if not isinstance(other, ZScore):
            return NotImplemented
        for part in (self, other):
            check_is_fitted(part, "source_")
        n = self.n_ + other.n_
        share, gap = other.n_ / n, other.location_ - self.location_
        variance = (1 - share) * self.scale_**2 + share * other.scale_**2
        merged = ZScore()
        merged.location_ = self.location_ + share * gap
        merged.scale_ = float(np.sqrt(variance + share * (1 - share) * gap**2))
        merged.n_, merged.source_ = n, f"{self.source_} and {other.source_}"
        return merged


class RobustZScore(BaseNormalizer):
    """(log-density - median) / (1.4826 MAD): a few gross outliers among the ID data do not move it.

    Attributes
    ----------
    location_, scale_ : float
        Median, and median absolute deviation scaled to a normal's standard deviation, in nats.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        median = weighted_quantile(scores, 0.5, weights)
        mad = weighted_quantile(np.abs(scores - median), 0.5, weights)
        scale = float(mad / special.ndtri(0.75))
        require_spread(median, scale, type(self).__name__, "a median absolute deviation of")
        self.location_, self.scale_ = float(median), scale

    _apply = ZScore._apply


class RankNormal(BaseNormalizer):
    """Standard-normal score of the rank among the ID log-densities.

    Linear between the ID log-densities and, with the slope of the standard deviation, beyond them:
    z never ties.

    Attributes
    ----------
    knots_, normal_scores_ : ndarray, shape (m,)
        Distinct ID log-densities and their normal scores.
    scale_ : float
        Standard deviation of the ID log-densities, for the tails.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        table = rank_table(scores, weights, type(self).__name__)
        self.knots_, self.normal_scores_, self.scale_ = table

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        low, high = self.knots_[0], self.knots_[-1]
        inside = np.interp(scores, self.knots_, self.normal_scores_)
        # Each clipped on its own side, so that an infinite score meets no inf - inf.
        below = (np.minimum(scores, low) - low) / self.scale_
        return np.asarray(inside + below + (np.maximum(scores, high) - high) / self.scale_)


def rank_table(
    scores: np.ndarray, weights: np.ndarray, name: str
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the distinct scores, their normal scores by rank, and the standard deviation."""
    scale = _mean_and_deviation(scores, weights, name)[1]
    # Knots closer than this would have a slope that overflows.
    step = 1e-9 * scale
    knots, inverse = np.unique(np.round(scores / step) * step, return_inverse=True)
    mass = np.bincount(inverse, weights=weights)
    return knots, special.ndtri((np.cumsum(mass) - mass / 2) / mass.sum()), scale


def mean_and_deviation(scores: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """Return mean and population standard deviation of scores (m,) with weights (m,)."""
    mean = np.average(scores, weights=weights)
    return float(mean), float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def _mean_and_deviation(scores: np.ndarray, weights: np.ndarray, name: str) -> tuple[float, float]:
    mean, scale = mean_and_deviation(scores, weights)
    require_spread(mean, scale, name, "a standard deviation of")
    return mean, scale


def half_point_log_odds(full: float, alpha0: float) -> float:
    """Log-odds of full evidence ``n gamma`` where the vacuity is 1/2: ``logit(alpha0 / full)``.

    Where the prior weighs more than half of the full evidence, no more than 0: the half-point is
    then the score at which half of the full evidence is left.
    """
    return float(special.logit(min(alpha0 / full, 0.5)))


def lower_tail_unit(scores: np.ndarray, weights: np.ndarray, name: str) -> float:
    """``(median - q-quantile) / -ndtri(q)``: the standard deviation that the lower tail shows.

    q is 1 %, or 1 / (m + 1) where that is more (the lowest of m scores is that quantile), at most
    1/4. Where more than half of the scores tie, their standard deviation.
    """
    q = float(np.clip(1 / (weights.sum() + 1), _TAIL, 0.25))
    median = weighted_quantile(scores, 0.5, weights)
    unit = (median - weighted_quantile(scores, q, weights)) / -special.ndtri(q)
    if not is_spread(median, unit):
        unit = _mean_and_deviation(scores, weights, name)[1]
    return float(unit)


class QuantileEvidence(BaseNormalizer):
    """Vacuity 1/2 at the `quantile` of the held-out ID log-densities.

    ``z = log sigmoid(log_odds_ + slope * (score - location_) / scale_)``: evidence is bounded by
    ``n * gamma``, full evidence, and falls with the tempered density ``p^(slope / scale_)`` below.
    About a share `quantile` of ID inputs loses more than half of its confidence; what that costs
    in accuracy or Brier score is not looked at (see `CautionBudget`).

    Parameters
    ----------
    quantile : float, default=0.01
        Share of held-out ID scores, strictly between 0 and 1, at or below the half-point.
    slope : float, default=2.0
        Log-odds of being known, per lower-tail unit of the scores, > 0.

    Attributes
    ----------
    location_, scale_, log_odds_ : float
        As of `CautionBudget`.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import QuantileEvidence
    >>> scores = np.linspace(-4, 0, 101)
    >>> evidence = QuantileEvidence(0.05).fit(scores, n=1000, prior=[1.0, 1.0])
    >>> 1000 * np.exp(evidence.transform([evidence.location_, 0.0])).round(4)
    array([  2. , 943.1])
    """

    def __init__(self, quantile: float = 0.01, slope: float = 2.0) -> None:
        self.quantile = quantile
        self.slope = slope

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_rate(self.quantile, "quantile")
        check_positive_number("slope", self.slope)

    @atomic
    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
        n: float | None = None,
        prior: Any = None,
        gamma: float = 1.0,
    ) -> Self:
        """Learn from ID scores (m,) that the density was not fitted on.

        Parameters
        ----------
        log_density, sample_weight, source, n, prior, gamma
            As of `CautionBudget.fit`, but the scores are finite and `prior` has a number for each
            class. Without `n` or `prior` the half-point is where half of the full evidence is left.
        """
        self.check_parameters()
        scores, weights = weighted_scores(log_density, sample_weight)
        require_finite(scores, type(self).__name__, source)
        self.log_odds_ = 0.0
        if n is not None and prior is not None:
            check_positive_number("n", n)
            check_positive_number("gamma", gamma)
            if np.ndim(prior) != 1:
                raise ValueError(
                    "prior must have a number for each class, as the scores do not say how many "
                    f"classes there are, such as [1.0, 1.0], got {prior!r}"
                )
            alpha = prior_vector(prior, np.size(prior))
            self.log_odds_ = half_point_log_odds(n * gamma, float(alpha.sum()))
        self.scale_ = lower_tail_unit(scores, weights, type(self).__name__)
        self.location_ = weighted_quantile(scores, self.quantile, weights)
        self.n_, self.source_ = float(weights.sum()), source
        return self


def check_increasing(normalizer: Any, scores: np.ndarray) -> None:
    """Raise ValueError if a fitted normaliser turns the order of scores round, or forgets it.

    Asked at the finite scores (at most 1000 of them, evenly by rank), halfway between neighbours,
    and up to 100 times their range outside. Ties are let pass, as those of a map that saturates,
    but not a tie of all. What is not seen at these points is not found.

    Parameters
    ----------
    normalizer : object
        Fitted; has ``transform(scores) -> z``, both of shape (n,).
    scores : ndarray, shape (m,)
        The ID scores that it was fitted on.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import ZScore, check_increasing
    >>> scores = np.array([-3.0, -1.0, 0.5])
    >>> check_increasing(ZScore().fit(scores), scores)
    """
    scores, name = np.asarray(scores, dtype=np.float64), type(normalizer).__name__
    finite = np.unique(scores[np.isfinite(scores)])
    if len(finite) > _PROBES:
        finite = finite[np.linspace(0, len(finite) - 1, _PROBES).round().astype(int)]
    if not len(finite):
        raise ValueError(f"scores must hold a finite number, got {scores[:3]}")
    outside = (np.ptp(finite) or 1.0) * np.array([1.0, 10.0, 100.0])
    between = (finite[1:] + finite[:-1]) / 2
    points = np.unique(np.concatenate([finite, between, finite[0] - outside, finite[-1] + outside]))
    z = np.asarray(normalizer.transform(points), dtype=np.float64)
    if z.shape != points.shape:
        raise ValueError(
            f"normalizer {name} must give one z per score, shape {points.shape}, got {z.shape}"
        )
    bad = np.flatnonzero(np.isnan(z) | (z == np.inf))
    if len(bad):
        raise ValueError(
            f"normalizer {name} gives z = {z[bad[0]]} for the score {points[bad[0]]:.6g}; "
            "z must be finite, or -inf for no evidence"
        )
    # Steps of rounding size are no turn; inf - inf, both at -inf, is a tie.
    with np.errstate(invalid="ignore"):
        step = np.nan_to_num(np.diff(z), nan=0.0)
    rounding = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(z[:-1]), z[:-1], 0.0)))
    down = np.flatnonzero(step < -rounding)
    if len(down):
        i = down[0]
        raise ValueError(
            f"normalizer {name} must be increasing, but z falls from {z[i]:.6g} to {z[i + 1]:.6g} "
            f"as the score rises from {points[i]:.6g} to {points[i + 1]:.6g}"
        )
    if len(points) > 1 and not (step > 0).any():
        raise ValueError(
            f"normalizer {name} must be increasing, but gives z = {z[0]:.6g} for every score: "
            "it tells no input from another"
        )


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Smallest element with at least the share `q` in (0, 1] of the weight at or below it."""
    if not len(values):
        raise ValueError("values must not be empty")
    if not 0 < q <= 1:
        raise ValueError(f"q must lie in (0, 1], got {q!r}")
    ascending, cumulative = _ascending("values", np.asarray(values), weights)
    # A hair below: q * total must not jump to the next element by the last bit of the sum.
    position = np.searchsorted(cumulative, q * cumulative[-1] * (1 - 1e-12), side="left")
    return float(ascending[min(position, len(values) - 1)])


def _ascending(name: str, values: np.ndarray, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return values (n,) in ascending order, and the sum of the weights up to each."""
    if np.isnan(values).any():
        raise ValueError(f"{name} must not hold NaN, got it at row {np.isnan(values).argmax()}")
    checked = check_weights(weights, values, "weights")
    w = np.ones(len(values)) if checked is None else checked
    order = np.argsort(values, kind="stable")
    return values[order], np.cumsum(w[order])


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
    check_rate(rate, "rate")
    values = np.asarray(log_density)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"log_density must be a non-empty 1-d array, got shape {values.shape}")
    ascending, cumulative = _ascending("log_density", values, weights)
    allowed = rate * (cumulative[-1] + 1) * (1 + 1e-12) - 1
    if allowed < 0:
        return -np.inf
    # Of a rate that is one but for rounding, the last.
    place = np.searchsorted(cumulative, allowed, side="right")
    return float(ascending[min(place, len(values) - 1)])
