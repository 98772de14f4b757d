"""How semi-real spectra are made: ingredients, then random draws and flux models of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra.spectra import CLASSES

Array = NDArray[np.float64]

#: Share of each kind of star, as in LAMOST.
STAR_SHARES = {"B": 0.005, "A": 0.06, "F": 0.31, "G": 0.38, "K": 0.18, "M": 0.055, "WD": 0.01}
_OBJECT_KEYS = ("c", "z", "amp", "poly", "sn", "key", "E", "grid")
LIGHT_KM_S = 2.998e5
MIN_SNR = 10.0
FLUX_CALIBRATION = 0.06  # standard deviation of each coefficient of its error
_CALIBRATION_TERMS = 4
_VELOCITY_KM_S = 60.0
_REDDENING = 0.08  # mean E(B-V) of stars, in magnitudes


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
    """Return the ingredients by part; ValueError names the arrays that are missing."""
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


class Draws(NamedTuple):
    """Random parameters of m spectra.

    `source` is the row of each in the objects or templates of its class; `velocity` (km/s) and
    `reddening` (magnitudes) are those of stars, 0 for others.
    """

    label: NDArray[np.int64]
    source: NDArray[np.int64]
    snr: Array
    velocity: Array
    reddening: Array
    calibration: Array
    curve: NDArray[np.int64]
    noise: NDArray[np.float32]


def draw(parts: Parts, label: NDArray[np.int64], rng: np.random.Generator) -> Draws:
    """Draw the parameters of m spectra of the given classes, shape (m,)."""
    n = len(label)
    source = np.zeros(n, np.int64)
    snr, velocity, reddening = np.zeros(n), np.zeros(n), np.zeros(n)
    for number, name in enumerate(CLASSES[:2]):
        mine, objects = label == number, parts.objects[name]
        source[mine] = found = rng.integers(len(objects.redshift), size=mine.sum())
        measured = np.maximum(1, objects.snr[found] / MIN_SNR)
        snr[mine] = MIN_SNR * measured * rng.lognormal(0.1, 0.25, len(found))
    mine = label == 2
    source[mine] = _models(parts, int(mine.sum()), rng)
    velocity[mine] = rng.normal(0, _VELOCITY_KM_S, mine.sum())
    reddening[mine] = rng.exponential(_REDDENING, mine.sum())
    snr[mine] = np.maximum(MIN_SNR, rng.lognormal(np.log(30), 0.7, mine.sum()))
    calibration = rng.normal(0, FLUX_CALIBRATION, (n, _CALIBRATION_TERMS))
    curve = rng.integers(len(parts.noise), size=n)
    noise = rng.standard_normal((n, len(parts.wavelength)), dtype=np.float32)
    return Draws(label, source, snr, velocity, reddening, calibration, curve, noise)


def _models(parts: Parts, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of n stellar templates: the kind by LAMOST's frequencies, then one of it."""
    shares = np.array(list(STAR_SHARES.values()))
    kinds = rng.choice(len(shares), n, p=shares / shares.sum())
    counts = np.bincount(parts.stars.kind, minlength=len(shares))
    first = np.cumsum(counts) - counts
    return np.asarray(first[kinds] + rng.integers(counts[kinds]), np.int64)


def light(parts: Parts, draws: Draws) -> NDArray[np.float32]:
    """Flux (m, p) of the drawn spectra, in units of its median before errors."""
    flux = np.empty((len(draws.label), len(parts.wavelength)), np.float64)
    for number, name in enumerate(CLASSES[:2]):
        mine = draws.label == number
        flux[mine] = _extragalactic(parts.wavelength, parts.objects[name], draws.source[mine])
    mine = draws.label == 2
    flux[mine] = _stellar(parts, draws.source[mine], draws.velocity[mine], draws.reddening[mine])
    flux /= np.median(flux, axis=1, keepdims=True)
    flux *= np.exp(draws.calibration @ _calibration_shapes(parts.wavelength))
    noisy = flux.astype(np.float32)
    sigma = np.asarray(parts.noise[draws.curve] / np.float32(draws.snr[:, None]), np.float32)
    noisy += sigma * draws.noise
    return noisy


def scaled_log(wavelength: Array) -> Array:
    """Log wavelength, shifted to mean 0 and scaled to a range of 2."""
    log = np.log10(wavelength)
    return np.asarray((log - log.mean()) / (log.max() - log.min()) * 2)


def _extragalactic(wavelength: Array, objects: Objects, rows: NDArray[np.int64]) -> Array:
    """Continuum of each real object plus its lines (its eigenspectra less their continuum)."""
    powers = scaled_log(wavelength)[:, None] ** np.arange(3)
    rest = np.log10(wavelength) - np.log10(1 + objects.redshift[rows])[:, None]
    position = (rest - objects.start) / objects.step
    lines = _between(objects.coefficients[rows] @ objects.eigenspectra, position)
    smooth, _ = np.linalg.qr(powers)
    lines -= (lines @ smooth) @ smooth.T
    lines /= lines.std(axis=1, keepdims=True)
    lines *= objects.amplitude[rows, None]
    return np.asarray(objects.continuum[rows] @ powers.T + lines)


def _stellar(parts: Parts, rows: NDArray[np.int64], velocity: Array, reddening: Array) -> Array:
    w, kinds = parts.wavelength, parts.stars.kind[rows]
    flux = np.empty((len(rows), len(w)))
    for kind in np.unique(kinds):
        mine = kinds == kind
        flux[mine] = parts.stars.coefficients[rows[mine]] @ parts.stars.eigenspectra[kind]
    step = (w[-1] - w[0]) / (len(w) - 1)
    at_rest = w / (1 + velocity / LIGHT_KM_S)[:, None]
    flux = _between(flux, (at_rest - w[0]) / step)
    flux /= np.median(flux, axis=1, keepdims=True)
    np.clip(flux, 0, None, out=flux)
    flux *= np.exp(-0.4 * np.log(10) * reddening[:, None] * extinction(w))
    return flux


def _between(rows: Array, position: Array) -> Array:
    """Values of rows (m, q) at fractional indices (m, p), linear; the end values beyond them."""
    last = rows.shape[1] - 1
    position = np.clip(position, 0, last)
    left = np.minimum(position.astype(np.int64), last - 1)
    low = np.take_along_axis(rows, left, axis=1)
    high = np.take_along_axis(rows, left + 1, axis=1)
    return np.asarray(low + (position - left) * (high - low))


def extinction(wavelength: Array) -> Array:
    """Magnitudes lost per magnitude of reddening, shape (p,).

    Optical and near-infrared law of Cardelli, Clayton and Mathis, Astrophysical Journal 345, 1989,
    equation 3, with R_V = 3.1.
    """
    y = 1e4 / wavelength - 1.82
    a = [1, 0.17699, -0.50447, -0.02427, 0.72085, 0.01979, -0.77530, 0.32999]
    b = [0, 1.41338, 2.28305, 1.07233, -5.38434, -0.62251, 5.30260, -2.09002]
    polynomial = np.polynomial.polynomial.polyval
    return np.asarray(3.1 * polynomial(y, a) + polynomial(y, b))


def _calibration_shapes(wavelength: Array) -> Array:
    """Chebyshev polynomials of degrees 1 to 4 over the scaled log wavelength, shape (4, p)."""
    x = scaled_log(wavelength)
    return np.polynomial.chebyshev.chebvander(x / np.abs(x).max(), _CALIBRATION_TERMS)[:, 1:].T
