"""Supernovae: an OOD set for models of galaxies and quasars."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dipedl.apps.spectra.spectra import Spectra
from dipedl.maths.arrays import check_integer

from ..files.sources import INGREDIENTS
from ..files.spectra_problem import FULL_COVERAGE, arrays, over_median

__all__ = ["supernova_spectra"]


def supernova_spectra(
    snr: ArrayLike, *, random_state: int = 0, data_dir: str | os.PathLike[str] | None = None
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
    rng = np.random.default_rng(check_integer("random_state", random_state, 0))
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
