"""What is too large to compute with: numbers, infinity among them, and arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

#: Largest number of float32, in which trees and networks compute.
_LARGEST = float(np.finfo(np.float32).max)
#: The squares of larger numbers, summed over rows, overflow.
LARGEST_SQUARED = 1e150
#: What to do about an infinite number.
CORRECT = "correct the entry, or make it NaN for an imputer"


def check_magnitude(name: str, X: Any, largest: float = _LARGEST) -> None:
    """Raise ValueError with row and column if a finite number of X (n, d) is beyond `largest`."""
    if within(X, largest):
        return

    def too_large(values: np.ndarray) -> np.ndarray:
        if float(np.finfo(values.dtype).max) <= largest:
            return np.zeros(values.shape, bool)
        return np.asarray(np.isfinite(values) & (np.abs(values) > largest))

    for row, column, value in _places(X, too_large):
        raise ValueError(
            f"{name} must hold numbers up to {largest:.2g}, got {value:g} at row {row}, column "
            f"{column!r}: the computation overflows; correct the entry, or rescale the column"
        )


def within(X: Any, largest: float) -> bool:
    """Whether X is an array of floats that are surely finite and up to `largest`, in one pass."""
    if type(X) is not np.ndarray or X.dtype.kind != "f" or not X.flags.forc:
        return False
    flat = X.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        # False where one is NaN; squares of float32 overflow early, and a second look is taken.
        return bool(flat @ flat <= min(largest, float(np.finfo(X.dtype).max)) ** 2)


def check_no_infinity(name: str, X: Any) -> None:
    """Raise ValueError with row and column if a number of X (n, d) is infinite."""
    for row, column, value in _places(X, np.isinf):
        raise ValueError(
            f"{name} must be finite, got {value} at row {row}, column {column!r}; {CORRECT}"
        )


def _places(X: Any, bad: Callable[[np.ndarray], np.ndarray]) -> Iterator[tuple[int, Any, float]]:
    """Row, column and value of a bad number of each column of a table, of a matrix or an array."""
    if hasattr(X, "columns"):
        for name in X.columns:
            yield from ((row, name, v) for row, _, v in _places(np.asarray(X[name]), bad))
        return
    X = X.tocoo() if sparse.issparse(X) else np.asarray(X)
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    found = np.flatnonzero(bad(values) if values.dtype.kind == "f" else ())
    if not found.size:
        return
    place = int(found[0])
    if sparse.issparse(X):
        yield int(X.row[place]), int(X.col[place]), float(values[place])
    else:
        row, *columns = (int(i) for i in np.unravel_index(place, values.shape))
        yield row, columns[0] if len(columns) == 1 else columns, float(values.flat[place])


def check_room(what: str, needed: int, remedy: str) -> None:
    """Raise MemoryError if `what` takes more bytes than this machine has, before it takes them."""
    there = _memory()
    if needed > there:
        raise MemoryError(
            f"{what} takes {needed / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f}; "
            f"{remedy}"
        )


def _memory() -> float:
    """Bytes of this machine; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return np.inf
