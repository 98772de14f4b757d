"""Rows that occur more than once where values are so fine that none should."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..fitting.progress import warn_caller
from ..inputs import column, is_frame
from .crossfit import row_hash

#: A column of which more than this share of different rows have a value of their own is continuous,
_FINE = 0.5
#: unless more than this share of the steps from one value to the next are the same: a grid.
_ON_GRID = 0.1
#: Of fewer different rows nothing can be said.
_FEWEST = 30
#: A smaller share of copies among the rows hardly moves a threshold.
_MANY = 0.05


def warn_of_copies(X: Any, Z: np.ndarray, *, dealt: bool) -> bool:
    """Whether many rows of X (n, d) are copies of others, by no chance, with a warning.

    Values of a continuous column are looked at, of X if it holds numbers, else of its features Z
    (n, p). Rows of a few categories or of rounded numbers repeat, and so will new ones. `dealt`
    says whether folds are dealt out by content, which keeps copies together.
    """
    copies = _copies(row_hash(X), _columns(X, Z))
    if copies <= _MANY * len(Z):
        return False
    effect = (
        "copies are kept together, so that no row is held out of a fit on its copy;"
        if dealt
        else "cv may hold a row out of a fit on its copy, and then too many new rows are flagged: "
        "leave cv at its default or give a splitter that keeps copies together;"
    )
    warn_caller(
        f"{copies} of {len(Z)} rows are copies of other rows, and their values are too fine for "
        f"chance: {effect} drop duplicates, or count them by sample_weight"
    )
    return True


def _columns(X: Any, Z: np.ndarray) -> Iterable[np.ndarray]:
    """Columns of numbers, (n,) each: of a table or an array, else of the features."""
    if is_frame(X):
        parts = (np.asarray(column(X, j)) for j in range(X.shape[1]))
        return [part for part in parts if part.dtype.kind in "iuf"]
    numeric = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    return X.T if numeric else Z.T


def _copies(keys: np.ndarray, columns: Iterable[np.ndarray]) -> int:
    """Rows that repeat another one, by the continuous column that shows the most of them."""
    first, row = np.unique(keys, return_index=True, return_inverse=True)[1:]
    if len(first) == len(keys) or len(first) < _FEWEST:
        return 0
    return max((_repeats(values[first], row) for values in columns), default=0)


def _repeats(values: np.ndarray, row: np.ndarray) -> int:
    """Repeats of rows with a value of their own; 0 if the column is not continuous.

    `values` (m,) are those of the different rows, `row` (n,) says which of these each row is. Gaps,
    and what was put into them, are shared by rows that differ.
    """
    distinct, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    own = (counts == 1)[where] & np.isfinite(values)
    if own.sum() <= _FINE * len(values) or _on_grid(distinct[np.isfinite(distinct)]):
        return 0
    return int(own[row].sum() - own.sum())


def _on_grid(distinct: np.ndarray) -> bool:
    """Whether ascending values lie on a grid that is not much finer than they are many."""
    steps = np.diff(distinct.astype(np.float64))
    same = np.unique(np.round(steps / np.median(steps), 6), return_counts=True)[1]
    return bool(same.max() > _ON_GRID * len(steps))
