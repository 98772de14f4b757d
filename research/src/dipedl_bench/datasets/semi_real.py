"""Semi-real spectra: parameters of real objects, flux models, LAMOST's noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra import Spectra

from .files import INGREDIENTS, read_arrays

__all__ = ["semi_real_spectra"]

#: Names of the labels 0, 1, 2 of all spectra.
CLASSES = ("GALAXY", "QSO", "STAR")

Array = NDArray[np.float64]
Ingredients = Mapping[str, NDArray[Any]]

#: Share of each kind of star, as in LAMOST.
STAR_SHARES = {"B": 0.005, "A": 0.06, "F": 0.31, "G": 0.38, "K": 0.18, "M": 0.055, "WD": 0.01}
LIGHT_KM_S = 2.998e5
MIN_SNR = 10.0
FLUX_CALIBRATION = 0.06  # standard deviation of each coefficient of its error
_CALIBRATION_TERMS = 4
_VELOCITY_KM_S = 60.0
_REDDENING = 0.08  # mean E(B-V) of stars, in magnitudes
#: Spectra that are generated together, each chunk with random numbers of its own; few enough for a
#: processor cache.
CHUNK = 250
#: Shares in one of the paper's ten files of 10,000 spectra.
PAPER_FILE_MIX = {"GALAXY": 0.3427, "QSO": 0.1011, "STAR": 0.5562}


def semi_real_spectra(
    n: int = 100_000, *, mix: Mapping[str, float] = PAPER_FILE_MIX, random_state: int = 0
) -> Spectra:
    """SEMI-REAL spectra of galaxies, quasars and stars: generated, not observed.

    Galaxies and quasars are real SDSS objects, each reduced to a redshift, a continuum of three
    numbers and ten coefficients on learned eigenspectra. Stars are model atmospheres, shifted by a
    radial velocity, N(0, 60 km/s), and reddened, exponential with mean E(B-V) = 0.08. All
    get a smooth error of flux calibration and noise of the shape of a real LAMOST noise curve. See
    Notes for the limits. No official mirror has the ingredients: the folder named by
    ``DIPEDL_DATA`` must hold ``spectra/sim_ingredients.npz``.

    Parameters
    ----------
    n : int, default=100_000
        Spectra, at least 1; 100,000 take 1.2 GB.
    mix : mapping of str to number, default=PAPER_FILE_MIX
        How many of ``"GALAXY"``, ``"QSO"`` and ``"STAR"``; a class not named gets none. Integers
        are counts and sum to n; otherwise they are shares, which sum to 1, and counts are the
        nearest integers that sum to n. Default: the shares in one of the paper's files.
    random_state : int, default=0
        Seed; the same n, mix and seed give the same spectra.

    Returns
    -------
    Spectra
        n spectra in random order. Flux in units of the median before noise; labels 0 GALAXY,
        1 QSO, 2 STAR; S/N at the median of the noise curve; redshift, 0 for stars; `name` is the
        SDSS plate-mjd-fiber of the object, or the number of the stellar model; `group` is equal for
        spectra of one object or model.

    Raises
    ------
    ValueError
        If an argument is not as described, or the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Notes
    -----
    What makes them easier than, and different from, observed spectra:

    - Objects are drawn with replacement, so spectra of one object differ by noise and calibration
      only: a random split has the same objects on both sides, and errors are too few. `group`
      allows a split by object.
    - Ten eigenspectra hold no line or continuum that they have not learned; galaxies are SDSS
      galaxies (z < 0.5), quasars have S/N above 4 in SDSS; labels have no errors.
    - S/N depends on class: medians of galaxies, quasars and stars are 14, 12 and 30, and no star is
      below 10.
    - Stars are models: no binaries, no emission-line stars, no peculiar abundances.
    - Noise is independent between pixels; that of observed spectra, which were resampled, is
      correlated. There are no cosmic rays, no missing pixels, no atmospheric bands, no residual sky
      lines.

    References
    ----------
    Eigenspectra: GaSNet-III; stellar models: redrock; objects: SDSS; noise: LAMOST early releases.

    Examples
    --------
    >>> from dipedl_bench.datasets import semi_real_spectra
    >>> semi_real_spectra(5000)  # doctest: +SKIP
    Spectra(n=5000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    if n < 1:
        raise ValueError(f"n must be >= 1, got {n!r}; raise it")
    counts = count_classes(mix, n)
    return generate_spectra(read_arrays(INGREDIENTS), counts, random_state)


def generate_spectra(ingredients: Ingredients, counts: np.ndarray, random_state: int) -> Spectra:
    """Generate so many spectra of each class from ingredients."""
    parts = parts_of(ingredients)
    label = np.repeat(np.arange(len(CLASSES)), counts)
    n = len(label)
    _chance(random_state, 0).shuffle(label)
    flux = np.empty((n, len(parts.wavelength)), np.float32)
    source, snr = np.empty(n, np.int64), np.empty(n)
    for chunk, start in enumerate(range(0, n, CHUNK)):
        rows = slice(start, start + CHUNK)
        draws = draw(parts, label[rows], _chance(random_state, 1 + chunk))
        flux[rows], source[rows], snr[rows] = light(parts, draws), draws.source, draws.snr
    galaxies, quasars = parts.objects
    models = np.array([f"model {i}" for i in range(len(parts.stars.kind))])
    first = np.cumsum([0, len(galaxies.key), len(quasars.key)])
    group = first[label] + source
    redshift = np.concatenate([galaxies.redshift, quasars.redshift, np.zeros(len(models))])
    name = np.concatenate([galaxies.key, quasars.key, models])
    return Spectra(flux, parts.wavelength, label, CLASSES, snr, redshift[group], name[group], group)


def _chance(seed: int, part: int) -> np.random.Generator:
    """Random generator of one part: 0 for the order of the classes, 1 + i for chunk i."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,)))


def count_classes(mix: Mapping[str, float], n: int) -> np.ndarray:
    """Return how many spectra of each class are `n` in a mix, by largest remainder."""
    if not mix or set(mix) - set(CLASSES):
        raise ValueError(
            f"mix must map names out of {list(CLASSES)} to counts or shares, got {mix!r}"
        )
    values = np.array([mix.get(name, 0) for name in CLASSES])
    whole = n if values.dtype.kind in "iu" else 1
    if not (values.min() >= 0 and abs(values.sum() - whole) <= 1e-6):
        raise ValueError(
            f"mix must hold counts >= 0 that sum to n={n}, or shares >= 0, as floats, that sum to "
            f"1, got {dict(mix)}, which sum to {values.sum():g}"
        )
    # 0.3427 * 100,000 is slightly below 34,270, so round before the floor
    exact = np.round(values * (n / whole), 6)
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: n - counts.sum()]] += 1
    return counts


# Ingredients


class Objects(NamedTuple):
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


class Templates(NamedTuple):
    """Stars: coefficients (m, b) of m models, `kind` (m,) of each, eigenspectra (kinds, b, p)."""

    coefficients: Array
    kind: NDArray[np.int64]
    eigenspectra: Array


class Parts(NamedTuple):
    """All ingredients, on one grid of p wavelengths; objects are galaxies and quasars."""

    wavelength: Array
    objects: tuple[Objects, Objects]
    stars: Templates
    noise: NDArray[np.float32]


def parts_of(ingredients: Ingredients) -> Parts:
    """Return the ingredients by part."""
    models = [np.asarray(ingredients[f"STAR_{kind}_C"], np.float64) for kind in STAR_SHARES]
    bases = [np.asarray(ingredients[f"STAR_{kind}_B"], np.float64) for kind in STAR_SHARES]
    kind = np.repeat(np.arange(len(models)), [len(model) for model in models])
    return Parts(
        np.asarray(ingredients["wavelength"], np.float64),
        (_objects(ingredients, "GALAXY"), _objects(ingredients, "QSO")),
        Templates(np.concatenate(models), kind, np.stack(bases)),
        np.asarray(ingredients["noise_shape"], np.float32),
    )


def _objects(ingredients: Ingredients, name: str) -> Objects:
    c, z, amp, poly, sn, grid, spectra = (
        np.asarray(ingredients[f"{name}_{key}"], np.float64)
        for key in ("c", "z", "amp", "poly", "sn", "grid", "E")
    )
    step = (grid[-1] - grid[0]) / (len(grid) - 1)
    key = np.asarray(ingredients[f"{name}_key"]).astype(np.str_)
    return Objects(c, spectra, float(grid[0]), float(step), z, amp, poly, sn, key)


# Random draws and flux models of a chunk


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
    for number, objects in enumerate(parts.objects):
        mine = label == number
        source[mine] = rows = rng.integers(len(objects.redshift), size=mine.sum())
        measured = np.maximum(1, objects.snr[rows] / MIN_SNR)
        snr[mine] = MIN_SNR * measured * rng.lognormal(0.1, 0.25, len(rows))
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
    for number, objects in enumerate(parts.objects):
        mine = draws.label == number
        flux[mine] = _extragalactic(parts.wavelength, objects, draws.source[mine])
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
    lines = _interpolate(objects.coefficients[rows] @ objects.eigenspectra, position)
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
    flux = _interpolate(flux, (at_rest - w[0]) / step)
    flux /= np.median(flux, axis=1, keepdims=True)
    np.clip(flux, 0, None, out=flux)
    flux *= np.exp(-0.4 * np.log(10) * reddening[:, None] * extinction(w))
    return flux


def _interpolate(rows: Array, position: Array) -> Array:
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
