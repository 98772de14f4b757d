"""The step from a score to a Dirichlet: Definition 3.1, once for numpy arrays and torch tensors."""

from __future__ import annotations

import numpy as np

from .array_namespace import Array, as_float, namespace, special_functions

#: Largest exponent of evidence that a concentration shows, in float32 and in float64.
DISPLAYED_FLOAT32, DISPLAYED = 80.0, 300.0


def concentration(log_evidence: Array, proba: Array, prior: Array) -> Array:
    """``prior + exp(log_evidence) * proba``, shape (n, k), of log-evidence (n,) and proba (n, k).

    The exponent ends where the dtype of `proba` does. That limits what is shown, not what ranks:
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


def beyond_prior(given: Array | None, alpha: Array, prior: Array) -> Array:
    """Log-evidence (n,) of concentrations alpha (n, k): as given, checked; or what they hold."""
    xp = namespace(alpha)
    if given is None:
        return log_or_minus_inf(xp.sum(alpha - prior, axis=-1))
    given = as_float(given, like=alpha)
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
