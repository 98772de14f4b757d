"""One spectrum with its known lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d

from ..spectra.grid import LINES as REST
from ._line_names import name_lines
from .canvas import COLORS, axes_or_new, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["spectrum_plot"]

#: Steps across the figure; of each, the raw curve keeps the smallest and largest value.
_STEPS = 420


def spectrum_plot(
    wavelength: ArrayLike,
    flux: ArrayLike,
    *,
    redshift: float | None = None,
    mask: ArrayLike | None = None,
    smoothing: float = 4.0,
    lines: Mapping[str, float] = REST,
    color: str = COLORS[0],
    ax: Axes | None = None,
) -> Axes:
    """One spectrum: a smoothed line over the raw flux, known lines marked at its redshift.

    Parameters
    ----------
    wavelength : array-like, shape (p,)
        Increasing, in Angstrom.
    flux : array-like, shape (p,)
        Flux density in any unit; NaN leaves a gap.
    redshift : float, optional
        Where the lines are marked; None or NaN marks none.
    mask : array-like of bool, shape (p,), optional
        True where flux was not measured: left out.
    smoothing : float, default=4.0
        Standard deviation in pixels of the Gaussian behind the smoothed line; 0 leaves it as it is.
    lines : mapping of str to float
        Rest wavelengths in Angstrom by name; those that fall into the range are named.
    color : str, optional
        Of the smoothed line.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The raw line is thinned to visible points, and its largest spikes are cut; the smoothed
        line is complete.

    Raises
    ------
    ValueError
        If shapes do not match, no pixel is finite and unmasked, or `smoothing` or `redshift` is
        impossible.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.plots import spectrum_plot
    >>> from dipedl.spectra import paper_grid
    >>> grid = paper_grid()
    >>> ax = spectrum_plot(grid, np.exp(-(((grid - 5578.4) / 20) ** 2)), redshift=1.0)
    >>> [text.get_text() for text in ax.texts]  # in the order of their wavelengths
    ['Mg II', '[O II]', 'Ca K', 'Ca H', 'Hδ', 'Hγ']
    """
    pixels, values = _checked(wavelength, flux, mask)
    if not (np.isfinite(smoothing) and smoothing >= 0):
        raise ValueError(f"smoothing must be finite and >= 0 pixels, got {smoothing!r}")
    line = _smoothed(values, smoothing)
    ax = axes_or_new(ax)
    low, high = _limits(values, line)
    # Cut spikes, so that they do not cross the names above the spectrum.
    raw = _outline(pixels, np.clip(values, low, high))
    ax.plot(*raw, color=ink(), alpha=0.25, linewidth=0.6)
    ax.plot(pixels, line, color=color, linewidth=1.3)
    ax.set(xlabel="wavelength in Å", ylabel="flux", xlim=(pixels[0], pixels[-1]))
    ax.set_ylim(low, high)
    if redshift is not None and np.isfinite(redshift):
        if redshift <= -1:
            raise ValueError(
                f"redshift must be > -1, got {redshift!r}; pass None if it is not known"
            )
        name_lines(ax, {name: rest * (1 + redshift) for name, rest in lines.items()})
    return ax


def _checked(
    wavelength: ArrayLike, flux: ArrayLike, mask: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """Checked pixels, and flux with NaN where it was not measured."""
    pixels = np.asarray(wavelength, dtype=np.float64)
    values = np.array(flux, dtype=np.float64)
    if pixels.ndim != 1 or values.shape != pixels.shape or not np.all(np.diff(pixels) > 0):
        raise ValueError(
            f"flux must have shape {pixels.shape}, one for each of the increasing wavelengths, got "
            f"{values.shape}; pass one spectrum, with its pixels sorted"
        )
    if mask is not None:
        hidden = np.asarray(mask, dtype=bool)
        if hidden.shape != values.shape:
            raise ValueError(f"mask must have shape {values.shape}, got {hidden.shape}")
        values[hidden] = np.nan
    values[~np.isfinite(values)] = np.nan
    if np.isnan(values).all():
        raise ValueError("flux must have at least one finite pixel that is not masked, got none")
    return pixels, values


def _limits(values: np.ndarray, line: np.ndarray) -> tuple[float, float]:
    """y-limits that hold the smoothed line and nearly all of the raw flux."""
    raw = np.nanpercentile(values, [0.5, 99.5])
    low, high = min(raw[0], np.nanmin(line)), max(raw[1], np.nanmax(line))
    # A constant spectrum has no height of its own.
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return float(low - room), float(high + room)


def _smoothed(values: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian mean of the finite values, (p,); NaN without one within four sigma."""
    if sigma == 0:
        return values
    there = np.isfinite(values)
    total = gaussian_filter1d(np.where(there, values, 0.0), sigma, mode="constant")
    weight = gaussian_filter1d(there.astype(np.float64), sigma, mode="constant")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(weight > 1e-4, total / weight, np.nan))


def _outline(x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curve; with many points, only the lowest and highest of each step."""
    p = len(x)
    if p <= 2 * _STEPS:
        return x, values
    starts = np.arange(_STEPS) * p // _STEPS
    filled = np.isfinite(values)
    low = np.minimum.reduceat(np.where(filled, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(filled, values, -np.inf), starts)
    ends = np.stack([low, high], axis=1).ravel()
    return np.repeat(x[starts], 2), np.where(np.isfinite(ends), ends, np.nan)
