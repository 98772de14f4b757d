"""Names of spectral lines above a spectrum, moved apart where lines are close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .canvas import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Share of the height for the names, and for the connecting lines.
_NAMES, _BENDS = 0.21, 0.06
_SIZE = 7.5
_INCH = 72.0


def name_lines(ax: Axes, lines: Mapping[str, float]) -> None:
    """Mark the lines that fall into the x-limits; the curve moves down for the names."""
    left, right = ax.get_xlim()
    seen = sorted((x, name) for name, x in lines.items() if left <= x <= right)
    if not seen:
        return
    low, high = ax.get_ylim()
    top = 1 - _NAMES - _BENDS
    ax.set_ylim(low, low + (high - low) / top)
    x = np.array([place for place, _ in seen])
    figure = ax.figure.get_figure(root=True)
    width = _INCH * figure.get_size_inches()[0] * ax.get_position().width
    beside = apart(x, 1.25 * _SIZE / width * (right - left), left, right)
    across = ax.get_xaxis_transform()
    for (line, name), label in zip(seen, beside, strict=True):
        path = ([line, line, label], [0, top, 1 - _NAMES])
        ax.plot(*path, color=COLORS[1], linewidth=0.7, alpha=0.75, transform=across)
        text = ax.text(label, 1.01 - _NAMES, name, rotation=90, fontsize=_SIZE, transform=across)
        text.set(ha="center", va="bottom")
    ax.set_xlim(left, right)


def apart(x: np.ndarray, gap: float, left: float, right: float) -> np.ndarray:
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
