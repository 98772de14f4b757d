"""Readers of SDSS and LAMOST files with one spectrum each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..grid import paper_grid
from ..resampling import fill_gaps, increasing_grid, resample
from ..spectra import CLASSES, Failure, Spectra
from ._layouts import OneSpectrum, one_spectrum
from .fits import PathLike, fits_files, listed, opened, stem, unusable

__all__ = ["read_spectra", "read_spectrum"]


def read_spectrum(path: PathLike) -> Spectra:
    """One spectrum on its own grid, out of a file of SDSS or LAMOST (``.fits`` or ``.fits.gz``).

    Wavelengths are those of the file: in vacuum for both surveys. Nothing is converted.

    Parameters
    ----------
    path : path-like
        An SDSS ``spec-PLATE-MJD-FIBER.fits``, full or lite (table with flux, ivar, loglam,
        and_mask; redshift table behind it), or older ``spSpec-*.fit``; or a LAMOST ``spec-*.fits``:
        newer (table with FLUX, IVAR, WAVELENGTH, ANDMASK) or older (rows of an image).

    Returns
    -------
    Spectra
        One row. `mask` is True where a pixel is not usable: ivar 0, NaN, any bit of LAMOST's
        and-mask, or FULLREJECT, NOSKY, BRIGHTSKY or NODATA of SDSS's; flux that is no number is
        interpolated. `snr` and `redshift` from the headers (S/N: SDSS SN_MEDIAN_ALL or the r band,
        LAMOST SNRR; else the median of flux times the root of ivar); `label` 0 GALAXY, 1 QSO,
        2 STAR, or -1 without such a class in the headers; `name` is that of the file.

    Raises
    ------
    ValueError
        If the file is damaged, lacks an HDU or a column, holds many spectra, such as an SDSS
        spPlate file, or has no usable pixel; names it.
    ImportError
        If astropy is missing: ``pip install 'dipedl[spectra]'``.

    Examples
    --------
    >>> from dipedl.apps.spectra import read_spectrum
    >>> read_spectrum("spec-1323-52797-0012.fits")  # doctest: +SKIP
    Spectra(n=1, 3809.12-9213.93 Angstrom in 3837 pixels, failures=0)
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a path, got {path!r}; read_spectra takes several")
    file = Path(path)
    one = _read(file)
    filled = fill_gaps(one.flux.copy(), ~np.isfinite(one.flux), one.wavelength)
    row = _Row(file, one, filled, one.ivar, one.bad)
    return _spectra([row], one.wavelength, ())


def read_spectra(
    paths: PathLike | Iterable[PathLike],
    *,
    wavelength: Any = None,
    min_coverage: float = 0.9,
    on_error: Literal["list", "raise"] = "list",
) -> Spectra:
    r"""Spectra of many files of SDSS and LAMOST, mixed, on one grid.

    Each is rebinned by `resample`; a pixel of the grid of which less than half was measured is
    interpolated and marked. Read the paper's files of thousands with `read_paper_files`.

    Parameters
    ----------
    paths : path or iterable of paths
        A folder (with the folders in it), files, or a pattern such as ``"plate*/spec-*.fits.gz"``.
    wavelength : array-like (p,), optional
        The grid, increasing, in Angstrom. Default: `paper_grid`, 3900 to 9000.
    min_coverage : float, default=0.9
        Share of the grid's pixels that must have been measured, in (0, 1].
    on_error : {"list", "raise"}, default="list"
        What to do about a file that cannot be used: list it in `failures` and go on, or raise.

    Returns
    -------
    Spectra
        One row per usable file, in the order of the files (those of a folder sorted by name);
        see `read_spectrum`. `failures` lists the others with reasons.

    Raises
    ------
    FileNotFoundError
        If there is no FITS file at all.
    ValueError
        If `wavelength` is not increasing; if `on_error` is "raise" and a file cannot be used.
    ImportError
        If astropy is missing: ``pip install 'dipedl[spectra]'``.

    Examples
    --------
    >>> from dipedl.apps.spectra import read_spectra
    >>> spectra = read_spectra("plates/")  # doctest: +SKIP
    >>> spectra  # doctest: +SKIP
    Spectra(n=4198, 3900-9000 Angstrom in 3000 pixels, failures=2)
    >>> print(*spectra.failures, sep="\n")  # doctest: +SKIP
    plates/spec-0266-51602-0007.fits: damaged, or no FITS file: Empty or corrupt FITS file
    plates/spec-0266-51602-0031.fits: all its pixels are masked, NaN or without ivar
    """
    if on_error not in ("list", "raise"):
        raise ValueError(f"on_error must be 'list' or 'raise', got {on_error!r}")
    if not 0 < min_coverage <= 1:
        raise ValueError(f"min_coverage must be in (0, 1], got {min_coverage!r}; 0.9 is usual")
    grid = paper_grid() if wavelength is None else increasing_grid("wavelength", wavelength)
    rows: list[_Row] = []
    failures: list[Failure] = []
    for path in fits_files(paths):
        with listed(failures, on_error):
            rows.append(_on_grid(path, grid, min_coverage))
    return _spectra(rows, grid, tuple(failures))


class _Row(NamedTuple):
    file: Path
    facts: OneSpectrum
    flux: NDArray[Any]
    ivar: NDArray[Any]
    mask: NDArray[np.bool_]


def _read(path: Path) -> OneSpectrum:
    with opened(path) as hdus:
        return one_spectrum(hdus)


def _on_grid(path: Path, grid: NDArray[np.float64], min_coverage: float) -> _Row:
    one = _read(path)
    low, high = one.wavelength[[0, -1]]
    span = f"{grid[0]:.0f}-{grid[-1]:.0f} Angstrom"
    if low > grid[-1] or high < grid[0]:
        reason = f"it covers {low:.0f}-{high:.0f} Angstrom, which does not overlap with {span}"
        raise unusable(path, reason)
    covered = np.interp(grid, one.wavelength, ~one.bad, left=0, right=0)
    if not covered.any():
        raise unusable(path, f"it has no usable pixel in {span}")
    with np.errstate(all="ignore"):  # what overflows is refused below
        pixels = resample(one.flux, one.wavelength, grid, ivar=one.ivar, mask=one.bad)
        # Converted to float32 per spectrum: there may be thousands.
        flux, ivar = (np.asarray(array, dtype=np.float32) for array in pixels[:2])
    share = 1 - pixels.mask.mean()
    if share < min_coverage:
        raise unusable(
            path,
            f"it has usable pixels on {share:.0%} of {span}, wanted are {min_coverage:.0%}: "
            f"it covers {low:.0f}-{high:.0f}, {one.bad.mean():.0%} masked",
        )
    if not pixels.flux.sum() > 0:
        raise unusable(path, f"its total flux in {span} is not positive: {pixels.flux.sum():g}")
    if not (np.isfinite(flux).all() and np.isfinite(ivar).all()):
        largest = np.abs(pixels.flux).max()
        raise unusable(path, f"flux up to {largest:g} or its ivar is too large for float32")
    return _Row(path, one, flux, ivar, pixels.mask)


def _spectra(rows: list[_Row], grid: NDArray[np.float64], failures: tuple[Failure, ...]) -> Spectra:
    shape = (len(rows), len(grid))
    known = (CLASSES.index(r.facts.kind) if r.facts.kind in CLASSES else -1 for r in rows)
    return Spectra(
        np.array([r.flux for r in rows], np.float32).reshape(shape),
        grid,
        label=np.fromiter(known, np.int64, len(rows)),
        target_names=CLASSES,
        snr=np.array([r.facts.snr for r in rows], np.float64),
        redshift=np.array([r.facts.redshift for r in rows], np.float64),
        name=np.array([stem(r.file.name) for r in rows], np.str_),
        ivar=np.array([r.ivar for r in rows], np.float32).reshape(shape),
        mask=np.array([r.mask for r in rows], np.bool_).reshape(shape),
        failures=failures,
    )
