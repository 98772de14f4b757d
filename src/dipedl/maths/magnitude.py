"""Numbers too large to compute with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

#: Largest number of float32, in which trees and networks compute.
_LARGEST = float(np.finfo(np.float32).max)
#: The squares of larger numbers, summed over rows, overflow.
LARGEST_SQUARED = 1e150


def check_magnitude(name: str, X: Any, largest: float = _LARGEST) -> None:
    """Raise ValueError with row and column if a finite number of X (n, d) is beyond `largest`."""
    for row, column, value in _too_large(X, largest):
        raise ValueError(
            f"{name} must hold numbers up to {largest:.2g}, got {value:g} at row {row}, column "
            f"{column!r}: the computation overflows; correct the entry, or rescale the column"
        )


def _too_large(X: Any, largest: float) -> Iterator[tuple[int, Any, float]]:
    """Row, column and value of numbers of a table, a sparse matrix or an array beyond `largest`."""
    if hasattr(X, "columns"):
        for name in X.columns:
            yield from ((row, name, v) for row, _, v in _too_large(np.asarray(X[name]), largest))
        return
    X = X.tocoo() if sparse.issparse(X) else np.asarray(X)
    values = X.data if sparse.issparse(X) else X
    if values.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            values = values.astype(np.float64)
    bad = np.zeros(0, bool)
    if values.dtype.kind == "f" and float(np.finfo(values.dtype).max) > largest:
        bad = np.isfinite(values) & (np.abs(values) > largest)
    if not bad.any():
        return
    place = int(np.flatnonzero(bad)[0])
    if sparse.issparse(X):
        yield int(X.row[place]), int(X.col[place]), float(values[place])
    else:
        row, *columns = (int(i) for i in np.unravel_index(place, values.shape))
        yield row, columns[0] if len(columns) == 1 else columns, float(values.flat[place])
