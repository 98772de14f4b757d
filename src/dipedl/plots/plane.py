"""Uncertainty over the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ._canvas import COLORS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plane_map", "uncertainty_map"]


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


def uncertainty_map(
    clf: Any,
    X: ArrayLike,
    y: ArrayLike,
    kind: str = "vacuity",
    *,
    grid: int = 150,
    top: float | None = None,
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Uncertainty over the plane, for a classifier of two inputs.

    Parameters
    ----------
    clf : DIPClassifier
        Fitted on two inputs; anything with ``uncertainty(X, kind)``.
    X : array-like, shape (n, 2)
        Points to show; the map extends beyond them by their range on each side.
    y : array-like, shape (n,)
        Their labels.
    kind : str, default="vacuity"
        As in `DIPClassifier.uncertainty`.
    grid : int, default=150
        Points along each side.
    top, colorbar, ax
        As in `plane_map`.

    Returns
    -------
    Axes
        The axes drawn on; the map is ``ax.images[0]``.

    Examples
    --------
    >>> from dipedl import DIPClassifier
    >>> from dipedl.datasets import load_moons
    >>> from dipedl.plots import uncertainty_map
    >>> data = load_moons(100)
    >>> clf = DIPClassifier().fit(data.X_train, data.y_train)
    >>> uncertainty_map(clf, data.X_train, data.y_train, grid=20).get_title()
    'vacuity'
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"X must have shape (n, 2), got {points.shape}; take two columns of it")
    low, high = points.min(axis=0), points.max(axis=0)
    low, high = low - (high - low) / 2, high + (high - low) / 2
    across, up = (np.linspace(low[i], high[i], grid) for i in range(2))
    plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    values = np.asarray(clf.uncertainty(plane, kind)).reshape(grid, grid)
    extent = (low[0], high[0], low[1], high[1])
    ax = plane_map(values, extent, points, y, top=top, colorbar=colorbar, ax=ax)
    ax.set_title(kind)
    return ax
