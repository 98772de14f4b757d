"""Masked arrays, which no conversion to an array may read through."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmasked(name: str, values: Any) -> Any:
    """`values` as they are, or as a plain array if nothing in them is masked.

    Raises
    ------
    ValueError
        If an entry is masked, also in a list of masked arrays.
    """
    parts = values if isinstance(values, list | tuple) else [values]
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    hidden = sum(int(np.ma.getmaskarray(part).sum()) for part in masked)
    if hidden:
        raise ValueError(
            f"{name} must not be masked, got {hidden} masked entries: what a mask hides is missing."
            f" Leave these rows out, or make them NaN, {name}.filled(np.nan), for an imputer"
        )
    return np.asarray(values) if masked else values
