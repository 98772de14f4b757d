"""Nearest neighbours: exact, by products in float32 and distances in float64, or through faiss."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..fitting import one_blas_thread
from ..plugins import explain_missing

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
#: The centre of a cell of faiss is learned from this many rows.
_ROWS_PER_CELL = 40

#: Blocks of rows, or the index of faiss, of each fitted NearestNeighbors, with the factor that
#: scales the rows: outside the model, so that they are neither pickled nor saved.
_BLOCKS: WeakKeyDictionary[NearestNeighbors, tuple[np.ndarray, float]] = WeakKeyDictionary()
_CELLS: WeakKeyDictionary[NearestNeighbors, tuple[Any, float]] = WeakKeyDictionary()


def nearest_rows(index: NearestNeighbors, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest rows in `index` of each row of X (n, p), and their numbers.

    Both (n, k), nearest first; ``inf`` where a distance overflows.
    """
    if index._fit_method != "brute":
        with np.errstate(over="ignore", invalid="ignore"):
            return sort_by_distance(index, X, index.kneighbors(X, return_distance=False))
    n, k = len(X), index.n_neighbors
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.intp)
    with one_blas_thread(X.shape[1]) if n > _FEW_ROWS else nullcontext():
        for part in _slices(n, _CHUNK_ROWS):
            _search(index, X[part], distances[part], rows[part])
    return distances, rows


def sort_by_distance(
    index: NearestNeighbors, X: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted distances from row i of X (n, p) to the rows ``rows[i]`` of `index`, and these.

    A search by ``|x|^2 - 2 x.t + |t|^2`` rounds: it would give a training row a positive distance
    to itself. Here distances are taken directly.
    """
    distances = np.empty(rows.shape)
    for part in _slices(len(X), _CHUNK_BYTES // (8 * X.shape[1] * rows.shape[1])):
        distances[part] = _lengths(X[part, None] - index._fit_X[rows[part]])
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def _lengths(gaps: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("...j,...j->...", gaps, gaps))
    return np.where(np.isnan(lengths), np.inf, lengths)


def _slices(n: int, step: int) -> Iterator[slice]:
    step = max(1, step)
    return (slice(start, start + step) for start in range(0, n, step))


def _blocks_and_scale(index: NearestNeighbors) -> tuple[np.ndarray, float]:
    """Return rows t times `scale`, no longer than one, as ``(-2 t, |t|^2)``, float32; and `scale`.

    Shape (blocks, size, p + 1); the last block is filled up with copies of the last row.
    """
    if index not in _BLOCKS:
        rows = index._fit_X
        m, p = rows.shape
        scale = 1 / (float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max())) or 1.0)
        size = min(_BLOCK, max(1, m // _groups(index.n_neighbors)))
        scaled = rows[np.minimum(np.arange(-(-m // size) * size), m - 1)] * scale
        columns = np.column_stack([-2 * scaled, np.einsum("ij,ij->i", scaled, scaled)])
        _BLOCKS[index] = columns.astype(np.float32).reshape(-1, size, p + 1), scale
    return _BLOCKS[index]


def _groups(k: int) -> int:
    """Groups of rows of which the k-th lowest is close to the k-th lowest of all rows."""
    return max(_GROUPS, 16 * k)


def _search(
    index: NearestNeighbors, X: np.ndarray, distances: np.ndarray, rows: np.ndarray
) -> None:
    """Write the answer of `nearest_rows` for X (n, p)."""
    blocks, scale = _blocks_and_scale(index)
    m, k = len(index._fit_X), index.n_neighbors
    if len(X) <= _FEW_ROWS:
        # Fewer and longer steps: every row is a block.
        blocks = blocks.reshape(-1, 1, X.shape[1] + 1)[:m]
    queries, lengths, shrink = _queries(X, scale)
    lowest = _lowest_keys(blocks, queries)
    limit = _limit(_kth_at_most(lowest, k), shrink, lengths, X.shape[1])
    near = np.ascontiguousarray((lowest <= limit).T)
    for part in _slices(len(X), _DECIDED_ROWS):
        who, which = _candidates(blocks, queries[part], near[part], limit[part], m)
        distances[part], rows[part] = _decide(index._fit_X, X[part], who, which, k)


def _queries(X: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``s (x, 1)`` of scaled inputs, s so that none is longer than one; their lengths; s."""
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


def _lowest_keys(blocks: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Return the lowest key of each block for each of n inputs, shape (blocks, n)."""
    columns = np.ascontiguousarray(queries.T)
    lowest = np.empty((len(blocks), len(queries)), dtype=np.float32)
    for part in _slices(len(blocks), _TILE // len(queries)):
        found = np.matmul(blocks[part, 0], columns, out=lowest[part])
        other = np.empty_like(found)
        for place in range(1, blocks.shape[1]):
            np.matmul(blocks[part, place], columns, out=other)
            np.minimum(found, other, out=found)
    return lowest


def _kth_at_most(lowest: np.ndarray, k: int) -> np.ndarray:
    """Return for each of n inputs a number that k keys do not exceed, close to the k-th, (n,).

    The lowest of each of many groups are distinct keys: the k-th lowest of these will do.
    """
    count, n = lowest.shape
    size = max(1, count // _groups(k))
    groups = lowest[: count // size * size].reshape(-1, size, n).min(axis=1)
    kth = np.partition(np.ascontiguousarray(groups.T), k - 1, axis=1)[:, k - 1]
    return np.asarray(kth, dtype=np.float64)


def _limit(kth: np.ndarray, shrink: np.ndarray, lengths: np.ndarray, p: int) -> np.ndarray:
    """Return the largest key of a row among the k nearest, for all that float32 rounds, (n,).

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


def _candidates(
    blocks: np.ndarray, queries: np.ndarray, near: np.ndarray, limit: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of one of n inputs and one of m rows with a key no higher than the `limit`.

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


def _decide(
    rows: np.ndarray, X: np.ndarray, who: np.ndarray, which: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answer of `nearest_rows` from pairs of a row of X and one of `rows`."""
    distances = np.empty(len(who))
    for part in _slices(len(who), _CHUNK_BYTES // (8 * X.shape[1])):
        distances[part] = _lengths(X[who[part]] - rows[which[part]])
    first = np.searchsorted(who, np.arange(len(X)))
    place = np.arange(len(who)) - first[who]
    padded = np.full((len(X), place.max() + 1), np.inf)
    padded[who, place] = distances
    chosen = first[:, None] + np.argsort(padded, axis=1, kind="stable")[:, :k]
    return distances[chosen], which[chosen]


def approximate_rows(index: NearestNeighbors, X: np.ndarray, k: int, share: float) -> np.ndarray:
    """Return the numbers (n, k) of about the k nearest rows in `index` of each row of X (n, p).

    An inverted file of faiss is built once, and again after loading; `share` of its cells is
    searched, and with 1 only float32 rounding is left.
    """
    faiss = import_faiss()
    if index not in _CELLS:
        rows = index._fit_X
        scale = 1.0 / (float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max())) or 1.0)
        _CELLS[index] = _inverted_file(faiss, np.asarray(rows * scale, dtype=np.float32)), scale
    cells, scale = _CELLS[index]
    # A query far away keeps its direction: in float32 its square would be infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        longest = np.abs(X).max(axis=1, keepdims=True)
        queries = np.where(longest * scale > 1e6, X / longest * 1e6, X * scale)
    queries = np.ascontiguousarray(queries, dtype=np.float32)

    def search(queries: np.ndarray, probes: int) -> np.ndarray:
        parameters = faiss.SearchParametersIVF(nprobe=probes)
        return np.asarray(cells.search(queries, k, params=parameters)[1])

    found = search(queries, max(1, round(share * cells.nlist)))
    short = (found < 0).any(axis=1)
    if short.any():
        found[short] = search(queries[short], cells.nlist)
    return found


def _inverted_file(faiss: Any, rows: np.ndarray) -> Any:
    n, p = rows.shape
    cells = max(1, min(round(2 * np.sqrt(n)), n // _ROWS_PER_CELL))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(p), p, cells)
    # More rows than these would sharpen the centres little, and cost most of the building.
    index.cp.max_points_per_centroid = _ROWS_PER_CELL
    # faiss seeds its k-means itself, always alike.
    index.train(rows)
    index.add(rows)
    return index


def import_faiss() -> Any:
    """Import the module faiss, or raise an ImportError that names the extra."""
    try:
        import faiss
    except ImportError as error:
        raise explain_missing(error, "KNNDensity(index='faiss')") from error
    return faiss
