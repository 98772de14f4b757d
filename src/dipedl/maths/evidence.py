"""The step from a score to a Dirichlet: Definition 3.1, once for numpy arrays and torch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .array_namespace import Array, as_float, namespace, special_functions

#: Largest exponent of evidence that a concentration shows, in float32 and in float64.
DISPLAYED_FLOAT32, DISPLAYED = 80.0, 300.0


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
