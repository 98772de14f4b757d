"""Uncertainty over the plane, as a Display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ...decisions.pipelines import uncertainty
from ..plane import plane_map
from ._asked import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["EvidenceMapDisplay"]


class EvidenceMapDisplay(Drawn):
    """Where a classifier of two inputs has evidence: `plane_map` of its uncertainty.

    Parameters
    ----------
    values : ndarray, shape (h, w)
        Uncertainty over the plane, from the bottom up.
    extent : tuple of float
        Left, right, bottom and top of the map.
    X, y : array-like, shapes (n, 2) and (n,)
        Points and labels to show.
    kind : str, default="vacuity"
        What `values` are; the title.

    Attributes
    ----------
    image_ : AxesImage
        The map.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from dipedl import DIPClassifier
    >>> from dipedl.datasets import load_moons
    >>> from dipedl.plots import EvidenceMapDisplay
    >>> data = load_moons(100)
    >>> clf = DIPClassifier().fit(data.X_train, data.y_train)
    >>> display = EvidenceMapDisplay.from_estimator(clf, data.X_train, data.y_train, grid=20)
    >>> display.ax_.get_title()
    'vacuity'
    """

    image_: AxesImage

    def __init__(
        self,
        values: np.ndarray,
        extent: tuple[float, float, float, float],
        X: ArrayLike,
        y: ArrayLike,
        *,
        kind: str = "vacuity",
    ) -> None:
        self.values, self.extent, self.X, self.y, self.kind = values, extent, X, y, kind

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        kind: str = "vacuity",
        grid: int = 150,
        top: float | None = None,
        colorbar: bool = True,
        ax: Axes | None = None,
    ) -> Self:
        """Ask a fitted model of two inputs about a grid of points, and draw.

        Parameters
        ----------
        estimator : DIPClassifier
            Fitted on two inputs; or a pipeline or search that ends in one.
        X : array-like or DataFrame, shape (n, 2)
            Points to show; the map extends beyond them by half their range on each side.
        y : array-like, shape (n,)
            Their labels.
        kind : str, default="vacuity"
            As in `DIPClassifier.uncertainty`.
        grid : int, default=150
            Points along each side.
        top, colorbar, ax
            As in `plot`.

        Raises
        ------
        TypeError
            If the estimator is no `DIPClassifier` and ends in none.
        ValueError
            If X does not have two columns.
        """
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(
                f"X must have shape (n, 2), got {points.shape}; take two columns of it"
            )
        low, high = points.min(axis=0), points.max(axis=0)
        low, high = low - (high - low) / 2, high + (high - low) / 2
        across, up = (np.linspace(low[i], high[i], grid) for i in range(2))
        plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        asked = type(X)(plane, columns=X.columns) if hasattr(X, "iloc") else plane
        values = uncertainty(estimator, asked, kind).reshape(grid, grid)
        return cls(values, (low[0], high[0], low[1], high[1]), points, y, kind=kind).plot(
            ax, top=top, colorbar=colorbar
        )

    def plot(
        self, ax: Axes | None = None, *, top: float | None = None, colorbar: bool = True
    ) -> Self:
        """Draw the map with the points on it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        top, colorbar
            As in `plane_map`.
        """
        points = np.asarray(self.X)
        drawn = plane_map(
            self.values, self.extent, points, self.y, top=top, colorbar=colorbar, ax=ax
        )
        drawn.set_title(self.kind)
        self._keep(drawn)
        self.image_ = drawn.images[-1]
        return self
