"""Spectra: one with its known lines, many with their predictions as titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter1d

from ...dirichlet import Dirichlet
from ...plots.canvas import COLORS, axes_or_new, figure_or_new, ink, vacuity_text
from .spectra import LINES, Spectra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = ["spectrum_plot", "spectrum_title", "trusted_spectra"]

#: Share of the height for the names of lines, and for the connecting lines.
_NAMES, _BENDS = 0.21, 0.06
_SIZE = 7.5
#: Standard deviation in pixels of the Gaussian behind the smoothed line.
_SIGMA = 4.0
_INCH = 72.0


def spectrum_plot(
    wavelength: ArrayLike,
    flux: ArrayLike,
    *,
    redshift: float | None = None,
    mask: ArrayLike | None = None,
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
        Redshift of the lines marked; None or NaN marks none.
    mask : array-like of bool, shape (p,), optional
        True where flux was not measured: left out.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The largest spikes of the raw line are cut.

    Raises
    ------
    ValueError
        If shapes do not match, no pixel is finite and unmasked, or `redshift` is impossible.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import spectrum_plot
    >>> from dipedl.apps.spectra import paper_grid
    >>> grid = paper_grid()
    >>> ax = spectrum_plot(grid, np.exp(-(((grid - 5578.4) / 20) ** 2)), redshift=1.0)
    >>> [text.get_text() for text in ax.texts]  # in the order of their wavelengths
    ['Mg II', '[O II]', 'Ca K', 'Ca H', 'Hδ', 'Hγ']
    """
    pixels, values = _check_flux(wavelength, flux, mask)
    line = _smooth(values)
    ax = axes_or_new(ax)
    low, high = _limits(values, line)
    # Cut spikes, so that they do not cross the names above the spectrum.
    ax.plot(pixels, np.clip(values, low, high), color=ink(), alpha=0.25, linewidth=0.6)
    ax.plot(pixels, line, color=COLORS[0], linewidth=1.3)
    ax.set(xlabel="wavelength in Å", ylabel="flux", xlim=(pixels[0], pixels[-1]))
    ax.set_ylim(low, high)
    if redshift is not None and np.isfinite(redshift):
        if redshift <= -1:
            raise ValueError(
                f"redshift must be > -1, got {redshift!r}; pass None if it is not known"
            )
        _name_lines(ax, {name: rest * (1 + redshift) for name, rest in LINES.items()})
    return ax


def spectrum_title(
    mean: ArrayLike,
    vacuity: float,
    *,
    class_names: Sequence[str] | None = None,
    truth: str | None = None,
    snr: float = np.nan,
    redshift: float = np.nan,
) -> str:
    """Title of one spectrum: its classes; its vacuity, S/N and redshift if known.

    Parameters
    ----------
    mean : array-like, shape (k,)
        Mean class probabilities.
    vacuity : float
        In [0, 1].
    class_names : sequence of str, length k, optional
        Default: 0..k-1.
    truth : str, optional
        True class.
    snr, redshift : float
        NaN is left out.

    Examples
    --------
    >>> from dipedl.apps.spectra import spectrum_title
    >>> names = ["Galaxy", "Quasar"]
    >>> print(spectrum_title([0.12, 0.88], 0.031, class_names=names, truth="Quasar", snr=14.2))
    is Quasar; Quasar 0.88, Galaxy 0.12
    vacuity 0.031, S/N 14
    """
    p = np.asarray(mean, dtype=np.float64)
    names = [str(i) for i in range(len(p))] if class_names is None else list(class_names)
    if p.ndim != 1 or len(names) != len(p):
        raise ValueError(f"class_names must hold {p.size} names, got {len(names)}")
    classes = ", ".join(f"{names[i]} {p[i]:.2f}" for i in np.argsort(-p, kind="stable")[:3])
    facts = [f"vacuity {vacuity_text(float(vacuity))}"]
    facts += [f"S/N {snr:.3g}" if snr < 10 else f"S/N {snr:.0f}"] if np.isfinite(snr) else []
    facts += [f"z {round(redshift, 3) + 0.0:.3f}"] if np.isfinite(redshift) else []
    return f"{f'is {truth}; ' if truth else ''}{classes}\n{', '.join(facts)}"


def trusted_spectra(
    spectra: Spectra,
    dirichlet: Dirichlet,
    *,
    n: int = 3,
    class_names: Sequence[str] | None = None,
    fig: FigureBase | None = None,
) -> np.ndarray:
    """The spectra with the most evidence, and below them those with the least.

    Parameters
    ----------
    spectra : Spectra
        At least `n`.
    dirichlet : Dirichlet
        Of these spectra; ranked by log-evidence, since vacuity ties at 1.
    n : int, default=3
        How many of each.
    class_names : sequence of str, length k, optional
        Of the Dirichlet's classes; default: the names of `spectra` where there are k.
    fig : Figure or SubFigure, optional
        Where to draw.

    Returns
    -------
    ndarray of Axes, shape (2, n)
        The most trusted, most trusted first; the least trusted, least trusted first.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import Dirichlet
    >>> from dipedl.apps.spectra import trusted_spectra
    >>> from dipedl.apps.spectra import Spectra, paper_grid
    >>> spectra = Spectra(np.ones((9, 3000), np.float32), paper_grid())
    >>> trusted_spectra(spectra, Dirichlet(1 + np.eye(9)[:, :2]), n=2).shape
    (2, 2)
    """
    if not 1 <= n <= len(spectra) or len(dirichlet) != len(spectra):
        raise ValueError(
            f"n must be in 1..{len(spectra)}, with one Dirichlet for each of the {len(spectra)} "
            f"spectra, got n={n} and {len(dirichlet)}; ask for fewer"
        )
    order = np.argsort(-np.asarray(dirichlet.log_evidence), kind="stable")
    axes = figure_or_new(fig, (4.2 * n, 6.4)).subplots(2, n, squeeze=False)
    for ax, i in zip(axes.flat, [*order[:n], *order[::-1][:n]], strict=True):
        redshift, mask = _value(spectra.redshift, i), spectra.mask
        mask = None if mask is None else mask[i]
        spectrum_plot(spectra.wavelength, spectra.flux[i], redshift=redshift, mask=mask, ax=ax)
        ax.set_title(_title(spectra, dirichlet, i, class_names), fontsize="small", loc="left")
    return np.asarray(axes)


def _check_flux(
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


def _smooth(values: np.ndarray) -> np.ndarray:
    """Gaussian mean of the finite values, (p,); NaN without one within four sigma."""
    known = np.isfinite(values)
    total = gaussian_filter1d(np.where(known, values, 0.0), _SIGMA, mode="constant")
    weight = gaussian_filter1d(known.astype(np.float64), _SIGMA, mode="constant")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(weight > 1e-4, total / weight, np.nan))


def _name_lines(ax: Axes, lines: Mapping[str, float]) -> None:
    """Mark the lines that fall into the x-limits; the curve moves down for the names."""
    left, right = ax.get_xlim()
    marks = sorted((x, name) for name, x in lines.items() if left <= x <= right)
    if not marks:
        return
    low, high = ax.get_ylim()
    top = 1 - _NAMES - _BENDS
    ax.set_ylim(low, low + (high - low) / top)
    x = np.array([line for line, _ in marks])
    figure = ax.figure.get_figure(root=True)
    width = _INCH * figure.get_size_inches()[0] * ax.get_position().width
    places = spread_apart(x, 1.25 * _SIZE / width * (right - left), left, right)
    across = ax.get_xaxis_transform()
    for (line, name), label in zip(marks, places, strict=True):
        path = ([line, line, label], [0, top, 1 - _NAMES])
        ax.plot(*path, color=COLORS[1], linewidth=0.7, alpha=0.75, transform=across)
        text = ax.text(label, 1.01 - _NAMES, name, rotation=90, fontsize=_SIZE, transform=across)
        text.set(ha="center", va="bottom")
    ax.set_xlim(left, right)


def spread_apart(x: np.ndarray, gap: float, left: float, right: float) -> np.ndarray:
    """Positions in [left, right], at least `gap` apart, nearest to `x` (n,) in squares.

    With ``x`` sorted, ``place[i] - i * gap`` must not fall: that is isotonic regression. If they do
    not fit, the gap shrinks.
    """
    from sklearn.isotonic import isotonic_regression

    n = len(x)
    gap = min(gap, (right - left) / n)
    shift = gap * np.arange(n)
    top = right - gap / 2 - shift[-1]
    return np.asarray(isotonic_regression(x - shift, y_min=left + gap / 2, y_max=top) + shift)


def _title(
    spectra: Spectra, dirichlet: Dirichlet, i: int, class_names: Sequence[str] | None
) -> str:
    k = np.shape(dirichlet.concentration)[1]
    names = class_names or (spectra.target_names if len(spectra.target_names) == k else None)
    label = -1 if spectra.label is None else int(spectra.label[i])
    return spectrum_title(
        np.asarray(dirichlet.mean)[i],
        float(dirichlet.vacuity[i]),
        class_names=names,
        truth=spectra.target_names[label] if label >= 0 else None,
        snr=_value(spectra.snr, i),
        redshift=_value(spectra.redshift, i),
    )


def _value(values: np.ndarray | None, i: int) -> float:
    return np.nan if values is None else float(values[i])
