"""Histogram of uncertainties, one outline per set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .canvas import COLORS, LINES, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["uncertainty_histogram"]

_EDGE = 1e-4
_ODDS_TICKS = (0.001, 0.1, 0.5, 0.9, 0.999)


def uncertainty_histogram(
    scores: Mapping[str, ArrayLike],
    *,
    log_odds: bool = False,
    bins: int = 36,
    threshold: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Share of inputs by uncertainty (or confidence), one outline per set.

    Parameters
    ----------
    scores : mapping of str to array-like, shape (n_i,)
        Finite values by name of the set, such as ``{"ID": u_in, "OOD": u_out}``.
    log_odds : bool, default=False
        For values in [0, 1]: log-odds axis, which stretches both ends. Values beyond 0.0001 or
        0.9999 are counted in the outermost bins.
    bins : int, default=36
        Number of bins.
    threshold : float, optional
        Drawn as a line.
    legend : bool, default=True
        Whether to name the sets.
    ax : Axes, optional
        Where to draw.

    Raises
    ------
    ValueError
        If no set is given, or one is empty or not finite.

    Examples
    --------
    >>> from dipedl.plots import uncertainty_histogram
    >>> ax = uncertainty_histogram({"ID": [0.1, 0.2], "OOD": [0.9]}, log_odds=True)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ID', 'OOD']
    """
    sets = {name: _finite(name, values) for name, values in scores.items()}
    if not sets:
        raise ValueError("scores must hold at least one set, got none; pass {'ID': u_in}")
    ax = axes_or_new(ax)
    scale = _log_odds if log_odds else np.asarray
    if log_odds:
        ax.set_xticks(_log_odds(np.array(_ODDS_TICKS)), [f"{t:g}" for t in _ODDS_TICKS])
        ax.set_xticks(_log_odds(np.array([0.01, 0.99])), minor=True)
    scaled = {name: scale(values) for name, values in sets.items()}
    edges = _edges(scaled, log_odds, bins)
    for i, (name, values) in enumerate(scaled.items()):
        share = np.histogram(values, edges)[0] / len(values)
        color, line = COLORS[i % len(COLORS)], LINES[i % len(LINES)]
        ax.stairs(share, edges, label=name, linewidth=1.8, color=color, linestyle=line)
        ax.stairs(share, edges, fill=True, alpha=0.12, color=color)
    if threshold is not None:
        ax.axvline(float(scale(np.array(threshold))), color="0.5", linewidth=1, linestyle=":")
    ax.set_ylabel("share of the set")
    if legend:
        ax.legend()
    return ax


def _edges(sets: Mapping[str, np.ndarray], log_odds: bool, bins: int) -> np.ndarray:
    everything = np.concatenate(list(sets.values()))
    ends = _log_odds(np.array([0.0, 1.0])) if log_odds else everything
    return np.histogram_bin_edges(everything, bins, (float(ends.min()), float(ends.max())))


def _finite(name: str, values: ArrayLike) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not np.isfinite(array).all():
        raise ValueError(
            f"scores[{name!r}] must be a non-empty 1-d array of finite numbers, "
            f"got shape {array.shape}; clip or drop what is infinite"
        )
    return array


def _log_odds(p: np.ndarray) -> np.ndarray:
    inside = np.clip(p, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(inside) - np.log1p(-inside))
