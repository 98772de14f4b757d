"""Distance to the k-th nearest neighbour, without the rounding of the fast search."""

from __future__ import annotations

import numpy as np
from sklearn.neighbors import NearestNeighbors


def kth_distance(index: NearestNeighbors, X: np.ndarray) -> np.ndarray:
    """Euclidean distance from each row of X (n, p) to its k-th neighbour in `index`, shape (n,)."""
    nearest = index.kneighbors(X, return_distance=False)[:, -1]
    # With many features the search takes |x|^2 - 2 x.t + |t|^2, whose rounding would give a
    # training row a positive distance to itself: the distance is taken again, directly.
    gap = X - index._fit_X[nearest]
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", gap, gap)))
