"""Checks of arguments: integers and grids of wavelengths."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def integer(name: str, value: object, least: int) -> int:
    """The value, if it is an integer and not below `least`; else TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}; pass int(...)")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}; raise it")
    return int(value)


def increasing_grid(name: str, values: Any) -> NDArray[np.float64]:
    """The wavelengths (p,), if they increase and are two or more."""
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim != 1 or len(grid) < 2 or not np.all(np.diff(grid) > 0):
        raise ValueError(
            f"{name} must be an increasing array of at least 2 wavelengths, got shape "
            f"{grid.shape}; sort the pixels"
        )
    return grid
