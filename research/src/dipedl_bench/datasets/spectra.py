"""Spectra of galaxies, quasars, stars and supernovae: observed, and templates."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dipedl.apps.spectra import Spectra, fill_gaps, read_paper_files

from .files import INGREDIENTS, cache_folder, data_folder, read_arrays
from .semi_real import CLASSES

__all__ = ["lamost_spectra", "real_spectra", "supernova_spectra"]

#: Files of observed spectra and of supernovae.
REAL, SUPERNOVAE = "spectra/real_spectra.npz", "spectra/ood_supernovae.npz"
FULL_COVERAGE = 0.985  # smallest share of observed pixels
MIN_SNR = 4.0  # below 3 labels are unreliable
#: Address in the code that the paper builds on (superdreamliner/LAMOST-Spectra-Classifier), but
#: for dl=1, which requests the file, not a page about it. It could not be tested.
LAMOST_URL = (
    "https://www.dropbox.com/scl/fi/tp81mfopdqbep50vwhhhb/spectra_training_data.tar"
    "?rlkey=l2v9gr2dswpka2yk6gx9q9e6v&st=opdav8fs&dl=1"
)


def lamost_spectra() -> Spectra:
    """The paper's 100,000 LAMOST spectra, in the order of files and rows.

    Its FITS files lie in the folder ``lamost`` of ``DIPEDL_DATA``, or of the cache. No checksum of
    the archive (2.4 GB) is published, so it is put in place by hand; the error says how.

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
    place = (data_folder() or cache_folder()) / "lamost"
    files = sorted(place.glob("[!.]*.fits*"))
    if not files:
        raise FileNotFoundError(
            "DIPEDL_DATA must name a directory whose folder lamost holds the paper's FITS files, "
            f"but {str(place)!r} has none; put train_data_01.fits to train_data_10.fits there, "
            f"such as by: mkdir -p {place} && curl -L {LAMOST_URL!r} | tar -x -C {place} "
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


def real_spectra() -> Spectra:
    """OBSERVED spectra of SDSS, LAMOST and others, on the paper's grid, nearly all of it covered.

    The first spectrum of each object with an S/N of 4 or more; library stars, whose S/N is not
    known, are kept. Class and instrument are confounded: galaxies and quasars are mostly of SDSS,
    stars mostly of LAMOST and of libraries. 21 quasars of the 640 rows are spectra that
    `semi_real_spectra` also takes parameters from (`name` ends like theirs). One object (`group`
    333) is a galaxy in one survey and a quasar in another; of the two the galaxy comes first. No
    official mirror has the file: the folder named by ``DIPEDL_DATA`` must hold
    ``spectra/real_spectra.npz``.

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
    ValueError
        If the file does not have the known checksum.
    FileNotFoundError
        If the file is missing.

    Examples
    --------
    >>> from dipedl_bench.datasets import real_spectra
    >>> real_spectra()  # doctest: +SKIP
    Spectra(n=640, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    content = read_arrays(REAL)
    rows = np.flatnonzero((content["coverage"] > FULL_COVERAGE) & ~(content["snr"] < MIN_SNR))
    rows = rows[np.sort(np.unique(content["group"][rows], return_index=True)[1])]
    flux, mask = _over_median(content["flux"][rows])
    return Spectra(
        flux,
        content["wavelength"],
        np.array([CLASSES.index(name) for name in content["label"][rows]]),
        CLASSES,
        content["snr"][rows].astype(np.float64),
        content["z"][rows].astype(np.float64),
        content["key"][rows],
        content["group"][rows].astype(np.int64),
        mask=mask,
    )


def supernova_spectra(snr: ArrayLike, *, random_state: int = 0) -> Spectra:
    """Templates of supernovae, with ADDED noise of the shape of LAMOST noise curves.

    The templates are nearly free of noise, which alone would separate them from other spectra.
    They are 224 spectra of 60 supernovae at several epochs each: intervals that assume
    independence are too narrow; `group` holds the supernova. 214 go back to observations; ten,
    whose names begin with "theory99em", are models. Ten stand in the file twice, four of these
    under another name. No official mirror has the files: the folder named by ``DIPEDL_DATA`` must
    hold ``spectra/ood_supernovae.npz`` and ``spectra/sim_ingredients.npz``.

    Parameters
    ----------
    snr : float or array-like (m,)
        S/N per pixel, above 0. Each spectrum gets one of an array, drawn with replacement: pass the
        S/N of the in-distribution spectra.
    random_state : int, default=0
        Seed; the same seed gives the same noise.

    Returns
    -------
    Spectra
        The 224 templates of which more than 98.5 % of the pixels are known; `mask` is True where
        they are not, and the nearest value is taken. Flux in units of the median before noise; no
        label; the S/N of the added noise; redshift 0, as templates are in the rest frame; name;
        `group` is the number of the supernova.

    Raises
    ------
    ValueError
        If a file does not have the known checksum.
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
    rng = np.random.default_rng(random_state)
    content, curves = read_arrays(SUPERNOVAE), read_arrays(INGREDIENTS)["noise_shape"]
    rows = content["coverage"] > FULL_COVERAGE
    flux, mask = _over_median(content["flux"][rows])
    drawn = rng.choice(np.atleast_1d(np.asarray(snr, np.float64)), len(flux))
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


def _over_median(flux: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Flux (n, p) without NaN, over the median of its spectrum; the mask of former NaN.

    Unobserved pixels at an edge get the nearest observed value; others are interpolated.
    """
    flux = flux.astype(np.float32)
    mask = ~np.isfinite(flux)
    flux = fill_gaps(flux, mask, np.arange(flux.shape[1]))
    flux /= np.median(flux, axis=1, keepdims=True)
    return flux, mask
