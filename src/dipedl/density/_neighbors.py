"""Distances to nearest neighbours, without the rounding of the fast search."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors

_CHUNK_BYTES = 1 << 25


def kth_distance(index: NearestNeighbors, X: np.ndarray) -> np.ndarray:
    """Euclidean distance from each row of X (n, p) to its k-th neighbour in `index`, shape (n,)."""
    nearest = index.kneighbors(X, return_distance=False)
    return distances_to(index._fit_X, X, nearest[:, -1:])[:, 0]


def distances_to(rows: np.ndarray, X: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Euclidean distances from row i of X (n, p) to ``rows[chosen[i]]``, shape (n, k) as `chosen`.

    With many features a search takes |x|^2 - 2 x.t + |t|^2, whose rounding would give a training
    row a positive distance to itself: here distances are taken directly.
    """
    distance = np.empty(chosen.shape)
    step = max(1, _CHUNK_BYTES // (8 * rows.shape[1] * chosen.shape[1]))
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        gap = X[part, None] - rows[chosen[part]]
        distance[part] = np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
    return distance
