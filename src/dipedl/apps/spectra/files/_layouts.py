"""Layouts of SDSS and LAMOST files with one spectrum each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .fits import LayoutError

#: Bits of SDSS's and_mask that make a pixel unusable: FULLREJECT, NOSKY, BRIGHTSKY, NODATA. The
#: others are information only; pixels rejected by the pipeline have ivar 0.
SDSS_BAD = 1 << 18 | 1 << 22 | 1 << 23 | 1 << 24
#: Rows of an image with one spectrum: the older SDSS files have four or five, LAMOST's five.
_MOST_IMAGE_ROWS = 5
#: SPEC_CLN of SDSS's first releases.
_SPEC_CLN = {1: "STAR", 2: "GALAXY", 3: "QSO", 4: "QSO", 6: "STAR"}


class OneSpectrum(NamedTuple):
    """A spectrum on the grid of its file; arrays (m,)."""

    wavelength: NDArray[np.float64]
    flux: NDArray[np.float64]
    ivar: NDArray[np.float64]
    bad: NDArray[np.bool_]
    snr: float
    redshift: float
    kind: str


def one_spectrum(hdus: Any) -> OneSpectrum:
    """The spectrum in the HDUs of a file; a LayoutError if they hold none."""
    if len(hdus[0].shape) == 2:
        return _image(hdus)
    for hdu in hdus[1:]:
        names = {name.lower(): name for name in _columns(hdu)}
        if "flux" in names:
            return _table(hdus, hdu, names)
    raise LayoutError(
        "it has neither an image of rows in its first HDU nor a table with a column flux; it has "
        f"{[hdu.name or type(hdu).__name__ for hdu in hdus]}"
    )


def _columns(hdu: Any) -> list[str]:
    return list(hdu.columns.names) if hasattr(hdu, "columns") else []


def _table(hdus: Any, hdu: Any, names: Mapping[str, str]) -> OneSpectrum:
    sdss = "loglam" in names or "and_mask" in names
    grid = "loglam" if "loglam" in names else "wavelength"
    missing = [name for name in (grid, "ivar") if name not in names]
    if missing:
        raise LayoutError(
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
    return _checked(OneSpectrum(wavelength, flux, ivar, bad, **facts))


def _sdss_bad(mask: NDArray[Any]) -> NDArray[np.bool_]:
    """Unusable pixels by a mask of SDSS, which an image stores as floats."""
    bits = np.nan_to_num(mask).astype(np.int64)
    return np.asarray(bits & SDSS_BAD != 0)


def _many_spectra(n: int) -> LayoutError:
    return LayoutError(
        f"it holds {n} {'spectrum' if n == 1 else 'spectra'}, as SDSS's spPlate files do; give a "
        "file for each spectrum, such as spec-PLATE-MJD-FIBER.fits"
    )


def _image(hdus: Any) -> OneSpectrum:
    """Rows of the first HDU: LAMOST's first data releases, or SDSS's spSpec files.

    Those of spSpec are flux, flux without continuum, error, mask; those of LAMOST flux, ivar,
    wavelength, and-mask, or-mask.
    """
    header, shape = hdus[0].header, tuple(hdus[0].shape)
    if len(hdus) > 1 and "objid" in map(str.lower, _columns(hdus[1])):
        raise LayoutError("it holds many spectra, in the paper's layout; use read_paper_files")
    ivar_apart = len(hdus) > 1 and hdus[1].is_image and tuple(hdus[1].shape) == shape
    if shape[0] > _MOST_IMAGE_ROWS or ivar_apart:
        raise _many_spectra(shape[0])
    if shape[0] < 4:
        raise LayoutError(
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
        return _checked(OneSpectrum(wavelength, rows[0], error**-2.0, bad, snr, redshift, kind))
    if not np.allclose(rows[2], wavelength, rtol=0.01, equal_nan=True):
        raise LayoutError(
            "the third row of its image must be wavelengths, as COEFF0 and COEFF1 give them, got "
            f"{rows[2, 0]:g} to {rows[2, -1]:g}"
        )
    facts = _lamost_facts(header)
    return _checked(OneSpectrum(wavelength, rows[0], rows[1], rows[3] != 0, **facts))


def _checked(one: OneSpectrum) -> OneSpectrum:
    """The spectrum with unusable pixels marked, and an S/N where the headers have none."""
    wavelength, flux, ivar, bad, snr, *_ = one
    if not len(flux) == len(ivar) == len(wavelength) == len(bad) or len(flux) < 2:
        raise LayoutError(
            "flux, ivar, wavelength and mask must have as many pixels, got "
            f"{len(flux)}, {len(ivar)}, {len(wavelength)}, {len(bad)}"
        )
    if not (np.all(np.diff(wavelength) > 0) and 0 < wavelength[0] and np.isfinite(wavelength[-1])):
        raise LayoutError("its wavelengths do not increase")
    bad = bad | ~np.isfinite(flux) | ~np.isfinite(ivar) | (ivar <= 0)
    if bad.all():
        raise LayoutError("all its pixels are masked, NaN or without ivar")
    if np.ptp(flux[~bad]) == 0:
        raise LayoutError(f"it is constant: every usable pixel is {flux[~bad][0]:g}")
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
