"""Closed forms of Dirichlets as functions of their concentrations alpha (n, k), in nats.

They are arranged so that nothing cancels for concentrations from 1e-8 to 1e12: see `special`.
Intervals and samples are computed on the host and carry no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .array_namespace import Array, as_float, namespace, to_numpy
from .special import (
    LOG_2PI,
    digamma_excess,
    gamma_divergence_remainder,
    gamma_entropy,
    log_ratio,
    log_rising,
    stirling_error,
)


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
    lower, upper = special.betaincinv(a, b, tail), special.betainccinv(a, b, tail)
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
    return as_float(special.softmax(log_gamma, axis=-1), like=alpha)


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
