"""The uncertainties that a classifier with a density has, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .scores import entropy, max_prob

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
