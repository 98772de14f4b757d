"""Arrays of files of spectra; galaxies against quasars as a `Dataset`, with stars as OOD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra.resampling import fill_gaps
from dipedl.apps.spectra.spectra import CLASSES, Spectra
from dipedl.datasets.dataset import Dataset, Provenance

from .fetch import DataDir, fetch

KNOWN = CLASSES[:2]
FULL_COVERAGE = 0.985  # smallest share of observed pixels
_TEST_SHARE = 0.2


def arrays(name: str, data_dir: DataDir) -> dict[str, NDArray[Any]]:
    """Return the arrays of a published file by name."""
    with np.load(fetch(name, data_dir), allow_pickle=False) as content:
        return dict(content)


def over_median(flux: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Flux (n, p) without NaN, over the median of its spectrum; the mask of former NaN.

    Unobserved pixels at an edge get the nearest observed value; others are interpolated.
    """
    flux = flux.astype(np.float32)
    mask = ~np.isfinite(flux)
    flux = fill_gaps(flux, mask, np.arange(flux.shape[1]))
    flux /= np.median(flux, axis=1, keepdims=True)
    return flux, mask


def stars_unknown(
    name: str,
    spectra: Spectra,
    random_state: int,
    provenance: tuple[Provenance, ...],
    ood: Mapping[str, NDArray[Any]] | None = None,
) -> Dataset:
    """Data set of the known classes; a fifth of their objects is the test set."""
    known, stars = spectra.of_class(KNOWN), spectra.of_class(("STAR",))
    y = np.asarray(known.label)
    # A row without a group counts as one object.
    group = np.arange(len(known)) if known.group is None else known.group
    objects = np.random.default_rng(random_state).permutation(np.unique(group))
    test = np.isin(group, objects[: round(_TEST_SHARE * len(objects))])
    for part, rows in (("training", ~test), ("test", test)):
        counts = np.bincount(y[rows], minlength=len(KNOWN))
        if counts.min() == 0:
            raise ValueError(
                f"the {part} part must hold galaxies and quasars, got {counts[0]} and {counts[1]}; "
                "raise n, or give more of both in mix"
            )
    return Dataset(
        name,
        known.flux[~test],
        y[~test],
        known.flux[test],
        y[test],
        ood={"stars": stars.flux, **(ood or {})},
        target_names=KNOWN,
        provenance=provenance,
    )
