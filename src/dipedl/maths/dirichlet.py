"""Evidence, Dirichlets and uncertainties in closed form, once for numpy arrays and torch tensors.

Concentrations are alpha (n, k), logs in nats. With concentrations near 1e12 the terms of a
Dirichlet entropy are near 1e13 and their difference near 1: float64 keeps three digits. Written
with the remainders of the gamma function below, the large parts cancel on paper, and nothing is
lost from 1e-8 to 1e12. Series: NIST Digital Library of Mathematical Functions, 5.11. Intervals and
samples are computed on the host and carry no gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from sys import float_info
from typing import Any

import numpy as np
from scipy import special as scipy_special

from .arrays import Array, as_float, namespace, special_functions, to_numpy

#: Largest exponent of evidence that a concentration shows, in float32 and in float64.
DISPLAYED_FLOAT32, DISPLAYED = 80.0, 300.0
#: Least share that the other classes have in `confidence`.
LEAST_DOUBT = 1e-12
# Above this the truncated series below are exact to 1e-13 relative; under it the direct difference
# is.
_SWITCH = 16.0
LOG_2PI = log(2 * pi)
#: Rounding of float64.
EPS = float_info.epsilon
_HALF_LOG_2PI = 0.5 * LOG_2PI
_TINY = np.finfo(np.float64).tiny


# The step from a score to a Dirichlet: Definition 3.1.


def affine(scores: Array, location: Any, scale: Any) -> Array:
    """``(score - location) / scale`` of scores (n,)."""
    return (scores - location) / scale


def logistic(scores: Array, location: Any, scale: Any, slope: float, log_odds: Any) -> Array:
    """``log sigmoid(log_odds + slope * (score - location) / scale)`` of scores (n,)."""
    x = log_odds + slope * affine(scores, location, scale)
    xp = namespace(x)
    return -xp.logaddexp(xp.zeros_like(x), -x)


def cap_evidence(log_evidence: Array, max_evidence: float | None) -> Array:
    """Cap log-evidence (n,) at ``log(max_evidence)``; NaN stays."""
    if max_evidence is None:
        return log_evidence
    top = float(np.log(max_evidence))
    return namespace(log_evidence).where(log_evidence > top, top, log_evidence)


def sharpening_share(scores: Array, low: Any, high: Any) -> Array:
    """Return the share of a sharpening at scores (n,): none up to `low`, all from `high`, (n,).

    Linear in between; ``low < high``. A temperature below one sharpens in this share of the inverse
    temperature, so that no prediction on an atypical input is surer than the classifier's own.
    """
    return ((scores - low) / (high - low)).clip(0.0, 1.0)


def inverse_temperature(temperature: Any, share: Array) -> Array:
    """``1 + share (1 / T - 1)`` where ``T < 1``, for a share of sharpening (n,); else ``1 / T``."""
    xp = namespace(share)
    return 1 + xp.where(temperature < 1, share, 1.0) * (1 / temperature - 1)


def concentration(log_evidence: Array, proba: Array, prior: Array) -> Array:
    """``prior + exp(log_evidence) * proba``, shape (n, k), of log-evidence (n,) and proba (n, k).

    The exponent ends where the dtype of `proba` does. That limits the display, not the ranking:
    log_evidence itself stays exact, and the mean is p to the last bit long before the limit.
    """
    xp = namespace(proba)
    top = DISPLAYED if proba.dtype == xp.float64 else DISPLAYED_FLOAT32
    evidence = xp.exp(xp.where(log_evidence > top, top, log_evidence))
    return prior + evidence[:, None] * proba


def vacuity(log_evidence: Array, prior: Array) -> Array:
    """Share of the strength that is prior, ``alpha0 / (alpha0 + exp(log_evidence))``, (n,)."""
    xp = namespace(log_evidence)
    return special_functions(log_evidence).expit(xp.log(xp.sum(prior)) - log_evidence)


def supported_strength(log_evidence: Array, strength: Any, typical: Any) -> Array:
    """Strength of a Dirichlet that the error supports at log-evidence (n,), shape (n,).

    `strength` where the evidence is `typical` or more; below, it falls as the cube root of the
    evidence, to 1 at the lowest, or stays at `strength` if that is less.
    """
    xp = namespace(log_evidence)
    low = xp.where(strength < 1, strength, xp.ones_like(log_evidence))
    gap = (log_evidence - typical).clip(max=0.0)
    return low + (strength - low) * xp.exp(gap / 3)


def evidence_beyond_prior(log_evidence: Array | None, alpha: Array, prior: Array) -> Array:
    """Check the log-evidence (n,) of concentrations alpha (n, k); None stands for their excess."""
    xp = namespace(alpha)
    if log_evidence is None:
        return log_or_minus_inf(xp.sum(alpha - prior, axis=-1))
    given = as_float(log_evidence, like=alpha)
    if tuple(given.shape) != (alpha.shape[0],):
        raise ValueError(
            f"log_evidence must have shape ({alpha.shape[0]},), got {tuple(given.shape)}"
        )
    if bool(xp.isnan(given).any()):
        raise ValueError("log_evidence must not hold NaN; -inf stands for no evidence")
    return given


def log_or_minus_inf(x: Array) -> Array:
    """log(x), and -inf for x <= 0, without a warning."""
    xp = namespace(x)
    return xp.where(x > 0, xp.log(xp.where(x > 0, x, 1.0)), -np.inf)


# Remainders of the gamma function.


def _series(x: Array, coefficients: tuple[float, ...]) -> Array:
    """sum_j c_j / x^(j+1), by Horner's rule."""
    inverse = 1.0 / x
    total = x * 0
    for c in reversed(coefficients):
        total = (total + c) * inverse
    return total


def _split(x: Array) -> tuple[Array, Array]:
    """`x` clipped to either side of the switch: no branch of a `where` can overflow."""
    # By `where`, because the slope of a minimum of two equal numbers is a half.
    xp, below = namespace(x), x < _SWITCH
    return xp.where(below, x, _SWITCH), xp.where(below, _SWITCH, x)


def digamma_excess(x: Array) -> Array:
    """psi(x + 1) - log(x), about 1/(2x) for large x; x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    series = _series(large, (1 / 2, -1 / 12, 0, 1 / 120, 0, -1 / 252, 0, 1 / 240))
    return xp.where(x < _SWITCH, special_functions(x).psi(small + 1) - xp.log(small), series)


def stirling_error(x: Array) -> Array:
    """Log Gamma(x) - [(x - 1/2) log x - x + log(2 pi)/2], about 1/(12x) for large x; x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    special = special_functions(x)
    direct = special.gammaln(small) - (small - 0.5) * xp.log(small) + small - _HALF_LOG_2PI
    series = _series(large, (1 / 12, 0, -1 / 360, 0, 1 / 1260, 0, -1 / 1680))
    return xp.where(x < _SWITCH, direct, series)


def gamma_entropy(x: Array) -> Array:
    """Differential entropy of Gamma(x, 1): x + log Gamma(x) + (1 - x) psi(x); x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    special = special_functions(x)
    direct = small + special.gammaln(small) + (1 - small) * special.psi(small)
    coefficients = (-1 / 3, -1 / 12, -1 / 90, 1 / 120, 1 / 210, -1 / 252, -1 / 210, 1 / 240)
    series = 0.5 * xp.log(large) + _HALF_LOG_2PI + 0.5 + _series(large, coefficients)
    return xp.where(x < _SWITCH, direct, series)


def log_ratio(numerator: Array, denominator: Array) -> Array:
    """log(numerator / denominator), accurate where the two are close."""
    xp = namespace(numerator)
    difference = numerator - denominator
    near = xp.abs(difference / denominator) < 0.5
    # Chosen before the division: the slope of the other branch would overflow, and 0 * inf is NaN.
    relative = xp.where(near, difference, difference * 0) / denominator
    return xp.where(near, xp.log1p(relative), xp.log(numerator) - xp.log(denominator))


def log_rising(x: Array, step: Array) -> Array:
    """Log Gamma(x + step) - log Gamma(x) + step, for x > 0 and step >= 0."""
    end = x + step
    change = stirling_error(end) - stirling_error(x)
    return (x - 0.5) * log_ratio(end, x) + step * namespace(x).log(end) + change


def gamma_divergence_remainder(a: Array, b: Array) -> Array:
    """KL(Gamma(a,1) || Gamma(b,1)) less its leading part ``b log(b/a) - b + a``."""
    change = stirling_error(b) - stirling_error(a)
    return change - 0.5 * log_ratio(b, a) - (b - a) * (digamma_excess(a) - 1.0 / a)


# Dirichlets.


def differential_entropy(alpha: Array) -> Array:
    """Differential entropy with respect to the first k - 1 probabilities, shape (n,).

    A Dirichlet is k independent Gamma variables less their sum, so this is a difference of Gamma
    entropies.
    """
    xp = namespace(alpha)
    s = xp.sum(alpha, axis=-1)
    psi = xp.log(s) + digamma_excess(s) - 1 / s
    parts = xp.sum(gamma_entropy(alpha), axis=-1)
    return parts - gamma_entropy(s) - (alpha.shape[1] - 1) * psi


def kl_divergence(a: Array, b: Array) -> Array:
    """KL of Dir(a) from Dir(b), shape (n,)."""
    xp = namespace(a)
    s, t = xp.sum(a, axis=-1), xp.sum(b, axis=-1)
    p, q = a / s[:, None], b / t[:, None]
    # t KL(q || p): its terms are non-negative, so nothing cancels
    leading = t * xp.sum(q * log_ratio(q, p) - (q - p), axis=-1)
    parts = xp.sum(gamma_divergence_remainder(a, b), axis=-1)
    return leading + (parts - gamma_divergence_remainder(s, t))


def log_density(alpha: Array, p: Array) -> Array:
    """Log-density at class probabilities p (n, k), shape (n,); NaN where it has no limit."""
    xp = namespace(alpha)
    s, inside = xp.sum(alpha, axis=-1), p > 0
    mean, q = alpha / s[:, None], xp.where(inside, p, 1.0)
    scaled = s[:, None] * (mean - p) - alpha * log_ratio(mean, q) - xp.log(q)
    edge = xp.where(alpha > 1, -np.inf, xp.where(alpha < 1, np.inf, scaled))
    parts = 0.5 * xp.log(alpha) - stirling_error(alpha)
    normaliser = 0.5 * xp.log(s) - stirling_error(s)
    # S (mean - p) sums to zero; with it each term is small where p is near the mean.
    with np.errstate(invalid="ignore"):
        total = xp.sum(xp.where(inside, scaled, edge) + parts, axis=-1)
    return total - normaliser - 0.5 * (alpha.shape[1] - 1) * LOG_2PI


def log_predictive(alpha: Array, counts: Array) -> Array:
    """Log of ``B(alpha + counts) / B(alpha)``, shape (n,)."""
    xp = namespace(alpha)
    parts = xp.sum(log_rising(alpha, counts), axis=-1)
    return parts - log_rising(xp.sum(alpha, axis=-1), xp.sum(counts, axis=-1))


def credible_interval(alpha: Array, others: Array, level: float) -> tuple[Array, Array]:
    """Quantiles (lower, upper) of Beta(alpha, others), entry by entry, at a central `level`."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}")
    a, b = to_numpy(alpha), to_numpy(others)
    tail = (1 - level) / 2
    lower, upper = scipy_special.betaincinv(a, b, tail), scipy_special.betainccinv(a, b, tail)
    # SciPy's quantiles cross where one underflows, and for concentrations beyond 1e9.
    return as_float(np.minimum(lower, upper), alpha), as_float(upper, alpha)


def sample(alpha: Array, size: int, rng: Any) -> Array:
    """`size` probability vectors of each row of alpha (n, k), shape (size, n, k)."""
    if not isinstance(rng, np.random.Generator | int | np.integer):
        raise TypeError(
            f"rng must be a numpy Generator or an int, also for tensors, got {type(rng).__name__}"
        )
    rng = np.random.default_rng(rng)
    a = np.broadcast_to(to_numpy(alpha), (size, *alpha.shape))
    # Gamma(a) = Gamma(a + 1) U^(1/a), and -log U is exponential.
    log_gamma = np.log(rng.standard_gamma(a + 1)) - rng.standard_exponential(a.shape) / a
    return as_float(scipy_special.softmax(log_gamma, axis=-1), like=alpha)


def leading_classes(P: np.ndarray, most: int) -> np.ndarray:
    """Ascending classes of P (n, k), at most `most` with others left over: shape (m,).

    The first class of each row before any other, then those that are largest in some row. A
    single class is never left over.
    """
    k = P.shape[1]
    if k <= most + 1:
        return np.arange(k)
    largest = P.max(axis=0, initial=0.0)
    largest[P.argmax(axis=1)] += 1
    return np.sort(np.argsort(-largest, kind="stable")[:most])


def sum_other_classes(alpha: Array, classes: np.ndarray) -> Array:
    """Return the ascending columns `classes` (m,) of alpha (n, k) and the sum of the others.

    Shape (n, m + 1), or (n, k) where no class is left. Sums of components of a Dirichlet are again
    Dirichlet.
    """
    rest = np.setdiff1d(np.arange(alpha.shape[1]), classes).tolist()
    if not rest:
        return alpha
    xp = namespace(alpha)
    summed = xp.sum(alpha[:, rest], axis=1)
    return xp.concat((alpha[:, classes.tolist()], summed[:, None]), axis=1)


# Class probabilities (n, k), and uncertainties by the names of their kinds.


def max_prob(P: np.ndarray) -> np.ndarray:
    """One minus the largest of the class probabilities P (n, k), shape (n,), in [0, 1 - 1/k]."""
    # Summed over the other classes: 1 - max is 0 for every confident row, and they all tie.
    others = np.sort(P, axis=1)[:, :-1]
    return np.asarray(others.sum(axis=1))


def confidence(P: np.ndarray) -> np.ndarray:
    """Minus the logarithm of `max_prob`, in nats, shape (n,): higher is surer, at most 27.6."""
    return np.asarray(-np.log(np.maximum(max_prob(P), LEAST_DOUBT)))


def entropy(P: np.ndarray) -> np.ndarray:
    """Entropy in nats of the class probabilities P (n, k), shape (n,), in [0, log k]."""
    return np.asarray(scipy_special.entr(P).sum(axis=1))


def mutual_information(samples: np.ndarray) -> np.ndarray:
    """Mutual information in nats of label and model, for `samples` (m, n, k) of P; shape (n,).

    ``H(mean p) - mean H(p)``, computed as the mean of KL(p || mean p), whose terms are all
    non-negative: the difference of the entropies loses its digits where the samples agree.
    """
    mean = samples.mean(axis=0)
    log = log_ratio(np.maximum(samples, _TINY), np.maximum(mean, _TINY))
    terms = samples * log - (samples - mean)
    return np.asarray(np.maximum(terms, 0.0).mean(axis=0).sum(axis=1))


DIRICHLET_KINDS = (
    "vacuity",
    "total",
    "aleatoric",
    "epistemic",
    "differential_entropy",
)
_FROM_PROBA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "max_prob": max_prob,
    "entropy": entropy,
}


def uncertainty_of(
    kind: str,
    dirichlet: Callable[[], Any],
    proba: Callable[[], np.ndarray],
    scores: Callable[[], np.ndarray],
) -> np.ndarray:
    """Uncertainty of n inputs, shape (n,), higher = less sure; asks only for what `kind` needs."""
    if kind in DIRICHLET_KINDS:
        return np.asarray(getattr(dirichlet(), kind))
    if kind in _FROM_PROBA:
        return _FROM_PROBA[kind](proba())
    if kind == "log_density":
        return -scores()
    allowed = [*DIRICHLET_KINDS, *_FROM_PROBA, "log_density"]
    raise ValueError(f"kind must be one of {allowed}, got {kind!r}")


def bare_uncertainty_of(
    kind: str, proba: Callable[[], np.ndarray], scores: Callable[[], np.ndarray]
) -> np.ndarray:
    """As `uncertainty_of`, of a model that has probabilities and a score and no Dirichlet."""
    if kind == "uncertainty":
        return -scores()
    if kind in _FROM_PROBA:
        return _FROM_PROBA[kind](proba())
    raise ValueError(f"kind must be one of {['uncertainty', *_FROM_PROBA]}, got {kind!r}")


def most_probable(concentration: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Index of the class with the largest concentration, shape (n,); `proba` breaks ties.

    Far from the data the concentration is the prior to the last bit.
    """
    largest = concentration == concentration.max(axis=1, keepdims=True)
    return np.asarray(np.where(largest, proba, -1.0).argmax(axis=1))
