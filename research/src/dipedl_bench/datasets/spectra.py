"""Spectra of galaxies, quasars, stars and supernovae: observed, semi-real, and templates."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dipedl.apps.spectra import Spectra, fill_gaps, read_paper_files

from .files import INGREDIENTS, DataDir, cache_folder, fetch, offline_folder
from .semi_real import CLASSES, PAPER_FILE_MIX, generate_semi_real

__all__ = ["lamost_spectra", "real_spectra", "semi_real_spectra", "supernova_spectra"]

FULL_COVERAGE = 0.985  # smallest share of observed pixels
#: Address in the code that the paper builds on (superdreamliner/LAMOST-Spectra-Classifier), but
#: for dl=1, which requests the file, not a page about it. It could not be tested.
LAMOST_URL = (
    "https://www.dropbox.com/scl/fi/tp81mfopdqbep50vwhhhb/spectra_training_data.tar"
    "?rlkey=l2v9gr2dswpka2yk6gx9q9e6v&st=opdav8fs&dl=1"
)


def lamost_spectra(data_dir: DataDir = None) -> Spectra:
    """The paper's 100,000 LAMOST spectra, in the order of files and rows.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds ``lamost/`` with the paper's FITS files. None: the directory named by
        ``DIPEDL_DATA``, else the cache (``DIPEDL_CACHE``, or the user's cache directory). No
        checksum of the archive (2.4 GB) is published, so it is put in place by hand; the error
        says how.

    Returns
    -------
    Spectra
        100,000 spectra, 1.2 GB; see `dipedl.apps.spectra.read_paper_files`. Labels 0 GALAXY
        (3,427), 1 QSO (1,011), 2 STAR (95,562).

    Raises
    ------
    FileNotFoundError
        If no FITS file is there.
    ImportError
        If astropy is missing: ``pip install 'dipedl[spectra]'``.

    Warns
    -----
    UserWarning
        If a file or row could not be used: it is in `failures`, and the numbers are no longer those
        of the paper's spectra.

    Examples
    --------
    >>> from dipedl_bench.datasets import lamost_spectra
    >>> lamost_spectra()  # doctest: +SKIP
    Spectra(n=100000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    folder, origin = offline_folder(data_dir)
    place = (folder or cache_folder()) / "lamost"
    files = sorted(place.glob("[!.]*.fits*"))
    if not files:
        raise FileNotFoundError(
            f"{origin} must name a directory whose folder lamost holds the paper's FITS files, but "
            f"{str(place)!r} has none; put train_data_01.fits to train_data_10.fits there, such as "
            f"by: mkdir -p {place} && curl -L {LAMOST_URL!r} | tar -x -C {place} "
            "--transform 's|.*/||'"
        )
    spectra: Spectra = read_paper_files(files)
    if spectra.failures:
        warnings.warn(
            f"{len(spectra.failures)} files or rows of the LAMOST spectra are left out, the first: "
            f"{spectra.failures[0]}; replace the files, or numbers will not be the paper's",
            stacklevel=2,
        )
    return spectra


def real_spectra(
    *,
    data_dir: DataDir = None,
    one_per_object: bool = True,
    min_snr: float = 4.0,
) -> Spectra:
    """OBSERVED spectra of SDSS, LAMOST and others, on the paper's grid, nearly all of it covered.

    Class and instrument are confounded: galaxies and quasars are mostly of SDSS, stars mostly of
    LAMOST and of libraries. 21 quasars of the 640 rows of the default are spectra that
    `semi_real_spectra` also takes parameters from (`name` ends like theirs). One object (`group`
    333) is a galaxy in one survey and a quasar in another; of the two the galaxy comes first.

    Parameters
    ----------
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/real_spectra.npz``. No official mirror has it, so it cannot
        be downloaded: without `data_dir` the directory named by ``DIPEDL_DATA`` must hold it.
    one_per_object : bool, default=True
        Keep the first of the spectra of each object.
    min_snr : float, default=4.0
        Smallest S/N; below 3 labels are unreliable. Library stars, whose S/N is not known, are
        kept.

    Returns
    -------
    Spectra
        Those of which more than 98.5 % of the pixels were observed; `mask` is True where they were
        not, and flux is the nearest observed value there. Flux in units of the median of its
        spectrum, because sources differ in their units by a factor of up to 1e17; labels 0 GALAXY,
        1 QSO, 2 STAR; S/N per pixel, NaN for library stars; redshift; name; `group` is the number
        of the object.

    Raises
    ------
    TypeError, ValueError
        If `min_snr` is not a number, or the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import real_spectra
    >>> real_spectra()  # doctest: +SKIP
    Spectra(n=640, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    if isinstance(min_snr, bool) or not isinstance(min_snr, int | float | np.number):
        raise TypeError(f"min_snr must be a number, got {min_snr!r}; pass 0 to keep all")
    if not min_snr < np.inf:
        raise ValueError(f"min_snr must be finite, got {min_snr!r}; pass 0 to keep all")
    content = arrays("spectra/real_spectra.npz", data_dir)
    rows = np.flatnonzero((content["coverage"] > FULL_COVERAGE) & ~(content["snr"] < min_snr))
    if one_per_object:
        _, first = np.unique(content["group"][rows], return_index=True)
        rows = rows[np.sort(first)]
    flux, mask = over_median(content["flux"][rows])
    return Spectra(
        flux,
        content["wavelength"],
        _numbers(content["label"][rows]),
        CLASSES,
        content["snr"][rows].astype(np.float64),
        content["z"][rows].astype(np.float64),
        content["key"][rows],
        content["group"][rows].astype(np.int64),
        mask=mask,
    )


def _numbers(names: NDArray[np.str_]) -> NDArray[np.int64]:
    found = names[:, None] == np.array(CLASSES)
    if not found.any(axis=1).all():
        unknown = sorted(set(names[~found.any(axis=1)].tolist()))
        raise ValueError(
            f"label must be one of {list(CLASSES)}, got {unknown}; take the known file"
        )
    return np.asarray(found.argmax(axis=1), np.int64)


def semi_real_spectra(
    n: int = 100_000,
    *,
    mix: Mapping[str, float] = PAPER_FILE_MIX,
    random_state: int = 0,
    data_dir: DataDir = None,
) -> Spectra:
    """SEMI-REAL spectra: parameters of real SDSS objects, flux models, LAMOST's noise.

    They are generated, not observed: results are not comparable with those on LAMOST spectra.
    `generate_semi_real` says how they are made and what makes them easier than
    observed ones.

    Parameters
    ----------
    n : int, default=100_000
        Spectra; 100,000 take 1.2 GB.
    mix, random_state : optional
        As of `generate_semi_real`.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/sim_ingredients.npz``. No official mirror has it, so it
        cannot be downloaded: without `data_dir` the directory named by ``DIPEDL_DATA`` must hold
        it.

    Returns
    -------
    Spectra
        Labels 0 GALAXY, 1 QSO, 2 STAR; with S/N, redshift (0 for stars), name, and the number of
        the object or stellar model in `group`.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import semi_real_spectra
    >>> semi_real_spectra(5000)  # doctest: +SKIP
    Spectra(n=5000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    ingredients = arrays(INGREDIENTS, data_dir)
    return generate_semi_real(ingredients, n, mix=mix, random_state=random_state)


def supernova_spectra(
    snr: ArrayLike, *, random_state: int = 0, data_dir: DataDir = None
) -> Spectra:
    """Templates of supernovae, with ADDED noise of the shape of LAMOST noise curves.

    The templates are nearly free of noise, which alone would separate them from other spectra.
    They are 224 spectra of 60 supernovae at several epochs each: intervals that assume
    independence are too narrow; `group` holds the supernova. 214 go back to observations; ten,
    whose names begin with "theory99em", are models. Ten stand in the file twice, four of these
    under another name.

    Parameters
    ----------
    snr : float or array-like (m,)
        S/N per pixel, above 0. Each spectrum gets one of an array, drawn with replacement: pass the
        S/N of the in-distribution spectra.
    random_state : int, default=0
        Seed; the same seed gives the same noise.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/ood_supernovae.npz`` and ``spectra/sim_ingredients.npz``. No
        official mirror has them, so they cannot be downloaded: without `data_dir` the directory
        named by ``DIPEDL_DATA`` must hold them.

    Returns
    -------
    Spectra
        The 224 templates of which more than 98.5 % of the pixels are known; `mask` is True where
        they are not, and the nearest value is taken. Flux in units of the median before noise; no
        label; the S/N of the added noise; redshift 0, as templates are in the rest frame; name;
        `group` is the number of the supernova.

    Raises
    ------
    TypeError, ValueError
        If `snr` is not finite and above 0, `random_state` not an integer >= 0, or a file does not
        have the known checksum.
    FileNotFoundError
        If a file is missing.

    References
    ----------
    Muthukrishna, Parkinson and Tucker, "DASH: Deep Learning for the Automated Spectral
    Classification of Supernovae and Their Hosts", Astrophysical Journal 885, 2019.

    Examples
    --------
    >>> from dipedl_bench.datasets import supernova_spectra
    >>> supernova_spectra(20.0)  # doctest: +SKIP
    Spectra(n=224, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    levels = _levels(snr)
    rng = np.random.default_rng(random_state)
    content = arrays("spectra/ood_supernovae.npz", data_dir)
    curves = arrays(INGREDIENTS, data_dir)["noise_shape"]
    rows = content["coverage"] > FULL_COVERAGE
    flux, mask = over_median(content["flux"][rows])
    drawn = rng.choice(levels, len(flux))
    curve = curves[rng.integers(len(curves), size=len(flux))]
    noise = rng.standard_normal(flux.shape, np.float32)
    flux += curve / drawn[:, None].astype(np.float32) * noise
    name = content["key"][rows]
    # "sn1999em.p15.dat" is SN 1999em, fifteen days past maximum
    _, group = np.unique(np.char.partition(name, ".")[:, 0], return_inverse=True)
    return Spectra(
        flux,
        content["wavelength"],
        snr=drawn,
        redshift=np.zeros(len(flux)),
        name=name,
        group=group.astype(np.int64),
        mask=mask,
    )


def _levels(snr: ArrayLike) -> NDArray[np.float64]:
    try:
        levels = np.atleast_1d(np.asarray(snr, np.float64))
    except (TypeError, ValueError) as error:
        raise TypeError(f"snr must be a number or an array of numbers, got {snr!r}") from error
    if levels.ndim != 1 or not levels.size or not np.all((levels > 0) & np.isfinite(levels)):
        raise ValueError(
            f"snr must be finite and above 0, a number or an array (m,) with m >= 1, got {snr!r}; "
            "leave out rows whose S/N is not known"
        )
    return levels


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
