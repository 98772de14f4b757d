"""Folds: no statistic shall come from points that the density was fitted on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

__all__ = ["content_folds", "row_hash", "splits"]

IN_SAMPLE = "in-sample"
_SMALLEST_DISTINCT = 3


def row_hash(X: Any, random_state: int = 0) -> np.ndarray:
    """A 64-bit hash of the content of each row, shape (n,): equal rows have equal hashes.

    Rows that are not numeric (text columns, sparse matrices) are hashed by position.
    """
    try:
        values = None if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None:
        values = np.arange(X.shape[0], dtype=np.float64)
    values = values.reshape(len(values), -1)
    rng = np.random.default_rng(random_state)
    factors = rng.integers(0, 2**63, values.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = np.empty(len(values), dtype=np.uint64)
    step = max(1, (1 << 23) // values.shape[1])
    for i in range(0, len(values), step):
        # + 0.0 turns -0.0 into 0.0; integer sums wrap and do not depend on the order of summation.
        bits = np.ascontiguousarray(values[i : i + step] + 0.0).view(np.uint64)
        mixed[i : i + step] = ((bits ^ (bits >> np.uint64(32))) * factors).sum(axis=1)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    return mixed ^ (mixed >> np.uint64(33))


def content_folds(X: Any, y: np.ndarray, n_folds: int, random_state: int = 0) -> np.ndarray:
    """Fold of each row, shape (n,), stratified by class; -1 for rows that are never held out.

    The fold depends on what a row holds, not on where it stands: copies of a row share a fold, so
    that none is scored by a density fitted on its twin, and a weight of 2 is the same as two
    copies. In a class with fewer than three distinct rows copies are spread, and a class of fewer
    than three rows is never held out.
    """
    keys = row_hash(X, random_state)
    fold = np.full(len(keys), -1)
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        order = np.unique(keys[rows], return_inverse=True)[1]
        if order.max() + 1 < _SMALLEST_DISTINCT:
            order = np.argsort(np.argsort(order, kind="stable"), kind="stable")
        if order.max() + 1 >= _SMALLEST_DISTINCT:
            fold[rows] = order % n_folds
    return fold


def splits(
    cv: Any, X: Any, y: np.ndarray, present: np.ndarray, random_state: int = 0
) -> tuple[Iterable[tuple[np.ndarray, np.ndarray]], str]:
    """(train, held-out) index pairs for `cv`, and what to call the held-out scores.

    Parameters
    ----------
    cv : int, cross-validation splitter or iterable of index pairs
        An int >= 2 gives `content_folds`.
    X, y : array-like (n, d) and ndarray (n,)
        Inputs and labels.
    present : bool ndarray, shape (n,)
        Rows of positive weight; the others are never held out by `content_folds`.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be >= 2, a splitter or 'in-sample', got {cv!r}")
        fold = np.full(len(y), -1)
        fold[present] = content_folds(_safe_indexing(X, present), y[present], int(cv), random_state)
        if (fold < 0).all():
            raise ValueError(
                f"cv={cv} needs a class with at least {_SMALLEST_DISTINCT} samples to hold some "
                f"out, got n_samples = {int(present.sum())} in {len(np.unique(y[present]))} "
                "classes; use cv='in-sample'"
            )
        return _fold_pairs(fold), f"{cv}-fold cross-fitting"
    if isinstance(cv, str):
        raise ValueError(f"cv must be an int >= 2, a splitter or 'in-sample', got {cv!r}")
    splitter = check_cv(cv, y, classifier=True)
    return splitter.split(np.zeros(len(y)), y), f"held-out parts of {type(splitter).__name__}"


def _fold_pairs(fold: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for j in range(fold.max() + 1):
        held = fold == j
        if held.any():
            yield np.flatnonzero(~held), np.flatnonzero(held)
