"""Vacuity against a known quantity of the inputs, such as S/N or redshift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from .canvas import COLORS, LINES, axes_or_new, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["vacuity_against"]

#: Fewer points than this are drawn one by one, more as hexagons.
_SINGLE = 800
_LEAST = 15
_EDGE = 1e-6
_POWERS = 10.0 ** np.arange(-5, 0)
_TICKS = np.array([*_POWERS, 0.5, *(1 - _POWERS)])
_FINE_TICKS = np.array([*_TICKS, *(2 * _POWERS), *(5 * _POWERS), *(1 - 2 * _POWERS)])


def vacuity_against(
    sets: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    log: bool = False,
    bins: int = 12,
    xlabel: str | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Vacuity against a quantity: all points, with median and 16-84 % band of each set.

    Parameters
    ----------
    sets : mapping of str to (x, vacuity)
        The quantity and the vacuity (both (n_i,)) by name of the class or set. Where x is NaN, or
        not positive on a logarithmic axis, the input is left out, and the axes say how many are.
    log : bool, default=False
        Whether x is on a logarithmic axis.
    bins : int, default=12
        Largest number of bins per set, of equal counts of at least 15 inputs; a set with fewer
        than 15 has no line.
    xlabel : str, optional
        Label of x.
    legend : bool, default=True
        Whether to name the sets.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The vacuity axis is in log-odds. The axis holds all bands and 99 % of the
        points; those beyond are drawn at its ends. Up to 800 points are dots, more are hexagons,
        darker where there are more.

    Raises
    ------
    ValueError
        If no set is given, lengths differ, a vacuity is outside [0, 1], or no input has an x.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.plots import vacuity_against
    >>> snr = np.geomspace(3, 100, 60)
    >>> ax = vacuity_against({"Galaxy": (snr, 1 / snr)}, log=True, xlabel="S/N")
    >>> ax.get_xlabel(), ax.get_ylabel(), [line.get_label() for line in ax.lines]
    ('S/N', 'vacuity', ['Galaxy'])
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    if not sets:
        raise ValueError("sets must hold at least one set, got none; pass {'Galaxy': (snr, u)}")
    pairs = {name: _checked(name, *pair) for name, pair in sets.items()}
    kept = {name: _with_x(pair, log) for name, pair in pairs.items()}
    lost = sum(len(pair[0]) for pair in pairs.values()) - sum(len(x) for x, _ in kept.values())
    if not any(len(x) for x, _ in kept.values()):
        needed = "finite and positive" if log else "finite"
        raise ValueError(f"sets must hold at least one x that is {needed}, got none")
    ax = axes_or_new(ax)
    bands = {name: _band(pair, bins) for name, pair in kept.items() if len(pair[0]) >= _LEAST}
    low, high = _limits(kept, bands)
    _points(ax, {name: (x, np.clip(z, low, high)) for name, (x, z) in kept.items()}, log)
    for i, name in enumerate(kept):
        if name in bands:
            _draw(ax, name, bands[name], i)
    room = 0.03 * (high - low)
    low, high = low - room, high + room
    ax.set_ylim(low, high)
    _vacuity_ticks(ax, low, high)
    ax.set(xlabel=xlabel, ylabel="vacuity")
    if log:
        ax.set_xscale("log")
        _plain_ticks(ax)
    if lost:
        text = f"{lost:,} without a value left out"
        ax.text(0.99, 1.01, text, ha="right", va="bottom", fontsize=8, transform=ax.transAxes)
    if legend:
        ax.legend()
    return ax


def _points(ax: Axes, sets: Mapping[str, tuple[np.ndarray, np.ndarray]], log: bool) -> None:
    from matplotlib.colors import to_rgba

    x, z = (np.concatenate([pair[i] for pair in sets.values()]) for i in range(2))
    if len(x) <= _SINGLE:
        for i, (own, height) in enumerate(sets.values()):
            color = COLORS[i % len(COLORS)]
            ax.scatter(own, height, s=7, alpha=0.4, color=color, linewidths=0)
        return
    scale: Literal["log", "linear"] = "log" if log else "linear"
    hexagons = ax.hexbin(x, z, gridsize=(34, 22), xscale=scale, mincnt=1, linewidths=0)
    counts = np.asarray(hexagons.get_array(), dtype=np.float64)
    # One colour of varying strength, so that it can be the text colour of a dark page too.
    shades = np.tile(to_rgba(ink()), (len(counts), 1))
    shades[:, 3] = 0.06 + 0.34 * np.log(counts) / max(np.log(counts.max()), 1e-9)
    hexagons.set_array(None)
    hexagons.set_facecolor(list(map(tuple, shades)))
    hexagons.set_edgecolor("none")


def _band(pair: tuple[np.ndarray, np.ndarray], bins: int) -> np.ndarray:
    """x, low end, median and high end, each (n_bins,), of bins of equal counts."""
    x, z = pair
    groups = np.array_split(np.argsort(x, kind="stable"), min(bins, len(x) // _LEAST))
    at = np.array([np.median(x[rows]) for rows in groups])
    ends = np.array([np.quantile(z[rows], (0.16, 0.5, 0.84)) for rows in groups])
    return np.column_stack([at, ends]).T


def _limits(
    sets: Mapping[str, tuple[np.ndarray, np.ndarray]], bands: Mapping[str, np.ndarray]
) -> tuple[float, float]:
    """Ends of the axis: a few points at 0 or 1 would leave no room for the others."""
    ends = [np.quantile(np.concatenate([z for _, z in sets.values()]), (0.005, 0.995))]
    every = np.concatenate([*ends, *(band[1:].ravel() for band in bands.values())])
    low, high = float(every.min()), float(every.max())
    return (low, high) if high - low > 2 else (low - 1, high + 1)


def _draw(ax: Axes, name: str, band: np.ndarray, i: int) -> None:
    at, low, middle, high = band
    color, line = COLORS[i % len(COLORS)], LINES[i % len(LINES)]
    ax.plot(at, middle, label=name, color=color, linestyle=line, linewidth=2)
    ax.fill_between(at, low, high, color=color, alpha=0.2, linewidth=0)


def _log_odds(vacuity: np.ndarray) -> np.ndarray:
    return np.asarray(logit(np.clip(vacuity, _EDGE, 1 - _EDGE)))


def _vacuity_ticks(ax: Axes, low: float, high: float) -> None:
    for ticks in (_TICKS, np.unique(_FINE_TICKS)):
        seen = ticks[(_log_odds(ticks) >= low) & (_log_odds(ticks) <= high)]
        if len(seen) > 2:
            break
    ax.set_yticks(_log_odds(seen), [f"{tick:.6f}".rstrip("0") for tick in seen])


def _plain_ticks(ax: Axes) -> None:
    """Numbers such as 5, 10, 20 instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _with_x(pair: tuple[np.ndarray, np.ndarray], log: bool) -> tuple[np.ndarray, np.ndarray]:
    """Inputs with an x, and their vacuity in log-odds."""
    x, u = pair
    there = np.isfinite(x) & (x > 0) if log else np.isfinite(x)
    return x[there], _log_odds(u[there])


def _checked(name: str, x: ArrayLike, vacuity: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    across, u = np.asarray(x, dtype=np.float64), np.asarray(vacuity, dtype=np.float64)
    if across.ndim != 1 or across.shape != u.shape:
        raise ValueError(
            f"sets[{name!r}] must be two 1-d arrays of one length, got shapes {across.shape} and "
            f"{u.shape}; give every input an x, NaN where it is not known"
        )
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"sets[{name!r}] must have a vacuity in [0, 1] for every input")
    return across, u
