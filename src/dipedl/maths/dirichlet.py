"""Closed forms of Dirichlets as functions of their concentrations alpha (n, k), in nats.

They are arranged so that nothing cancels for concentrations from 1e-8 to 1e12: see `special`.
"""

from __future__ import annotations

import numpy as np

from .array_namespace import Array, namespace
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
