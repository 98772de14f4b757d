"""Bars of one Dirichlet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..dirichlet import Dirichlet
from .canvas import COLORS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dirichlet_bars"]


def dirichlet_bars(
    dirichlet: Dirichlet,
    *,
    class_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One Dirichlet: mean class probabilities as bars, 95 % credible intervals as whiskers.

    Parameters
    ----------
    dirichlet : Dirichlet
        Of one input: ``d[i]``.
    class_names : sequence of str, length k, optional
        Default: 0..k-1.
    ax : Axes, optional
        Where to draw.

    Raises
    ------
    ValueError
        If `dirichlet` holds more than one input, or `class_names` is not of length k.

    Examples
    --------
    >>> from dipedl import Dirichlet
    >>> from dipedl.plots import dirichlet_bars
    >>> len(dirichlet_bars(Dirichlet([[9.0, 1.0, 2.0]])).patches)
    3
    """
    if len(dirichlet) != 1:
        raise ValueError(f"dirichlet must hold one input, got {len(dirichlet)}; pass dirichlet[i]")
    mean = np.asarray(dirichlet.mean)[0]
    names = [str(i) for i in range(len(mean))] if class_names is None else list(class_names)
    if len(names) != len(mean):
        raise ValueError(f"class_names must hold {len(mean)} names, got {len(names)}")
    low, high = (np.asarray(end)[0] for end in dirichlet.credible_interval())
    ax = axes_or_new(ax)
    ax.bar(names, mean, color=COLORS[0], alpha=0.55, width=0.8)
    ax.vlines(names, low, high, color=COLORS[0], linewidth=1.6)
    ax.set_ylim(0, 1)
    return ax
