"""Semi-real spectra: parameters of real objects, flux models, LAMOST's noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dipedl.apps.spectra.spectra import CLASSES, Spectra
from dipedl.maths.arrays import check_integer

from .semi_real_parts import Parts, draw, light, parts_of

__all__ = ["generate_semi_real"]

#: Spectra that are generated together, each chunk with random numbers of its own; few enough for a
#: processor cache.
CHUNK = 250
#: Shares in one of the paper's ten files of 10,000 spectra.
PAPER_FILE_MIX = {"GALAXY": 0.3427, "QSO": 0.1011, "STAR": 0.5562}


def generate_semi_real(
    ingredients: Mapping[str, NDArray[Any]],
    n: int = 100_000,
    *,
    mix: str | Mapping[str, float] = "paper-file",
    random_state: int = 0,
    rows: ArrayLike | None = None,
) -> Spectra:
    """SEMI-REAL spectra of galaxies, quasars and stars: generated, not observed.

    Galaxies and quasars are real SDSS objects, each reduced to a redshift, a continuum of three
    numbers and ten coefficients on learned eigenspectra. Stars are model atmospheres, shifted by a
    radial velocity, N(0, 60 km/s), and reddened, exponential with mean E(B-V) = 0.08. All
    get a smooth error of flux calibration and noise of the shape of a real LAMOST noise curve. See
    Notes for the limits.

    Parameters
    ----------
    ingredients : mapping of str to ndarray
        The arrays of ``sim_ingredients.npz``.
    n : int, default=100_000
        Spectra, at least 1.
    mix : "paper-file" or mapping, default="paper-file"
        How many of ``"GALAXY"``, ``"QSO"`` and ``"STAR"``; a class not named gets none. Integers
        are counts and sum to n; otherwise they are shares, which sum to 1, and counts are the
        nearest integers that sum to n. ``"paper-file"`` stands
        for the shares 0.3427, 0.1011 and 0.5562 of one of the paper's files.
    random_state : int, default=0
        Seed; the same n, mix and seed give the same spectra.
    rows : array-like of int (m,), optional
        Only these of the n spectra, in this order, bit for bit as among all of them; only their
        chunks of 250 are generated.

    Returns
    -------
    Spectra
        n (or m) spectra in random order. Flux in units of the median before noise; labels 0 GALAXY,
        1 QSO, 2 STAR; S/N at the median of the noise curve; redshift, 0 for stars; `name` is the
        SDSS plate-mjd-fiber of the object, or the number of the stellar model; `group` is equal for
        spectra of one object or model.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or an array is missing in `ingredients`.

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
    >>> import numpy as np
    >>> from dipedl.apps.spectra import generate_semi_real
    >>> ingredients = np.load("sim_ingredients.npz")  # doctest: +SKIP
    >>> generate_semi_real(ingredients, 5000)  # doctest: +SKIP
    Spectra(n=5000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    n = check_integer("n", n, 1)
    seed = check_integer("random_state", random_state, 0)
    parts = parts_of(ingredients)
    label = np.repeat(np.arange(len(CLASSES)), _counts(mix, n)).astype(np.int64)
    _chance(seed, 0).shuffle(label)
    wanted = np.arange(n) if rows is None else _rows(rows, n)
    return _generate(parts, label, wanted, seed)


def _generate(
    parts: Parts, label: NDArray[np.int64], wanted: NDArray[np.int64], seed: int
) -> Spectra:
    flux = np.empty((len(wanted), len(parts.wavelength)), np.float32)
    source = np.empty(len(wanted), np.int64)
    snr = np.empty(len(wanted))
    for chunk in np.unique(wanted // CHUNK):
        start = chunk * CHUNK
        draws = draw(parts, label[start : start + CHUNK], _chance(seed, 1 + int(chunk)))
        here = np.flatnonzero(wanted // CHUNK == chunk)
        inside = wanted[here] - start
        flux[here] = light(parts, draws)[inside]
        source[here], snr[here] = draws.source[inside], draws.snr[inside]
    galaxies, quasars = parts.objects["GALAXY"], parts.objects["QSO"]
    models = np.array([f"model {i}" for i in range(len(parts.stars.kind))])
    first = np.cumsum([0, len(galaxies.key), len(quasars.key)])
    group = (first[label[wanted]] + source).astype(np.int64)
    redshift = np.concatenate([galaxies.redshift, quasars.redshift, np.zeros(len(models))])
    name = np.concatenate([galaxies.key, quasars.key, models])
    return Spectra(
        flux, parts.wavelength, label[wanted], CLASSES, snr, redshift[group], name[group], group
    )


def _chance(seed: int, part: int) -> np.random.Generator:
    """Random generator of one part: 0 for the order of the classes, 1 + i for chunk i."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(part,)))


def _counts(mix: str | Mapping[str, float], n: int) -> NDArray[np.int64]:
    if isinstance(mix, str):
        if mix != "paper-file":
            raise ValueError(f"mix must be 'paper-file' or a mapping, got {mix!r}")
        mix = PAPER_FILE_MIX
    if not isinstance(mix, Mapping) or set(mix) - set(CLASSES) or not mix:
        raise ValueError(
            f"mix must map names out of {list(CLASSES)} to counts or shares, got {mix!r}"
        )
    values = np.array([mix.get(name, 0) for name in CLASSES])
    if values.dtype.kind not in "iuf" or not np.all(np.isfinite(values)) or values.min() < 0:
        raise ValueError(f"mix must hold finite numbers >= 0, got {dict(mix)}")
    if values.dtype.kind in "iu":
        if values.sum() != n:
            raise ValueError(
                f"the counts of mix must sum to n={n}, got {values.sum()}; "
                "change n, or give shares as floats"
            )
        return values.astype(np.int64)
    if abs(values.sum() - 1) > 1e-6:
        raise ValueError(f"the shares of mix must sum to 1, got {values.sum():g}; divide by it")
    return _nearest(values * n, n)


def _nearest(exact: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Integers that sum to n, by largest remainder."""
    # 0.3427 * 100,000 is slightly below 34,270, so round before the floor
    exact = np.round(exact, 6)
    counts = np.floor(exact).astype(np.int64)
    most = np.argsort(counts - exact, kind="stable")[: n - counts.sum()]
    counts[most] += 1
    return counts


def _rows(rows: ArrayLike, n: int) -> NDArray[np.int64]:
    wanted = np.asarray(rows)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise TypeError(
            f"rows must be a one-dimensional array of integers, got {wanted.dtype} {wanted.shape}"
        )
    if wanted.size and not 0 <= wanted.min() <= wanted.max() < n:
        raise ValueError(
            f"rows must be in 0..{n - 1}, got {wanted.min()}..{wanted.max()}; "
            "give n as for the whole set"
        )
    return wanted.astype(np.int64)
