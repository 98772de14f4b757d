"""The last step from z to the pseudo-count, in logarithms."""

from __future__ import annotations

import numpy as np

from ..maths.evidence import capped

__all__ = ["log_evidence"]


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
    for name, number in (("n", n), ("gamma", gamma)):
        if not (np.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be finite and > 0, got {number!r}")
    value = np.log(n) + np.log(gamma) + np.asarray(z, dtype=np.float64)
    return np.asarray(capped(value, max_evidence))
