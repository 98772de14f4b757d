"""Galaxies against quasars as a `Dataset`; stars are OOD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...spectra.spectra import Spectra
from .._dataset import Dataset, Provenance

KNOWN = ("GALAXY", "QSO")
_TEST_SHARE = 0.2


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
    test = _test_rows(known, random_state)
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


def _test_rows(known: Spectra, random_state: int) -> NDArray[np.bool_]:
    """Rows (n,) of a fifth of the objects; each row without a group counts as one object."""
    group = np.arange(len(known)) if known.group is None else known.group
    objects = np.unique(group)
    order = np.random.default_rng(random_state).permutation(len(objects))
    return np.isin(group, objects[order[: round(_TEST_SHARE * len(objects))]])
