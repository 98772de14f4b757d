"""Mean flux at spectral lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..grid import LINES, PAPER_LINES, paper_grid
from ._rows import FluxTransformer, flux_rows

__all__ = ["LineMeans"]


class LineMeans(FluxTransformer):
    """Mean flux of the pixels within a few Angstrom of each line.

    Parameters
    ----------
    wavelength : ndarray (p,), optional
        Wavelengths of the pixels in Angstrom, increasing; None is `paper_grid`.
    lines : sequence of str or float, default=PAPER_LINES
        Names out of ``dipedl.apps.spectra.grid.LINES``, or wavelengths in Angstrom.
    half_width : float, default=3.0
        Largest distance of a pixel from its line, in Angstrom.

    Attributes
    ----------
    windows_ : ndarray (len(lines), 2), int64
        First pixel of each line, and the one after its last.
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    The windows stay at rest wavelengths, as published: they fit the lines of stars, not those of
    redshifted galaxies and quasars.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import LineMeans, paper_grid
    >>> flux = paper_grid()[None, :]
    >>> means = LineMeans().fit(flux)
    >>> means.transform(flux).round(1)
    array([[6563.1, 4861.7, 4340.4, 4101.5, 5183.9, 5889.7]])
    >>> means.get_feature_names_out()[:2]
    array(['line_Hα', 'line_Hβ'], dtype=object)
    """

    def __init__(
        self,
        wavelength: np.ndarray | None = None,
        lines: Sequence[str | float] = PAPER_LINES,
        half_width: float = 3.0,
    ) -> None:
        self.wavelength = wavelength
        self.lines = lines
        self.half_width = half_width

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the pixels of each line, for spectra X (n, p).

        Raises
        ------
        ValueError
            If the grid does not fit X, is not increasing, or has no pixel at a line; if a line has
            no known name.
        """
        if not 0 <= self.half_width < np.inf:
            raise ValueError(f"half_width must be finite and >= 0, got {self.half_width!r}")
        rows = flux_rows(self, X, reset=True)
        grid = _grid(self.wavelength, rows.shape[1])
        at = np.array([_wavelength_of(line) for line in self.lines])
        first = np.searchsorted(grid, at - self.half_width, side="left")
        after = np.searchsorted(grid, at + self.half_width, side="right")
        if len(at) == 0 or (first == after).any():
            missing = [line for line, i, j in zip(self.lines, first, after, strict=True) if i == j]
            raise ValueError(
                f"lines must have a pixel within {self.half_width:g} Angstrom, got none for "
                f"{missing} on the grid {grid[0]:g}-{grid[-1]:g} Angstrom; choose other lines, or "
                "a larger half_width"
            )
        self.windows_ = np.stack([first, after], axis=1).astype(np.int64)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Mean flux of spectra X (n, p) at each line, shape (n, len(lines)), in the type of X."""
        rows = flux_rows(self, X, reset=False)
        means = np.empty((len(rows), len(self.windows_)), rows.dtype)
        for column, (first, after) in enumerate(self.windows_):
            means[:, column] = rows[:, first:after].mean(axis=1, dtype=np.float64)
        return means

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``line_`` and the name or the wavelength of each line."""
        check_is_fitted(self)
        return np.array([f"line_{line}" for line in self.lines], dtype=object)


def _grid(wavelength: Any, pixels: int) -> np.ndarray:
    """The wavelengths (p,), checked against the number of pixels."""
    grid = paper_grid() if wavelength is None else np.asarray(wavelength, dtype=np.float64)
    if grid.shape != (pixels,):
        given = "wavelength=None means the paper's grid" if wavelength is None else "wavelength"
        raise ValueError(
            f"wavelength must hold one wavelength for each of the {pixels} pixels of X, got shape "
            f"{grid.shape} ({given}); give wavelength= the grid of X, or resample X"
        )
    if not (np.isfinite(grid).all() and (np.diff(grid) > 0).all()):
        raise ValueError("wavelength must be finite and increasing; sort the pixels")
    return grid


def _wavelength_of(line: Any) -> float:
    if isinstance(line, str):
        if line not in LINES:
            raise ValueError(f"lines must be out of {list(LINES)} or wavelengths, got {line!r}")
        return float(LINES[line])
    return float(line)
