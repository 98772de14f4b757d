"""Intervals and samples of Dirichlets, drawn on the host; they carry no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from .array_namespace import Array, as_float, to_numpy


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
