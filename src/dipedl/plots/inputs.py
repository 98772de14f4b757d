"""Bars of one Dirichlet, and a gallery of images with theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..dirichlet import Dirichlet
from .canvas import COLORS, axes_or_new, figure_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

__all__ = ["dirichlet_bars", "image_gallery"]


def dirichlet_bars(
    dirichlet: Dirichlet,
    *,
    class_names: Sequence[str] | None = None,
    level: float = 0.95,
    color: str = COLORS[0],
    ax: Axes | None = None,
) -> Axes:
    """One Dirichlet: mean class probabilities as bars, central credible intervals as whiskers.

    Parameters
    ----------
    dirichlet : Dirichlet
        Of one input: ``d[i]``.
    class_names : sequence of str, length k, optional
        Default: 0..k-1.
    level : float, default=0.95
        Mass of each credible interval.
    color : str, optional
        Of the bars.
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
    low, high = (np.asarray(end)[0] for end in dirichlet.credible_interval(level))
    ax = axes_or_new(ax)
    ax.bar(names, mean, color=color, alpha=0.55, width=0.8)
    ax.vlines(names, low, high, color=color, linewidth=1.6)
    ax.set_ylim(0, 1)
    return ax


def image_gallery(
    images: ArrayLike,
    dirichlet: Dirichlet,
    *,
    titles: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    columns: int = 4,
    fig: FigureBase | None = None,
) -> np.ndarray:
    """Images, and under each its Dirichlet.

    Parameters
    ----------
    images : array-like, shape (m, height, width)
        Grey images in [0, 1].
    dirichlet : Dirichlet
        Of these m inputs.
    titles : sequence of str, length m, optional
        Above the images; default: the vacuity.
    class_names : sequence of str, length k, optional
        As in `dirichlet_bars`.
    columns : int, default=4
        Images per row.
    fig : Figure or SubFigure, optional
        Where to draw.

    Returns
    -------
    ndarray of Axes, shape (m, 2)
        Image and bars of each input.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import Dirichlet
    >>> from dipedl.plots import image_gallery
    >>> image_gallery(np.zeros((3, 8, 8)), Dirichlet(np.ones((3, 2)))).shape
    (3, 2)
    """
    pictures = np.asarray(images)
    m = len(dirichlet)
    if pictures.ndim != 3 or len(pictures) != m or m == 0:
        raise ValueError(
            f"images must have shape ({m}, height, width) for {m} Dirichlets and m >= 1, "
            f"got {pictures.shape}"
        )
    names = [f"vacuity {u:.2g}" for u in dirichlet.vacuity] if titles is None else titles
    rows = -(-m // columns)
    grid = figure_or_new(fig, (1.7 * columns, 2.9 * rows)).subplots(
        2 * rows, columns, squeeze=False
    )
    for ax in grid.flat:
        ax.set_axis_off()
    pairs = np.stack([grid[::2].ravel()[:m], grid[1::2].ravel()[:m]], axis=1)
    for i, (above, below) in enumerate(pairs):
        above.imshow(pictures[i], cmap="gray", vmin=0, vmax=1)
        above.set_title(names[i], fontsize="small")
        below.set_axis_on()
        dirichlet_bars(dirichlet[i], class_names=class_names, ax=below)
    return pairs
