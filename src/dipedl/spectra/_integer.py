"""Check of an argument that must be an integer."""

from __future__ import annotations

import numpy as np


def integer(name: str, value: object, least: int) -> int:
    """The value, if it is an integer and not below `least`; else TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer >= {least}, got {value!r}; pass int(...)")
    if value < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {value!r}; raise it")
    return int(value)
