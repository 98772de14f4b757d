"""Made-up spectra of galaxies, quasars and stars: no file, no observation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...maths.arrays import check_integer
from .spectra import CLASSES, Spectra, paper_grid

__all__ = ["toy_spectra"]

Array = NDArray[np.float64]

_SHARES = (0.45, 0.25, 0.3)
_MEDIAN_SNR = 7.0
#: Rest wavelength in Angstrom, depth in units of the continuum, width in Angstrom (Gaussian).
_GALAXY_ABSORPTION = ((3933.7, 0.4, 7), (3968.5, 0.4, 7), (4304, 0.15, 12), (5175, 0.2, 14))
_GALAXY_EMISSION = ((3727.4, 0.6, 4), (4861.3, 0.3, 4), (5006.8, 0.7, 4), (6562.8, 1.2, 4))
_QUASAR_LINES = (
    (1215.7, 2.5, 18),
    (1549.1, 1.0, 20),
    (1908.7, 0.6, 26),
    (2798.8, 0.6, 32),
    (4340.5, 0.25, 40),
    (4861.3, 0.6, 45),
    (6562.8, 2.0, 60),
)
_BALMER = ((3970.1, 0.5, 12), (4101.7, 0.5, 12), (4340.5, 0.5, 12), (4861.3, 0.5, 12))
_METALS = ((3933.7, 0.6, 9), (3968.5, 0.6, 9), (4304, 0.25, 14), (5175, 0.3, 16), (5892, 0.2, 6))
_H_ALPHA = ((6562.8, 0.4, 11),)


def toy_spectra(n: int = 1000, *, random_state: int = 0) -> Spectra:
    """MADE-UP spectra, for tests and documentation; not observed.

    Galaxies have a break at 4000 Angstrom, absorption, and emission lines of a random strength, at
    redshifts 0 to 0.4; quasars a power law with broad lines at 0.3 to 3; stars a black body of 3500
    to 12000 K, with Balmer lines if hot and metals if cool. Noise is independent and Gaussian.

    Parameters
    ----------
    n : int, default=1000
        Spectra, at least 1.
    random_state : int, default=0
        Seed; the same n and seed give the same spectra.

    Returns
    -------
    Spectra
        n spectra on `paper_grid`, in random order. Flux in units of the median before noise; labels
        0 GALAXY (45 %), 1 QSO (25 %), 2 STAR (30 %), counts rounded; S/N per pixel, log-normal with
        median 7; redshift, 0 for stars; `name` is ``"toy 0"`` and so on.

    Raises
    ------
    TypeError, ValueError
        If `n` is not an integer >= 1 or `random_state` not an integer >= 0.

    Examples
    --------
    >>> from dipedl.apps.spectra import toy_spectra
    >>> spectra = toy_spectra(100)
    >>> spectra, [int((spectra.label == i).sum()) for i in range(3)]
    (Spectra(n=100, 3900-9000 Angstrom in 3000 pixels, failures=0), [45, 25, 30])
    """
    n = check_integer("n", n, 1)
    rng = np.random.default_rng(check_integer("random_state", random_state, 0))
    label = np.searchsorted(np.cumsum(_SHARES), (np.arange(n) + 0.5) / n).astype(np.int64)
    rng.shuffle(label)
    grid = paper_grid()
    flux, redshift = np.empty((n, len(grid))), np.zeros(n)
    for number, make in enumerate((_galaxies, _quasars, _stars)):
        mine = label == number
        flux[mine], redshift[mine] = make(grid, int(mine.sum()), rng)
    flux /= np.median(flux, axis=1, keepdims=True)
    snr = _MEDIAN_SNR * rng.lognormal(0, 0.5, n)
    noisy = flux.astype(np.float32)
    noise = rng.standard_normal(flux.shape, np.float32)
    noisy += np.asarray(noise / np.float32(snr[:, None]), np.float32)
    name = np.array([f"toy {row}" for row in range(n)])
    return Spectra(noisy, grid, label, CLASSES, snr, redshift, name)


def _galaxies(grid: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.uniform(0, 0.4, n)
    rest = grid / (1 + z)[:, None]
    old = rng.uniform(0, 1, (n, 1))  # from blue with emission lines to red with absorption
    slope = rng.normal(0, 0.3, (n, 1)) + 1.5 * old - 1
    flux = (rest / 5000) ** slope / (1 + old * 0.8 / (1 + np.exp((rest - 4000) / 20)))
    flux *= 1 - (0.3 + 0.7 * old) * _lines(rest, _GALAXY_ABSORPTION)
    strength = (1 - old) * rng.lognormal(0, 0.7, (n, 1))
    return flux * (1 + strength * _lines(rest, _GALAXY_EMISSION)), z


def _quasars(grid: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    z = rng.uniform(0.3, 3, n)
    rest = grid / (1 + z)[:, None]
    slope = rng.normal(-1.2, 0.5, (n, 1))
    strength = rng.lognormal(-0.5, 0.5, (n, 1))
    return (rest / 3000) ** slope * (1 + strength * _lines(rest, _QUASAR_LINES)), z


def _stars(grid: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    kelvin = np.exp(rng.uniform(np.log(3500), np.log(12_000), (n, 1)))
    rest = np.broadcast_to(grid, (n, len(grid)))
    flux = (grid / 5000) ** -5 / np.expm1(1.4388e8 / (grid * kelvin))  # Planck's law
    hot = 1 / (1 + np.exp(-(kelvin - 7000) / 700))
    strength = rng.uniform(0.6, 1, (n, 1))
    flux *= 1 - strength * hot * (_lines(rest, _BALMER) + _lines(rest, _H_ALPHA))
    return flux * (1 - strength * (1 - hot) * _lines(rest, _METALS)), np.zeros(n)


def _lines(rest: Array, lines: tuple[tuple[float, float, float], ...]) -> Array:
    """Sum of Gaussians at rest wavelengths (n, p), computed where they are not negligible."""
    total = np.zeros(rest.shape)
    for centre, height, width in lines:
        near = np.abs(rest - centre) < 5 * width
        total[near] += height * np.exp(-0.5 * ((rest[near] - centre) / width) ** 2)
    return total
