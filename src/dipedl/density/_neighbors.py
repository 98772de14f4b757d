"""Nearest neighbours by exact distances: candidates in float32, decided in float64."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..fitting import one_blas_thread

_CHUNK_BYTES = 1 << 22
#: Inputs whose products are made at once, and those that are decided at once.
_CHUNK_ROWS, _DECIDED_ROWS = 500, 250
#: So few inputs take less time than to set the threads.
_FEW_ROWS = 8
#: Products of some inputs with some rows: as many as stay in the cache.
_TILE = 40_000
#: Rows of a block at most, and groups of blocks at least.
_BLOCK, _GROUPS = 16, 64
_ROUNDING = float(np.finfo(np.float32).eps)
#: Below this float32 has no full precision.
_SMALLEST = float(np.finfo(np.float32).tiny)


class _Blocks(NamedTuple):
    """Rows (m, p) times `scale`, no longer than one, as ``(-2 t, |t|^2)`` in blocks, float32.

    Shape (blocks, size, p + 1); the last block is filled up with copies of the last row.
    """

    rows: np.ndarray
    scale: float


#: Of each fitted NearestNeighbors, outside the model: they are neither pickled nor saved.
_PREPARED: WeakKeyDictionary[NearestNeighbors, _Blocks] = WeakKeyDictionary()


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
    with one_blas_thread(X.shape[1]) if n > _FEW_ROWS else nullcontext():
        for part in _slices(n, _CHUNK_ROWS):
            _search(index, X[part], distances[part], rows[part])
    return distances, rows


def sorted_by_distance(
    index: NearestNeighbors, X: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distances from row i of X (n, p) to the rows ``rows[i]`` of `index`, and these, in order.

    A search by ``|x|^2 - 2 x.t + |t|^2`` rounds: it would give a training row a positive distance
    to itself. Here distances are taken directly.
    """
    distances = np.empty(rows.shape)
    for part in _slices(len(X), _CHUNK_BYTES // (8 * X.shape[1] * rows.shape[1])):
        distances[part] = _distances(X[part, None] - index._fit_X[rows[part]])
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def _distances(gaps: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.sqrt(np.einsum("...j,...j->...", gaps, gaps))
    return np.where(np.isnan(distances), np.inf, distances)


def _prepared(index: NearestNeighbors) -> _Blocks:
    if index not in _PREPARED:
        rows = index._fit_X
        m, p = rows.shape
        squares = np.einsum("ij,ij->i", rows, rows)
        scale = 1 / (float(np.sqrt(squares.max())) or 1.0)
        size = min(_BLOCK, max(1, m // _groups(index.n_neighbors)))
        scaled = rows[np.minimum(np.arange(-(-m // size) * size), m - 1)] * scale
        columns = np.column_stack([-2 * scaled, np.einsum("ij,ij->i", scaled, scaled)])
        _PREPARED[index] = _Blocks(columns.astype(np.float32).reshape(-1, size, p + 1), scale)
    return _PREPARED[index]


def _groups(k: int) -> int:
    """Groups of rows of which the k-th lowest is close to the k-th lowest of all rows."""
    return max(_GROUPS, 16 * k)


def _slices(n: int, step: int) -> Iterator[slice]:
    """Slices of n rows, `step` of them each, or one."""
    step = max(1, step)
    return (slice(start, start + step) for start in range(0, n, step))


def _search(
    index: NearestNeighbors, X: np.ndarray, distances: np.ndarray, rows: np.ndarray
) -> None:
    """Write what `nearest` gives for X (n, p)."""
    blocks, scale = _prepared(index)
    m, k = len(index._fit_X), index.n_neighbors
    if len(X) <= _FEW_ROWS:
        # Fewer and longer steps: every row is a block.
        blocks = blocks.reshape(-1, 1, X.shape[1] + 1)[:m]
    queries, lengths, shrink = _queries(X, scale)
    lowest = _lowest(blocks, queries)
    limit = _limit(_kth_at_most(lowest, k), shrink, lengths, X.shape[1])
    near = np.ascontiguousarray((lowest <= limit).T)
    for part in _slices(len(X), _DECIDED_ROWS):
        who, which = _candidates(blocks, queries[part], near[part], limit[part], m)
        distances[part], rows[part] = _decided(index._fit_X, X[part], who, which, k)


def _lowest(blocks: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Lowest key of each block for each of n inputs, shape (blocks, n)."""
    columns = np.ascontiguousarray(queries.T)
    lowest = np.empty((len(blocks), len(queries)), dtype=np.float32)
    for part in _slices(len(blocks), _TILE // len(queries)):
        found = np.matmul(blocks[part, 0], columns, out=lowest[part])
        other = np.empty_like(found)
        for place in range(1, blocks.shape[1]):
            np.matmul(blocks[part, place], columns, out=other)
            np.minimum(found, other, out=found)
    return lowest


def _candidates(
    blocks: np.ndarray, queries: np.ndarray, near: np.ndarray, limit: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of one of n inputs and one of m rows, of all whose key is no higher than the `limit`.

    Two arrays of row numbers, in order; `near` (n, blocks) says which blocks have such a key.
    """
    count, size, _ = blocks.shape
    who, block = np.divmod(np.flatnonzero(near), count)
    if size == 1:
        return who, block
    pairs = []
    for part in _slices(len(who), _CHUNK_BYTES // blocks[0].nbytes):
        # Kernels of OpenBLAS may raise the flag of an invalid value where every number is finite.
        with np.errstate(invalid="ignore"):
            keys = blocks.take(block[part], axis=0) @ queries[who[part], :, None]
        hit, place = np.divmod(np.flatnonzero(keys[:, :, 0] <= limit[who[part], None]), size)
        pairs.append((who[part][hit], block[part][hit] * size + place))
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    return first[second < m], second[second < m]


def _decided(
    rows: np.ndarray, X: np.ndarray, who: np.ndarray, which: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `nearest`, from pairs of a row of X and one of `rows`."""
    distances = np.empty(len(who))
    for part in _slices(len(who), _CHUNK_BYTES // (8 * X.shape[1])):
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
        X = X * shrink[:, None]
        # Infinitely far from every row: which ones are nearest does not matter.
        endless = ~np.isfinite(X).all(axis=1)
        X[endless], shrink[endless] = 0.0, 1.0
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X)) / shrink
    queries = np.empty((len(X), X.shape[1] + 1), dtype=np.float32)
    queries[:, :-1], queries[:, -1] = X, shrink
    return queries, lengths, shrink


def _kth_at_most(lowest: np.ndarray, k: int) -> np.ndarray:
    """For each of n inputs a number that k keys do not exceed, close to the k-th, shape (n,).

    The lowest of each of many groups are distinct keys: the k-th lowest of these will do.
    """
    count, n = lowest.shape
    size = max(1, count // _groups(k))
    groups = lowest[: count // size * size].reshape(-1, size, n).min(axis=1)
    kth = np.partition(np.ascontiguousarray(groups.T), k - 1, axis=1)[:, k - 1]
    return np.asarray(kth, dtype=np.float64)


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
