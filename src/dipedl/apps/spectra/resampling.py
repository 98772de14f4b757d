"""Rebinning of spectra that conserves flux and propagates variances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Resampled", "fill_gaps", "resample"]

Floats = NDArray[np.float64]
#: Share of a new pixel's width that usable pixels must cover.
_COVERED = 0.5


class Resampled(NamedTuple):
    """Result of `resample`.

    Attributes
    ----------
    flux : ndarray (..., p), float64
        Mean flux density of each pixel of the grid; interpolated where `mask` is True.
    ivar : ndarray (..., p), float64 or None
        Inverse variance of each; 0 where `mask` is True. None if no ivar was given.
    mask : ndarray (..., p), bool
        True where too little was measured.
    """

    flux: Floats
    ivar: Floats | None
    mask: NDArray[np.bool_]


def resample(
    flux: Any,
    wavelength: Any,
    grid: Any,
    *,
    ivar: Any = None,
    mask: Any = None,
) -> Resampled:
    r"""Bring spectra from one increasing grid to another; flux is conserved.

    A pixel reaches half way to its neighbours. The new flux density is the mean of the old ones,
    weighted by the width of the overlap,

    .. math:: f_j = \frac{\sum_i w_{ij} f_i}{\sum_i w_{ij}}, \qquad
              \operatorname{var}_j = \frac{\sum_i w_{ij}^2 \operatorname{var}_i}
                                          {(\sum_i w_{ij})^2},

    over the usable pixels i: finite, not masked, with ivar > 0. Others have weight 0.

    Parameters
    ----------
    flux : array-like (..., m)
        Flux densities, one spectrum or many on the same grid.
    wavelength : array-like (m,)
        Their grid, increasing, m >= 2.
    grid : array-like (p,)
        The grid wanted, increasing, p >= 2, in the same unit.
    ivar : array-like (..., m), optional
        Inverse variances; a pixel with ivar <= 0 or NaN is not usable.
    mask : array-like (..., m) of bool, optional
        True where a pixel is not usable.

    Returns
    -------
    Resampled
        Flux, ivar and mask on the grid. A pixel of whose width usable pixels cover less than a half
        is masked, and its flux interpolated (beyond the first and last good pixel: repeated).

    Raises
    ------
    ValueError
        If a grid is not increasing or the two do not overlap; if shapes disagree; if a spectrum has
        no usable pixel on the grid.

    Notes
    -----
    Where the new grid is finer than the old one, neighbours share pixels and their errors are
    correlated; `ivar` is that of each alone.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import resample
    >>> old, new = np.arange(0.5, 8), np.array([1.0, 3.0, 5.0, 7.0])
    >>> flux, ivar, mask = resample([0, 2, 4, 6, np.nan, np.nan, 4, 8], old, new, ivar=np.ones(8))
    >>> flux, ivar, mask
    (array([1. , 5. , 5.5, 6. ]), array([2., 2., 0., 2.]), array([False, False,  True, False]))
    """
    old, new = increasing_grid("wavelength", wavelength), increasing_grid("grid", grid)
    flux = _per_pixel("flux", flux, old, np.float64)
    usable = np.isfinite(flux)
    if mask is not None:
        usable &= ~_per_pixel("mask", mask, old, np.bool_, flux.shape)
    if ivar is not None:
        ivar = _per_pixel("ivar", ivar, old, np.float64, flux.shape)
        usable &= np.isfinite(ivar) & (ivar > 0)
    pixels = _Overlap(_edges(old), _edges(new))
    covered = pixels.sum(usable.astype(np.float64))
    bad = ~(covered >= _COVERED * np.diff(_edges(new)) * (1 - 1e-9))
    _check_any_good(bad, old, new)
    share = np.where(bad, 1.0, covered)
    mean = pixels.sum(np.where(usable, flux, 0.0)) / share
    new_ivar = None
    if ivar is not None:
        variance = np.where(usable, 1 / np.where(usable, ivar, 1.0), 0.0)
        spread = pixels.sum(variance, power=2)
        new_ivar = np.where(bad, 0.0, share**2 / np.where(bad, 1.0, spread))
    return Resampled(fill_gaps(mean, bad, new), new_ivar, bad)


class _Overlap:
    """Overlap of the pixels of two grids; each weighted sum costs one cumulative sum."""

    def __init__(self, old: Floats, new: Floats) -> None:
        low, high = np.clip(new[:-1], old[0], old[-1]), np.clip(new[1:], old[0], old[-1])
        last = len(old) - 2
        self.width = np.diff(old)
        self.first = np.clip(np.searchsorted(old, low, side="right") - 1, 0, last)
        self.last = np.clip(np.searchsorted(old, high, side="right") - 1, 0, last)
        # A new pixel inside one old pixel has one overlap. All others have a part of the first
        # old pixel, all pixels between, and a part of the last.
        inside = self.first == self.last
        self.head = np.where(inside, high - low, old[self.first + 1] - low)
        self.tail = np.where(inside, 0.0, high - old[self.last])
        self.inside = inside

    def sum(self, values: Floats, power: int = 1) -> Floats:
        """Sums of ``overlap**power * value`` for each new pixel, shape (..., p)."""
        weighted = values * self.width**power
        total = np.concatenate(
            [np.zeros((*values.shape[:-1], 1)), np.cumsum(weighted, axis=-1)], axis=-1
        )
        between = np.where(self.inside, 0.0, total[..., self.last] - total[..., self.first + 1])
        head = values[..., self.first] * self.head**power
        return np.asarray(between + head + values[..., self.last] * self.tail**power)


def fill_gaps(flux: NDArray[Any], bad: NDArray[np.bool_], grid: NDArray[Any]) -> NDArray[Any]:
    """Interpolate bad pixels from the good ones beside them, in place.

    Parameters
    ----------
    flux : ndarray, shape (..., p)
        Each spectrum has a good pixel at least.
    bad : ndarray of bool, shape (..., p)
        Pixels to fill; those before the first and after the last good one get its value.
    grid : ndarray, shape (p,)
        Wavelengths, increasing.

    Returns
    -------
    ndarray, shape (..., p)
        The flux.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import fill_gaps
    >>> bad = np.array([False, True, False, True])
    >>> fill_gaps(np.array([1.0, np.nan, 3.0, np.nan]), bad, np.arange(4.0))
    array([1., 2., 3., 3.])
    """
    rows, gaps = flux.reshape(-1, len(grid)), bad.reshape(-1, len(grid))
    for i in np.flatnonzero(gaps.any(axis=1)):
        good = ~gaps[i]
        rows[i, gaps[i]] = np.interp(grid[gaps[i]], grid[good], rows[i, good])
    return rows.reshape(flux.shape)


def _edges(grid: Floats) -> Floats:
    """Edges (p + 1,) of the pixels: half way to the neighbours, symmetric at the ends."""
    middle = (grid[1:] + grid[:-1]) / 2
    return np.concatenate([[2 * grid[0] - middle[0]], middle, [2 * grid[-1] - middle[-1]]])


def _per_pixel(
    name: str, values: Any, grid: Floats, dtype: type, shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    array: NDArray[Any] = np.asarray(values, dtype=dtype)
    if array.shape[-1:] != grid.shape or (shape is not None and array.shape != shape):
        wanted = f"(..., {len(grid)})" if shape is None else str(shape)
        raise ValueError(
            f"{name} must have shape {wanted}, got {array.shape}; give a value for each pixel"
        )
    return array


def _check_any_good(bad: NDArray[np.bool_], old: Floats, new: Floats) -> None:
    if old[-1] < new[0] or old[0] > new[-1]:
        raise ValueError(
            f"wavelength must overlap with the grid {new[0]:g}-{new[-1]:g}, got "
            f"{old[0]:g}-{old[-1]:g}; both must be in the same unit"
        )
    empty = np.flatnonzero(bad.reshape(-1, len(new)).all(axis=1))
    if len(empty):
        row = f" of row {empty[0]}" if bad.ndim > 1 else ""
        raise ValueError(
            f"flux{row} must have usable pixels on the grid {new[0]:g}-{new[-1]:g}, got none: all "
            "masked, NaN or without ivar; leave it out"
        )


def increasing_grid(name: str, values: Any) -> Floats:
    """The wavelengths (p,), if they are finite, increase, and are two or more."""
    grid = np.asarray(values, dtype=np.float64)
    increases = grid.ndim == 1 and np.isfinite(grid).all() and np.all(np.diff(grid) > 0)
    if not increases or len(grid) < 2:
        raise ValueError(
            f"{name} must be an increasing array of at least 2 finite wavelengths, got shape "
            f"{grid.shape}; sort the pixels"
        )
    return grid
