"""Ingredients of semi-real spectra: objects, templates, noise curves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Share of each kind of star, as in LAMOST.
STAR_SHARES = {"B": 0.005, "A": 0.06, "F": 0.31, "G": 0.38, "K": 0.18, "M": 0.055, "WD": 0.01}
_OBJECT_KEYS = ("c", "z", "amp", "poly", "sn", "key", "E", "grid")
LIGHT_KM_S = 2.998e5


@dataclass(frozen=True)
class Objects:
    """Real galaxies, or quasars: m objects on b eigenspectra of q points.

    `coefficients` (m, b), `eigenspectra` (b, q), `start` and `step` of their grid in
    log10(Angstrom at rest), `continuum` (m, 3) in powers of the scaled log wavelength.
    """

    coefficients: Array
    eigenspectra: Array
    start: float
    step: float
    redshift: Array
    amplitude: Array
    continuum: Array
    snr: Array
    key: NDArray[np.str_]


@dataclass(frozen=True)
class Templates:
    """Stars: coefficients (m, b) of m models, `kind` (m,) of each, eigenspectra (kinds, b, p)."""

    coefficients: Array
    kind: NDArray[np.int64]
    eigenspectra: Array


@dataclass(frozen=True)
class Parts:
    """All ingredients, on one grid of p wavelengths."""

    wavelength: Array
    objects: Mapping[str, Objects]
    stars: Templates
    noise: NDArray[np.float32]


def parts_of(ingredients: Mapping[str, NDArray[np.generic]]) -> Parts:
    """Build the ingredients from the arrays of a file."""
    needed = [f"{name}_{key}" for name in ("GALAXY", "QSO") for key in _OBJECT_KEYS]
    needed += [f"STAR_{kind}_{key}" for kind in STAR_SHARES for key in "BC"]
    missing = [key for key in ("wavelength", "noise_shape", *needed) if key not in ingredients]
    if missing:
        raise ValueError(
            f"ingredients must hold the arrays of sim_ingredients.npz, but {missing} are missing; "
            "take the whole file"
        )
    return Parts(
        np.asarray(ingredients["wavelength"], np.float64),
        {name: _objects(ingredients, name) for name in ("GALAXY", "QSO")},
        _templates(ingredients),
        np.asarray(ingredients["noise_shape"], np.float32),
    )


def _objects(ingredients: Mapping[str, NDArray[np.generic]], name: str) -> Objects:
    c, z, amp, poly, sn, grid, spectra = (
        np.asarray(ingredients[f"{name}_{key}"], np.float64)
        for key in ("c", "z", "amp", "poly", "sn", "grid", "E")
    )
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    if np.abs(np.diff(grid) - step).max() > 1e-9:
        raise ValueError(
            f"{name}_grid must have even steps of log10 wavelength, got steps from "
            f"{np.diff(grid).min()} to {np.diff(grid).max()}; resample the eigenspectra"
        )
    key = np.asarray(ingredients[f"{name}_key"]).astype(np.str_)
    return Objects(c, spectra, float(grid[0]), float(step), z, amp, poly, sn, key)


def _templates(ingredients: Mapping[str, NDArray[np.generic]]) -> Templates:
    models = [np.asarray(ingredients[f"STAR_{kind}_C"], np.float64) for kind in STAR_SHARES]
    bases = [np.asarray(ingredients[f"STAR_{kind}_B"], np.float64) for kind in STAR_SHARES]
    counts = [len(model) for model in models]
    return Templates(
        np.concatenate(models), np.repeat(np.arange(len(models)), counts), np.stack(bases)
    )
