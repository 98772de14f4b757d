"""One score of several components, each of which may object; for numpy arrays and torch tensors."""

from __future__ import annotations

from collections.abc import Sequence

from .array_namespace import Array, namespace, special_functions

#: Weight of the mean normal score, which orders what no component objects to.
TIE_BREAK = 1e-3
#: Standard deviations below its median at which a density begins to object.
MARGIN = 1.0


def fused_score(
    z: Sequence[Array] | Array, margins: Sequence[float], weights: Sequence[float]
) -> Array:
    """``-sqrt(-2 sum_c w_c log Phi(z_c + t_c)) + 1e-3 mean_c z_c``, shape (n,).

    z: normal scores (c, n) of c components; t: margins (c,); w: weights (c,).
    """
    # Skip zero weights: 0 * inf is NaN.
    log_ndtr = special_functions(z[0]).log_ndtr
    objections = [
        weight * log_ndtr(scores + margin)
        for scores, margin, weight in zip(z, margins, weights, strict=True)
        if weight > 0
    ]
    return -namespace(z[0]).sqrt(-2 * sum(objections)) + TIE_BREAK * (sum(z) / len(z))
