"""Arrays of a file of spectra: rows with full coverage, edges filled."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .fetch import fetch

FULL_COVERAGE = 0.985  # smallest share of observed pixels


def arrays(name: str, data_dir: str | os.PathLike[str] | None) -> dict[str, NDArray[Any]]:
    """All arrays of a published file."""
    with np.load(fetch(name, data_dir), allow_pickle=False) as content:
        return dict(content)


def filled(flux: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Flux (n, p) without NaN, and the mask of former NaN.

    Unobserved pixels at an edge get the nearest observed value; others are interpolated.
    """
    mask = ~np.isfinite(flux)
    whole = flux.copy()
    for row in np.flatnonzero(mask.any(axis=1)):
        seen = np.flatnonzero(~mask[row])
        lost = np.flatnonzero(mask[row])
        whole[row, lost] = np.interp(lost, seen, flux[row, seen])
    return whole, mask
