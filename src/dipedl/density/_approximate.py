"""Approximate nearest neighbours through the inverted file of faiss."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.neighbors import NearestNeighbors

from .._plugins import explain_missing

#: Index of each fitted NearestNeighbors, outside the model: it is neither pickled nor saved.
_BUILT: WeakKeyDictionary[NearestNeighbors, Any] = WeakKeyDictionary()
#: A cell's centre is learned from this many rows.
_ROWS_PER_CELL = 40


def approximate_neighbors(
    fitted: NearestNeighbors, X: np.ndarray, k: int, share: float
) -> np.ndarray:
    """Indices (n, k) of about the k nearest of the rows that `fitted` holds, nearest first.

    X (n, p) is centred as the rows are. The index is built once, and again after loading; `share`
    of its cells is searched, and with 1 only float32 rounding is left.
    """
    index, scale = _index(fitted)
    # A query far away keeps its direction: in float32 its square would be infinite.
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.abs(X).max(axis=1, keepdims=True) * scale
        queries = np.where(reach > 1e6, X / np.abs(X).max(axis=1, keepdims=True) * 1e6, X * scale)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    found = _search(index, queries, k, max(1, round(share * index.nlist)))
    short = (found < 0).any(axis=1)
    if short.any():
        found[short] = _search(index, queries[short], k, index.nlist)
    return found


def _index(fitted: NearestNeighbors) -> tuple[Any, float]:
    """The inverted file of the rows and the factor that brings them into the unit ball."""
    if fitted not in _BUILT:
        rows = fitted._fit_X
        scale = 1.0 / (float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max())) or 1.0)
        _BUILT[fitted] = (_built(np.asarray(rows * scale, dtype=np.float32)), scale)
    built: tuple[Any, float] = _BUILT[fitted]
    return built


def _built(rows: np.ndarray) -> Any:
    faiss = import_faiss()
    n, p = rows.shape
    cells = max(1, min(round(2 * np.sqrt(n)), n // _ROWS_PER_CELL))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(p), p, cells)
    # More rows than these would sharpen the centres little, and cost most of the building.
    index.cp.max_points_per_centroid = _ROWS_PER_CELL
    # faiss seeds its k-means itself, always alike.
    index.train(rows)
    index.add(rows)
    return index


def _search(index: Any, queries: np.ndarray, k: int, cells: int) -> np.ndarray:
    parameters = import_faiss().SearchParametersIVF(nprobe=cells)
    return np.asarray(index.search(queries, k, params=parameters)[1])


def import_faiss() -> Any:
    """The module faiss, or an ImportError that names the extra."""
    try:
        import faiss
    except ImportError as error:
        raise explain_missing(error, "KNNDensity(index='faiss')") from error
    return faiss
