"""Readers of files of spectra: single ones of SDSS and LAMOST, and the paper's files of thousands.

Sizes in the headers are checked before astropy believes them; an unusable file is an error with a
reason, or a line in `Spectra.failures`.
"""

from __future__ import annotations

import glob
import gzip
import io
import math
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...maths.arrays import check_choice, check_number
from ...protocols import optional
from .resampling import fill_gaps, increasing_grid, resample
from .spectra import CLASSES, Failure, Spectra, paper_grid

__all__ = ["read_paper_files", "read_spectra", "read_spectrum"]

PathLike = str | os.PathLike[str]
ENDINGS = (".fits", ".fit", ".fits.gz", ".fit.gz")

#: Warnings of astropy for a truncated file, in its data or in a header.
_BROKEN_OFF = ".*(truncated|Error validating header)"
#: Bytes of a file of one spectrum, unpacked; those of surveys have a few million at most.
_MOST_BYTES = 100_000_000
#: How many times the packed size a file of many spectra may have; noise packs badly.
_MOST_RATIO = 20
#: Where the reason ends and astropy's advice begins.
_ADVICE = re.compile(r"[.] |, fix it first")
_BLOCK, _CARD = 2880, 80
#: The standard allows as many axes of an image, and columns of a table.
_MOST_AXES = 999
#: Cards in all headers of a file; those of surveys have some hundred, and reading them takes time.
_MOST_CARDS = 36_000
#: Cards that say how long the data are.
_SIZES = re.compile(rb"BITPIX|NAXIS[0-9]*|TFIELDS|PCOUNT|GCOUNT")
_INTEGER = re.compile(rb"= *([+-]?[0-9]{1,18}) *(/|$)")
#: Bits of SDSS's and_mask that make a pixel unusable: FULLREJECT, NOSKY, BRIGHTSKY, NODATA. The
#: others are information only; pixels rejected by the pipeline have ivar 0.
SDSS_BAD = 1 << 18 | 1 << 22 | 1 << 23 | 1 << 24
#: Rows of an image with one spectrum: the older SDSS files have four or five, LAMOST's five.
_MOST_IMAGE_ROWS = 5
#: SPEC_CLN of SDSS's first releases.
_SPEC_CLN = {1: "STAR", 2: "GALAXY", 3: "QSO", 4: "QSO", 6: "STAR"}
_CHUNK = 2000  # rows of the paper's files that are read together
_MAX_GAP = 0.1  # share of a spectrum that may be filled in


def read_spectrum(path: PathLike) -> Spectra:
    """Read one spectrum on its own grid from a file of SDSS or LAMOST (``.fits`` or ``.fits.gz``).

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
    return _spectra([file], [one._replace(flux=filled)], ())


def read_spectra(
    paths: PathLike | Iterable[PathLike],
    *,
    wavelength: Any = None,
    min_coverage: float = 0.9,
    on_error: Literal["list", "raise"] = "list",
) -> Spectra:
    r"""Read spectra of many files of SDSS and LAMOST, mixed, on one grid.

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
    check_choice("on_error", on_error, ("list", "raise"))
    check_number("min_coverage", min_coverage, "in (0, 1]", lambda x: 0 < x <= 1)
    grid = paper_grid() if wavelength is None else increasing_grid("wavelength", wavelength)
    usable: dict[Path, _OneSpectrum] = {}
    failures: list[Failure] = []
    for path in fits_files(paths):
        with _list_failures(failures, on_error):
            usable[path] = _on_grid(path, grid, min_coverage)
    return _spectra(usable, list(usable.values()), tuple(failures), grid)


def _read(path: Path) -> _OneSpectrum:
    with _open_fits(path) as hdus:
        return _one_spectrum(hdus)


def _on_grid(path: Path, grid: NDArray[np.float64], min_coverage: float) -> _OneSpectrum:
    one = _read(path)
    low, high = one.wavelength[[0, -1]]
    span = f"{grid[0]:.0f}-{grid[-1]:.0f} Angstrom"
    if low > grid[-1] or high < grid[0]:
        reason = f"it covers {low:.0f}-{high:.0f} Angstrom, which does not overlap with {span}"
        raise _unusable(path, reason)
    covered = np.interp(grid, one.wavelength, ~one.bad, left=0, right=0)
    if not covered.any():
        raise _unusable(path, f"it has no usable pixel in {span}")
    with np.errstate(all="ignore"):  # what overflows is refused below
        pixels = resample(one.flux, one.wavelength, grid, ivar=one.ivar, mask=one.bad)
        # Converted to float32 per spectrum: there may be thousands.
        flux, ivar = (np.asarray(array, dtype=np.float32) for array in pixels[:2])
    share = 1 - pixels.mask.mean()
    if share < min_coverage:
        raise _unusable(
            path,
            f"it has usable pixels on {share:.0%} of {span}, wanted are {min_coverage:.0%}: "
            f"it covers {low:.0f}-{high:.0f}, {one.bad.mean():.0%} masked",
        )
    if not pixels.flux.sum() > 0:
        raise _unusable(path, f"its total flux in {span} is not positive: {pixels.flux.sum():g}")
    if not (np.isfinite(flux).all() and np.isfinite(ivar).all()):
        largest = np.abs(pixels.flux).max()
        raise _unusable(path, f"flux up to {largest:g} or its ivar is too large for float32")
    return one._replace(wavelength=grid, flux=flux, ivar=ivar, bad=pixels.mask)


def _spectra(
    files: Iterable[Path],
    rows: list[_OneSpectrum],
    failures: tuple[Failure, ...],
    grid: NDArray[np.float64] | None = None,
) -> Spectra:
    grid = rows[0].wavelength if grid is None else grid
    shape = (len(rows), len(grid))
    known = (CLASSES.index(row.kind) if row.kind in CLASSES else -1 for row in rows)
    return Spectra(
        np.array([row.flux for row in rows], np.float32).reshape(shape),
        grid,
        label=np.fromiter(known, np.int64, len(rows)),
        target_names=CLASSES,
        snr=np.array([row.snr for row in rows], np.float64),
        redshift=np.array([row.redshift for row in rows], np.float64),
        name=np.array([stem(file.name) for file in files], np.str_),
        ivar=np.array([row.ivar for row in rows], np.float32).reshape(shape),
        mask=np.array([row.bad for row in rows], np.bool_).reshape(shape),
        failures=failures,
    )


# Layouts of SDSS and LAMOST files with one spectrum each


class _OneSpectrum(NamedTuple):
    """A spectrum on the grid of its file, or on another; arrays (m,)."""

    wavelength: NDArray[np.float64]
    flux: NDArray[Any]
    ivar: NDArray[Any]
    bad: NDArray[np.bool_]
    snr: float
    redshift: float
    kind: str


def _one_spectrum(hdus: Any) -> _OneSpectrum:
    """Return the spectrum in the HDUs of a file; raise a _LayoutError if they hold none."""
    if len(hdus[0].shape) == 2:
        return _read_image(hdus)
    for hdu in hdus[1:]:
        names = {name.lower(): name for name in _columns(hdu)}
        if "flux" in names:
            return _read_table(hdus, hdu, names)
    raise _LayoutError(
        "it has neither an image of rows in its first HDU nor a table with a column flux; it has "
        f"{[hdu.name or type(hdu).__name__ for hdu in hdus]}"
    )


def _columns(hdu: Any) -> list[str]:
    return list(hdu.columns.names) if hasattr(hdu, "columns") else []


def _read_table(hdus: Any, hdu: Any, names: Mapping[str, str]) -> _OneSpectrum:
    sdss = "loglam" in names or "and_mask" in names
    grid = "loglam" if "loglam" in names else "wavelength"
    missing = [name for name in (grid, "ivar") if name not in names]
    if missing:
        raise _LayoutError(
            f"its table {hdu.name!r} must have the columns flux, ivar and loglam or wavelength, "
            f"got {list(names.values())}"
        )
    columns = {
        name: np.asarray(hdu.data[names[name]])
        for name in ("flux", "ivar", grid, "and_mask", "andmask")
        if name in names
    }
    if columns["flux"].ndim > 1 and len(columns["flux"]) > 1:
        raise _many_spectra(len(columns["flux"]))
    flux, ivar, wavelength = (
        columns[name].astype(np.float64).ravel() for name in ("flux", "ivar", grid)
    )
    if grid == "loglam":
        wavelength = 10**wavelength
    bad = np.zeros(len(flux), np.bool_)
    if "and_mask" in columns:
        bad = _sdss_bad(columns["and_mask"].ravel())
    elif "andmask" in columns:
        bad = np.nan_to_num(columns["andmask"].ravel()) != 0
    facts = _sdss_facts(hdus) if sdss else _lamost_facts(hdus[0].header)
    return _check_pixels(_OneSpectrum(wavelength, flux, ivar, bad, **facts))


def _sdss_bad(mask: NDArray[Any]) -> NDArray[np.bool_]:
    """Unusable pixels by a mask of SDSS, which an image stores as floats."""
    bits = np.nan_to_num(mask).astype(np.int64)
    return np.asarray(bits & SDSS_BAD != 0)


def _many_spectra(n: int) -> _LayoutError:
    return _LayoutError(
        f"it holds {n} {'spectrum' if n == 1 else 'spectra'}, as SDSS's spPlate files do; give a "
        "file for each spectrum, such as spec-PLATE-MJD-FIBER.fits"
    )


def _read_image(hdus: Any) -> _OneSpectrum:
    """Rows of the first HDU: LAMOST's first data releases, or SDSS's spSpec files.

    Those of spSpec are flux, flux without continuum, error, mask; those of LAMOST flux, ivar,
    wavelength, and-mask, or-mask.
    """
    header, shape = hdus[0].header, tuple(hdus[0].shape)
    if len(hdus) > 1 and "objid" in map(str.lower, _columns(hdus[1])):
        raise _LayoutError("it holds many spectra, in the paper's layout; use read_paper_files")
    ivar_apart = len(hdus) > 1 and hdus[1].is_image and tuple(hdus[1].shape) == shape
    if shape[0] > _MOST_IMAGE_ROWS or ivar_apart:
        raise _many_spectra(shape[0])
    if shape[0] < 4:
        raise _LayoutError(
            "the image in its first HDU must have the rows flux, ivar, wavelength, and-mask, "
            f"got shape {shape}"
        )
    rows = np.asarray(hdus[0].data, dtype=np.float64)
    if "COEFF0" in header and "COEFF1" in header:
        wavelength = 10 ** (header["COEFF0"] + header["COEFF1"] * np.arange(shape[1]))
    else:
        wavelength = rows[2]
    if "SDSS" in str(header.get("TELESCOP", "")):
        error = np.where(rows[2] > 0, rows[2], np.inf)
        kind = _SPEC_CLN.get(header.get("SPEC_CLN"), "")
        snr, redshift = _number(header.get("SN_R")), _number(header.get("Z"))
        bad = _sdss_bad(rows[3])
        return _check_pixels(
            _OneSpectrum(wavelength, rows[0], error**-2.0, bad, snr, redshift, kind)
        )
    if not np.allclose(rows[2], wavelength, rtol=0.01, equal_nan=True):
        raise _LayoutError(
            "the third row of its image must be wavelengths, as COEFF0 and COEFF1 give them, got "
            f"{rows[2, 0]:g} to {rows[2, -1]:g}"
        )
    facts = _lamost_facts(header)
    return _check_pixels(_OneSpectrum(wavelength, rows[0], rows[1], rows[3] != 0, **facts))


def _check_pixels(one: _OneSpectrum) -> _OneSpectrum:
    """The spectrum with unusable pixels marked, and an S/N where the headers have none."""
    wavelength, flux, ivar, bad, snr, *_ = one
    if not len(flux) == len(ivar) == len(wavelength) == len(bad) or len(flux) < 2:
        raise _LayoutError(
            "flux, ivar, wavelength and mask must have as many pixels, got "
            f"{len(flux)}, {len(ivar)}, {len(wavelength)}, {len(bad)}"
        )
    if not (np.all(np.diff(wavelength) > 0) and 0 < wavelength[0] and np.isfinite(wavelength[-1])):
        raise _LayoutError("its wavelengths do not increase")
    bad = bad | ~np.isfinite(flux) | ~np.isfinite(ivar) | (ivar <= 0)
    if bad.all():
        raise _LayoutError("all its pixels are masked, NaN or without ivar")
    if np.ptp(flux[~bad]) == 0:
        raise _LayoutError(f"it is constant: every usable pixel is {flux[~bad][0]:g}")
    if not snr > 0:
        snr = float(np.median(flux[~bad] * np.sqrt(ivar[~bad])))
    return one._replace(ivar=np.where(bad, 0.0, ivar), bad=bad, snr=snr)


def _lamost_facts(header: Any) -> dict[str, Any]:
    return {
        "snr": _number(header.get("SNRR")),
        "redshift": _number(header.get("Z")),
        "kind": str(header.get("CLASS", "")).strip().upper(),
    }


def _sdss_facts(hdus: Any) -> dict[str, Any]:
    """Redshift, S/N and class from the table of redshifts; what it lacks stays unknown."""
    for hdu in hdus[1:]:
        names = {name.upper() for name in _columns(hdu)}
        if {"Z", "CLASS"} <= names and len(hdu.data):
            row = hdu.data[0]
            kind = str(row["CLASS"]).strip().upper()
            return {"snr": _sdss_snr(row, names), "redshift": _number(row["Z"]), "kind": kind}
    return {"snr": np.nan, "redshift": np.nan, "kind": ""}


def _sdss_snr(row: Any, names: set[str]) -> float:
    if "SN_MEDIAN_ALL" in names:
        return _number(row["SN_MEDIAN_ALL"])
    if "SN_MEDIAN" not in names:
        return float("nan")
    bands = np.atleast_1d(row["SN_MEDIAN"])
    return _number(bands[2] if len(bands) == 5 else bands[0])  # of u, g, r, i, z the r band


def _number(value: Any) -> float:
    """A number of a header; NaN where it is missing or a place-holder such as -9999."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return float("nan")
    return number if number > -999 else float("nan")


# The paper's files: thousands of spectra in each, on its grid


def read_paper_files(
    files: PathLike | Iterable[PathLike], *, on_error: Literal["list", "raise"] = "list"
) -> Spectra:
    """Read spectra in the layout of the paper's LAMOST files, in the order of files and rows.

    Each file holds fluxes, float64 (n, 3000), in its first HDU, and a table with ``objid`` and
    ``label`` (0 galaxy, 1 quasar, 2 star) in its second; the grid is `paper_grid`. Files are
    read in chunks: 100,000 spectra take their 1.2 GB and little more.

    Parameters
    ----------
    files : path or iterable of paths
        A folder, files, or a pattern; ``train_data_2`` comes before ``train_data_10``.
    on_error : {"list", "raise"}, default="list"
        What to do about a file or row that cannot be used: list it in `failures`, or raise.

    Returns
    -------
    Spectra
        `target_names` GALAXY, QSO, STAR; `name` and `group` are the objids. NaN pixels, up to a
        tenth of a spectrum, are interpolated and marked in `mask`, which is None without any.
        `failures` lists files that are damaged or laid out otherwise, and rows that are constant,
        have more NaN or no positive total flux, or whose label is not 0, 1 or 2.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If `on_error` is "raise" and something cannot be used; or if no file can be used at all.
    ImportError
        If astropy is missing: ``pip install 'dipedl[spectra]'``.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", section on LAMOST.

    Examples
    --------
    >>> from dipedl.apps.spectra import read_paper_files
    >>> read_paper_files("data/lamost")  # doctest: +SKIP
    Spectra(n=100000, 3900-9000 Angstrom in 3000 pixels, failures=0)
    """
    check_choice("on_error", on_error, ("list", "raise"))
    failures: list[Failure] = []
    parts: list[_PaperRows] = []
    for path in fits_files(files):
        with _list_failures(failures, on_error):
            parts.append(_paper_rows(path))
            for row, reason in parts[-1].refused.items():
                with _list_failures(failures, on_error):
                    raise _unusable(path, reason, row)
    if not parts:
        why = "; ".join(map(str, failures[:3]))
        raise ValueError(f"files must hold spectra in the paper's layout, but none does: {why}")
    label, objid = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    flux = np.empty((len(label), len(paper_grid())), np.float32)
    mask = np.zeros(flux.shape, np.bool_) if any(part.gaps for part in parts) else None
    start = 0
    while parts:  # each is let go once it is copied
        part = parts.pop(0)
        flux[start : start + len(part.flux)] = part.flux
        if mask is not None:
            for row, gap in part.gaps.items():
                mask[start + row] = gap
        start += len(part.flux)
    return Spectra(
        flux,
        paper_grid(),
        label=label,
        target_names=CLASSES,
        name=objid.astype(np.str_),
        group=objid,
        mask=mask,
        failures=tuple(failures),
    )


class _PaperRows(NamedTuple):
    """Usable spectra of a file, pixels filled in by row, and why the other rows are refused."""

    flux: NDArray[np.float32]
    label: NDArray[np.int64]
    objid: NDArray[np.int64]
    gaps: dict[int, NDArray[np.bool_]]
    refused: dict[int, str]


def _paper_rows(path: Path) -> _PaperRows:
    """Read the spectra of a file in the paper's layout, all of them or none."""
    with _open_fits(path, many=True) as hdus:
        shape, grid = tuple(hdus[0].shape), paper_grid()
        if len(shape) != 2 or shape[1] != len(grid):
            raise _LayoutError(
                f"its first HDU must be an image of n rows and {len(grid)} pixels, got shape "
                f"{shape}; single spectra are read by read_spectra"
            )
        if len(hdus) < 2 or not hasattr(hdus[1], "columns"):
            raise _LayoutError("its second HDU must be a table with objid and label, got none")
        if {"objid", "label"} - {name.lower() for name in hdus[1].columns.names}:
            raise _LayoutError(
                f"its table must have the columns objid and label, got {hdus[1].columns.names}"
            )
        n, rows = shape[0], hdus[1].header["NAXIS2"]
        if rows != n:
            raise _LayoutError(f"it has {n} spectra and {rows} labels, one each is needed")
        label, objid = (np.asarray(hdus[1].data[name]) for name in ("label", "objid"))
        if objid.dtype.kind not in "iuf":
            raise _LayoutError(f"its column objid must hold numbers, got {objid[:1].tolist()}")
        flux = np.empty((n, len(grid)), np.float32)
        usable: list[int] = []
        filled: dict[int, NDArray[np.bool_]] = {}
        refused: dict[int, str] = {}
        for low in range(0, n, _CHUNK):
            with np.errstate(over="ignore"):
                chunk = np.asarray(hdus[0].data[low : low + _CHUNK]).astype(np.float32)
            gaps = ~np.isfinite(chunk)
            chunk[gaps] = np.nan
            reasons = _reasons(chunk, gaps, label[low : low + _CHUNK])
            refused |= {low + row: reason for row, reason in reasons.items()}
            kept = [row for row in range(len(chunk)) if row not in reasons]
            first = len(usable)
            filled |= {first + i: gaps[row] for i, row in enumerate(kept) if gaps[row].any()}
            usable += [low + row for row in kept]
            flux[first : len(usable)] = fill_gaps(chunk[kept], gaps[kept], grid)
    known = label[usable].astype(np.int64), objid[usable].astype(np.int64)
    return _PaperRows(flux[: len(usable)], *known, filled, refused)


def _reasons(
    flux: NDArray[np.float32], gaps: NDArray[np.bool_], label: NDArray[Any]
) -> dict[int, str]:
    """Reasons why rows of a chunk are unusable, by row."""
    known = np.isin(label, range(len(CLASSES)))
    constant = np.fmax.reduce(flux, axis=1) == np.fmin.reduce(flux, axis=1)
    missing = gaps.mean(axis=1)
    total: NDArray[np.float64] = np.asarray(np.nansum(flux, axis=1, dtype=np.float64))
    found = {}
    for row in np.flatnonzero(~known | constant | (missing > _MAX_GAP) | (total <= 0)):
        if missing[row] > _MAX_GAP:
            share = f"{missing[row]:.0%} of its pixels are NaN or infinite"
            found[int(row)] = f"{share}; at most {_MAX_GAP:.0%} are filled in"
        elif constant[row]:
            found[int(row)] = "it is constant"
        elif total[row] <= 0:
            found[int(row)] = f"its total flux is not positive: {total[row]:g}"
        else:
            found[int(row)] = f"its label is {label[row]!s}; known are 0, 1 and 2 {CLASSES}"
    return found


# Find and open FITS files


class _UnusableError(ValueError):
    """A file, or one row of it, that cannot be used."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _LayoutError(ValueError):
    """Error of a file that lacks something; `_open_fits` adds the name of the file."""


@contextmanager
def _list_failures(failures: list[Failure], on_error: str) -> Iterator[None]:
    """Add whatever the block cannot use to `failures`, or raise it if `on_error` is "raise"."""
    try:
        yield
    except _UnusableError as error:
        if on_error == "raise":
            raise
        failures.append(error.failure)


def fits_files(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """List the files named by a folder (and the folders in it), a pattern, a file, or several."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, Iterable):
        raise TypeError(
            f"paths must be a file, a folder, a pattern, or several of these, got {paths!r}"
        )
    given = list(given)
    found = [file for one in given for file in _expand(Path(os.path.expanduser(one)))]
    if not found:
        raise FileNotFoundError(
            f"no FITS file ({', '.join(ENDINGS)}) in {[os.fspath(one) for one in given]}; "
            "name files, a folder that holds some, or a pattern such as 'plate*/spec-*.fits'"
        )
    return list(dict.fromkeys(found))


def stem(name: str) -> str:
    """Name of a file without the ending of a FITS file."""
    ending = next((e for e in ENDINGS if name.lower().endswith(e)), "")
    return name[: len(name) - len(ending)]


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        inside = (p for p in path.rglob("[!.]*") if p.name.lower().endswith(ENDINGS))
        # a broken link is listed as a failure
        return sorted((p for p in inside if not p.is_dir()), key=_natural)
    if not path.exists() and glob.has_magic(str(path)):
        return sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)
    if not path.exists() and not path.name.lower().endswith(ENDINGS):
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; check the spelling")
    return [path]


def _natural(path: Path) -> list[Any]:
    """Sort key of names in which 2 comes before 10; text and numbers alternate."""
    return [int(s) if s.isdecimal() else s for s in re.split(r"([0-9]+)", str(path))]


@contextmanager
def _open_fits(path: Path, *, many: bool = False) -> Iterator[Any]:
    """Open the HDUs of a file; any problem raises an _UnusableError that names the file.

    `many` says that it may hold many spectra: it may be large then, and is read bit by bit.
    """
    fits = optional("astropy.io.fits", "reading FITS files")
    with warnings.catch_warnings():
        # Most are of cards that nobody asks for; what is wrong with a spectrum is checked here.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=_BROKEN_OFF)
        try:
            with (
                _content(path, many) as stream,
                # mapped if it is a file; tables of packed images have no spectra
                fits.open(stream, memmap=many, disable_image_compression=True) as hdus,
            ):
                yield hdus
        except _UnusableError:
            raise
        except _LayoutError as error:
            raise _unusable(path, str(error)) from error
        except FileNotFoundError as error:
            raise _unusable(path, "there is no such file") from error
        except MemoryError as error:
            raise _unusable(path, "reading it takes more memory than there is") from error
        except Exception as error:
            # For a damaged header astropy raises nearly any exception, AttributeError included.
            cause = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, AttributeError | TypeError):
                cause = "astropy cannot read its headers"
            reason = _ADVICE.split(cause)[0]
            raise _unusable(path, f"damaged, or no FITS file: {reason}") from error


@contextmanager
def _content(path: Path, many: bool) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked, of a size that its headers agree with.

    astropy would unpack whatever looks packed, to any size, and would read a truncated .gz as a
    file with fewer HDUs.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise _LayoutError("it is no file but a folder, device, FIFO or socket")
    with open(path, "rb") as file:
        size, packed = os.fstat(file.fileno()).st_size, file.read(2) == b"\x1f\x8b"
        file.seek(0)
        most = max(_MOST_BYTES, _MOST_RATIO * size) if many else _MOST_BYTES
        if many and not packed:
            _check_structure(file, size)
            file.seek(0)
            yield file
            return
        content = (gzip.open(file) if packed else file).read(most + 1)
        if len(content) > most:
            raise _LayoutError(f"it holds more than {most / 1e6:.0f} MB, which no such file does")
        _check_structure(io.BytesIO(content), len(content))
        yield io.BytesIO(content)


def _unusable(path: Path, reason: str, row: int | None = None) -> _UnusableError:
    """Return the error of a file, or of one of its rows."""
    return _UnusableError(Failure(str(path), row, reason))


# Sizes in the headers


def _check_structure(stream: IO[bytes], size: int) -> None:
    """Raise a ValueError unless a file of `size` bytes is a chain of HDUs that it has room for.

    A header that promises 10**12 axes keeps a reader busy for hours, and after one whose size is
    wrong data are read as headers. Zeros and blanks behind the last HDU are allowed.
    """
    cards_left = _MOST_CARDS
    place = 0
    while place < size:
        stream.seek(place)
        cards = _header(stream, place, cards_left)
        if not cards:
            return
        cards_left -= len(cards)
        header = -(-len(cards) * _CARD // _BLOCK) * _BLOCK
        data = -(-_data_size(cards, size) // _BLOCK) * _BLOCK
        place += header + data
        if place > size:
            raise ValueError(f"truncated: its headers promise {place} bytes, it has {size}")


def _header(stream: IO[bytes], place: int, most: int) -> list[bytes]:
    """The cards of a header up to END; none if nothing but padding is left."""
    cards: list[bytes] = []
    while len(cards) <= most:
        block = stream.read(_BLOCK)
        if not cards and not block.startswith(b"XTENSION=" if place else b"SIMPLE  ="):
            if place and not (block + stream.read()).strip(b"\0 "):
                return []
            raise ValueError(f"no header begins at byte {place}")
        for start in range(0, len(block), _CARD):
            cards.append(block[start : start + _CARD])
            if cards[-1].rstrip() == b"END":
                return cards
        if len(block) < _BLOCK:
            raise ValueError(f"the header at byte {place} breaks off")
    raise ValueError(f"its headers have more than {_MOST_CARDS} cards")


def _data_size(cards: list[bytes], size: int) -> int:
    """Bytes of the data behind a header, without padding."""
    values: dict[bytes, bytes] = {}
    for card in cards:
        name = card[:8].rstrip()
        if name in values and _SIZES.fullmatch(name):
            # Readers do not agree on which of two counts, and one reader takes now this, now that.
            raise ValueError(f"{name.decode()} occurs twice in a header")
        values.setdefault(name, card[8:])
    axes, columns = _integer(values, "NAXIS"), _integer(values, "TFIELDS", 0)
    for key, value in [("NAXIS", axes), ("TFIELDS", columns)]:
        if not 0 <= value <= _MOST_AXES:
            raise ValueError(f"{key} must be in 0..{_MOST_AXES}, got {value}")
    lengths = [_integer(values, f"NAXIS{axis}") for axis in range(1, axes + 1)]
    extra, groups = _integer(values, "PCOUNT", 0), _integer(values, "GCOUNT", 1)
    for key, value in [("NAXISn", max(lengths, default=0)), ("PCOUNT", extra), ("GCOUNT", groups)]:
        if value > size:
            raise ValueError(f"{key} is {value}, more than the {size} bytes of the file")
    if min([*lengths, extra, groups]) < 0:
        raise ValueError("its headers promise data of a negative size")
    pixels = math.prod(lengths) if lengths else 0
    return abs(_integer(values, "BITPIX")) // 8 * groups * (extra + pixels)


def _integer(values: dict[bytes, bytes], name: str, default: int | None = None) -> int:
    value = values.get(name.encode())
    if value is None and default is not None:
        return default
    found = _INTEGER.match(value or b"")
    if found is None:
        raise ValueError(f"{name} must be an integer, got {(value or b'nothing').strip()!r}")
    return int(found[1])
