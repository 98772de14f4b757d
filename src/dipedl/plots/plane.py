"""A map over the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .canvas import COLORS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plane_map"]


def plane_map(
    values: np.ndarray,
    extent: tuple[float, float, float, float],
    X: np.ndarray,
    y: ArrayLike,
    *,
    top: float | None = None,
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """A map of values over the plane with labelled points on it.

    Parameters
    ----------
    values : ndarray, shape (h, w)
        From the bottom up; 0 is the darkest colour.
    extent : tuple of float
        Left, right, bottom and top of the map.
    X, y : ndarray, shapes (n, 2) and (n,)
        Points and labels.
    top : float, optional
        Value of the brightest colour; default: the largest.
    colorbar : bool, default=True
        Whether a colour bar stands beside the map.
    ax : Axes, optional
        Where to draw.

    Returns
    -------
    Axes
        The axes drawn on; the map is ``ax.images[0]``.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.plots import plane_map
    >>> ax = plane_map(np.eye(2), (0, 1, 0, 1), np.zeros((1, 2)), [0])
    >>> len(ax.images)
    1
    """
    ax = axes_or_new(ax)
    image = ax.imshow(
        values, extent=extent, origin="lower", aspect="auto", cmap="cividis", vmin=0, vmax=top
    )
    if colorbar:
        ax.figure.colorbar(image, ax=ax)
    labels = np.asarray(y)
    for i, label in enumerate(np.unique(labels)):
        across, up = X[labels == label].T
        color, marker = COLORS[1 - i % 2], "o^s"[i % 3]
        ax.scatter(across, up, s=9, c=color, marker=marker, edgecolor="white", linewidth=0.3)
    return ax
