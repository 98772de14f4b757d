"""Arrays of an NPZ file as the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from .mistake import Mistake, listed


def npz_frame(path: Path) -> pd.DataFrame:
    """A column for each array (n,) and for each column of an array (n, d), named "X0", "X1", ..."""
    with np.load(path, allow_pickle=False) as arrays:
        columns = [c for name in arrays.files for c in _columns(name, arrays[name], path)]
    n = {len(values) for _, values in columns}
    if len(n) > 1:
        raise Mistake(f"{path} holds arrays of {listed(sorted(n))} rows: all must have as many")
    return pd.DataFrame(dict(columns))


def _columns(name: str, array: np.ndarray, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    if array.ndim not in (1, 2):
        raise Mistake(
            f"{path} holds the array {name!r} of shape {array.shape}: give rows by columns, (n, d)"
        )
    if array.ndim == 1:
        yield name, array
    else:
        yield from ((f"{name}{j}", array[:, j]) for j in range(array.shape[1]))
