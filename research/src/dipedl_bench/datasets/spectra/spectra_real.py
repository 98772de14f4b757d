"""Observed spectra of galaxies, quasars and stars: a shifted test set."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from dipedl.apps.spectra.spectra import CLASSES, Spectra
from dipedl.datasets.dataset import Dataset, no_rows

from ..files.sources import PROVENANCE
from ..files.spectra_problem import FULL_COVERAGE, KNOWN, arrays, over_median

__all__ = ["load_real_spectra", "real_spectra"]


def real_spectra(
    *,
    data_dir: str | os.PathLike[str] | None = None,
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


def load_real_spectra(
    *, min_snr: float = 4.0, data_dir: str | os.PathLike[str] | None = None
) -> Dataset:
    """OBSERVED galaxies and quasars, one spectrum of each object, as a test set; stars are ood.

    They are too few, from too many instruments, for training.

    Parameters
    ----------
    min_snr : float, default=4.0
        Smallest S/N.
    data_dir : path-like or None, default=None
        Directory that holds ``spectra/real_spectra.npz``; without it the one named by
        ``DIPEDL_DATA``.

    Returns
    -------
    Dataset
        Inputs (rows, 3000) in `X_test`, float32: flux; labels 0 GALAXY, 1 QSO; `X_train` has no
        rows; ``ood["stars"]``.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        As `real_spectra`.

    Examples
    --------
    >>> from dipedl_bench.datasets import load_real_spectra
    >>> load_real_spectra().X_train.shape  # doctest: +SKIP
    (0, 3000)
    """
    spectra = real_spectra(data_dir=data_dir, min_snr=min_snr)
    known, stars = spectra.of_class(KNOWN), spectra.of_class(("STAR",))
    return Dataset(
        "real-spectra",
        *no_rows(known.flux.shape[1]),
        known.flux,
        np.asarray(known.label),
        ood={"stars": stars.flux},
        target_names=KNOWN,
        provenance=(PROVENANCE["real"],),
    )
