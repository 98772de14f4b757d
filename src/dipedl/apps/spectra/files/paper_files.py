"""The paper's files of LAMOST spectra: thousands in each, on its grid."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..grid import paper_grid
from ..resampling import fill_gaps
from ..spectra import CLASSES, Failure, Spectra
from .fits import LayoutError, PathLike, UnusableError, fits_files, listed, opened, unusable

__all__ = ["read_paper_files"]

_CHUNK = 2000
_MAX_GAP = 0.1


def read_paper_files(
    files: PathLike | Iterable[PathLike], *, on_error: Literal["list", "raise"] = "list"
) -> Spectra:
    """Spectra in the layout of the paper's LAMOST files, in the order of files and rows.

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
    if on_error not in ("list", "raise"):
        raise ValueError(f"on_error must be 'list' or 'raise', got {on_error!r}")
    found = fits_files(files)
    failures: list[Failure] = []
    sizes: dict[Path, int] = {}
    for path in found:
        with listed(failures, on_error):
            sizes[path] = _rows_in(path)
    if not sizes:
        why = "; ".join(map(str, failures[:3]))
        raise ValueError(f"files must hold spectra in the paper's layout, but none does: {why}")
    table = _Table(sum(sizes.values()))
    for path in sizes:
        with listed(failures, on_error):
            for problem in table.take(path):
                with listed(failures, on_error):
                    raise problem
    return table.spectra(tuple(failures))


def _rows_in(path: Path) -> int:
    """Number of spectra in a file, from its headers; refuses another layout."""
    with opened(path, many=True) as hdus:
        shape = tuple(hdus[0].shape)
        pixels = len(paper_grid())
        if len(shape) != 2 or shape[1] != pixels:
            raise LayoutError(
                f"its first HDU must be an image of n rows and {pixels} pixels, got shape {shape}; "
                "single spectra are read by read_spectra"
            )
        if len(hdus) < 2 or not hasattr(hdus[1], "columns"):
            raise LayoutError("its second HDU must be a table with objid and label, got none")
        missing = {"objid", "label"} - {name.lower() for name in hdus[1].columns.names}
        if missing:
            raise LayoutError(
                f"its table must have the columns objid and label, got {hdus[1].columns.names}"
            )
        rows = hdus[1].header["NAXIS2"]
        if rows != shape[0]:
            raise LayoutError(f"it has {shape[0]} spectra and {rows} labels, one each is needed")
        return int(shape[0])


def _numbers(objid: Any) -> NDArray[np.int64]:
    found = np.asarray(objid)
    if found.dtype.kind not in "iuf":
        raise LayoutError(f"its column objid must hold numbers, got {found[:1].tolist()}")
    return found.astype(np.int64)


class _Table:
    """Arrays filled file by file; unusable rows leave no gap."""

    def __init__(self, n: int) -> None:
        self.flux = np.empty((n, len(paper_grid())), np.float32)
        self.label = np.empty(n, np.int64)
        self.objid = np.empty(n, np.int64)
        self.filled: dict[int, NDArray[np.bool_]] = {}
        self.n = 0

    def take(self, path: Path) -> list[UnusableError]:
        """Read the spectra of a file, all or none; returns the failures."""
        start, problems = self.n, []
        try:
            with opened(path, many=True) as hdus:
                label = np.asarray(hdus[1].data["label"])
                objid = _numbers(hdus[1].data["objid"])
                for low in range(0, len(label), _CHUNK):
                    rows = slice(low, low + _CHUNK)
                    flux = np.asarray(hdus[0].data[rows])
                    problems += self._add(path, low, flux, label[rows], objid[rows])
        except UnusableError:
            self.n = start
            self.filled = {row: gap for row, gap in self.filled.items() if row < start}
            raise
        return problems

    def _add(
        self, path: Path, low: int, flux: NDArray[Any], label: NDArray[Any], objid: NDArray[Any]
    ) -> list[UnusableError]:
        with np.errstate(over="ignore"):
            flux = flux.astype(np.float32)
        gaps = ~np.isfinite(flux)
        flux[gaps] = np.nan
        reasons = _reasons(flux, gaps, label)
        kept = [row for row in range(len(flux)) if row not in reasons]
        self.filled |= {self.n + i: gaps[row] for i, row in enumerate(kept) if gaps[row].any()}
        into = slice(self.n, self.n + len(kept))
        self.flux[into] = fill_gaps(flux[kept], gaps[kept], paper_grid())
        self.label[into], self.objid[into] = label[kept], objid[kept]
        self.n += len(kept)
        return [unusable(path, reason, low + row) for row, reason in reasons.items()]

    def spectra(self, failures: tuple[Failure, ...]) -> Spectra:
        mask = None
        if self.filled:
            mask = np.zeros((self.n, self.flux.shape[1]), np.bool_)
            for row, gap in self.filled.items():
                mask[row] = gap
        return Spectra(
            self.flux[: self.n],
            paper_grid(),
            label=self.label[: self.n],
            target_names=CLASSES,
            name=self.objid[: self.n].astype(np.str_),
            group=self.objid[: self.n],
            mask=mask,
            failures=failures,
        )


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
