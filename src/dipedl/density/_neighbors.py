"""Nearest neighbours by exact distances: candidates in float32, decided in float64."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..fitting.threads import one_blas_thread

_CHUNK_BYTES = 1 << 22
_CHUNK_ROWS, _FEW_ROWS = 256, 8
#: Products of a chunk of inputs with all rows: as many as stay in the cache.
_CHUNK_PRODUCTS = 160_000
_ROUNDING = float(np.finfo(np.float32).eps)
#: Below this float32 has no full precision.
_SMALLEST = float(np.finfo(np.float32).tiny)


class _Products(NamedTuple):
    """Rows (m, p) times `scale`, no longer than one, as ``(-2 t, |t|^2)``, (p + 1, m), float32."""

    columns: np.ndarray
    scale: float


#: Of each fitted NearestNeighbors, outside the model: they are neither pickled nor saved.
_PREPARED: WeakKeyDictionary[NearestNeighbors, _Products] = WeakKeyDictionary()


def kth_distance(index: NearestNeighbors, X: np.ndarray) -> np.ndarray:
    """Euclidean distance from each row of X (n, p) to its k-th neighbour in `index`, shape (n,)."""
    return nearest(index, X)[0][:, -1]


def nearest(index: NearestNeighbors, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances to the k nearest rows in `index` of each row of X (n, p), and their numbers.

    Both (n, k), nearest first; ``inf`` where a distance overflows.
    """
    if index._fit_method != "brute":
        with np.errstate(over="ignore", invalid="ignore"):
            return sorted_by_distance(index, X, index.kneighbors(X, return_distance=False))
    n, k = len(X), index.n_neighbors
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.intp)
    # To set the threads takes longer than the search for one row.
    with one_blas_thread(X.shape[1]) if n > _FEW_ROWS else nullcontext():
        for start in range(0, n, _CHUNK_ROWS):
            part = slice(start, start + _CHUNK_ROWS)
            candidates = _candidates(_prepared(index), X[part], k)
            distances[part], rows[part] = _decided(index._fit_X, X[part], *candidates, k)
    return distances, rows


def sorted_by_distance(
    index: NearestNeighbors, X: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distances from row i of X (n, p) to the rows ``rows[i]`` of `index`, and these, in order.

    A search by ``|x|^2 - 2 x.t + |t|^2`` rounds: it would give a training row a positive distance
    to itself. Here distances are taken directly.
    """
    distances = np.empty(rows.shape)
    step = max(1, _CHUNK_BYTES // (8 * X.shape[1] * rows.shape[1]))
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        distances[part] = _distances(X[part, None] - index._fit_X[rows[part]])
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def _distances(gaps: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.sqrt(np.einsum("...j,...j->...", gaps, gaps))
    return np.where(np.isnan(distances), np.inf, distances)


def _prepared(index: NearestNeighbors) -> _Products:
    if index not in _PREPARED:
        rows = index._fit_X
        squares = np.einsum("ij,ij->i", rows, rows)
        scale = 1 / (float(np.sqrt(squares.max())) or 1.0)
        scaled = rows * scale
        columns = np.vstack([-2 * scaled.T, np.einsum("ij,ij->i", scaled, scaled)])
        _PREPARED[index] = _Products(np.ascontiguousarray(columns, dtype=np.float32), scale)
    return _PREPARED[index]


def _candidates(products: _Products, X: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a row of X (n, p) and a row among its k nearest, for all that float32 can tell.

    Two arrays of row numbers; the first ascends.
    """
    queries, lengths, shrink = _queries(X, products.scale)
    m = products.columns.shape[1]
    step = max(1, min(256, max(_CHUNK_PRODUCTS, min(16 * m, 1 << 24)) // m))
    found = []
    for start in range(0, len(X), step):
        part = slice(start, start + step)
        keys = queries[part] @ products.columns
        limit = _limit(_kth_at_most(keys, k), shrink[part], lengths[part], X.shape[1])
        found.append(start * m + np.flatnonzero((keys <= limit[:, None]).ravel()))
    who, which = np.divmod(np.concatenate(found), m)
    return who, which


def _decided(
    rows: np.ndarray, X: np.ndarray, who: np.ndarray, which: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `nearest`, from pairs of a row of X and one of `rows`."""
    distances = np.empty(len(who))
    step = max(1, _CHUNK_BYTES // (8 * X.shape[1]))
    for start in range(0, len(who), step):
        part = slice(start, start + step)
        distances[part] = _distances(X[who[part]] - rows[which[part]])
    first = np.searchsorted(who, np.arange(len(X)))
    place = np.arange(len(who)) - first[who]
    padded = np.full((len(X), place.max() + 1), np.inf)
    padded[who, place] = distances
    chosen = first[:, None] + np.argsort(padded, axis=1, kind="stable")[:, :k]
    return distances[chosen], which[chosen]


def _queries(X: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``s (x, 1)`` of scaled inputs, s so that none is longer than one; their lengths and s."""
    with np.errstate(over="ignore", invalid="ignore"):
        X = X * scale
        shrink = 1 / (np.maximum(np.abs(X).max(axis=1), 1.0) * np.sqrt(X.shape[1]))
        queries = np.column_stack([X * shrink[:, None], shrink])
        # Infinitely far from every row: which ones are nearest does not matter.
        queries[~np.isfinite(queries).all(axis=1)] = np.eye(1, queries.shape[1], X.shape[1])
        directions = queries[:, :-1]
        lengths = np.sqrt(np.einsum("ij,ij->i", directions, directions)) / queries[:, -1]
    return queries.astype(np.float32), lengths, queries[:, -1]


def _kth_at_most(keys: np.ndarray, k: int) -> np.ndarray:
    """For each row of keys (n, m) a number that k of them do not exceed, close to the k-th, (n,).

    The lowest of each of many blocks are distinct entries: the k-th lowest of these will do.
    """
    n, m = keys.shape
    size = max(1, m // max(256, 16 * k))
    width = m // size
    lowest = keys[:, : size * width].reshape(n, size, width).min(axis=1)
    return np.asarray(np.partition(lowest, k - 1, axis=1)[:, k - 1], dtype=np.float64)


def _limit(kth: np.ndarray, shrink: np.ndarray, lengths: np.ndarray, p: int) -> np.ndarray:
    """Largest key that a row among the k nearest may have for all that is rounded in float32, (n,).

    A key is ``s (|t|^2 - 2 x.t)``; the product of p + 1 terms errs by no more than
    ``c s (2 |x| |t| + |t|^2)``. A row among the nearest is no longer than one, nor than the r with
    ``(r - |x|)^2 = d^2 + c (2 |x| r + r^2)``, d the distance that the k-th key shows.
    """
    c = (p + 8) * _ROUNDING
    with np.errstate(over="ignore", invalid="ignore"):
        squared = np.maximum(kth / shrink + lengths**2, 0.0)
        root = np.sqrt(c * (3 + c) * lengths**2 + (1 - c) * squared)
        longest = np.fmin(1.0, ((1 + c) * lengths + root) / (1 - c))
        error = c * longest * (2 * lengths + longest) * shrink
        limit = kth + 2 * (error + p * _SMALLEST)
    return np.asarray(np.nextafter(limit.astype(np.float32), np.float32(np.inf)))
