"""One Dirichlet as bars, and uncertainty over the plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..decisions.pipelines import uncertainty
from ..dirichlet import Dirichlet
from .canvas import COLORS, Display, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

__all__ = ["EvidenceMapDisplay", "dirichlet_bars"]


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


class EvidenceMapDisplay(Display):
    """Map of the uncertainty of a classifier of two inputs, with labelled points on it.

    Parameters
    ----------
    values : ndarray, shape (h, w)
        Uncertainty over the plane, from the bottom up; 0 is the darkest colour.
    extent : tuple of float
        Left, right, bottom and top of the map.
    X, y : array-like, shapes (n, 2) and (n,)
        Points and labels to show.
    kind : str, default="vacuity"
        Kind of uncertainty: the title, where it is not empty.

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
        **options: Any,
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
        **options : optional
            As of `plot`.

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
        inputs = type(X)(plane, columns=X.columns) if hasattr(X, "iloc") else plane
        values = uncertainty(estimator, inputs, kind).reshape(grid, grid)
        extent = (low[0], high[0], low[1], high[1])
        return cls(values, extent, points, y, kind=kind).plot(**options)

    def plot(
        self, ax: Axes | None = None, *, top: float | None = None, colorbar: bool = True
    ) -> Self:
        """Draw the map with the points on it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        top : float, optional
            Value of the brightest colour; default: the largest.
        colorbar : bool, default=True
            Draw a colour bar beside the map.
        """
        ax = axes_or_new(ax)
        self.image_ = ax.imshow(
            self.values,
            "cividis",
            aspect="auto",
            vmin=0,
            vmax=top,
            origin="lower",
            extent=self.extent,
        )
        if colorbar:
            ax.figure.colorbar(self.image_, ax=ax)
        points, labels = np.asarray(self.X), np.asarray(self.y)
        for i, label in enumerate(np.unique(labels)):
            across, up = points[labels == label].T
            color, marker = COLORS[1 - i % 2], "o^s"[i % 3]
            ax.scatter(across, up, s=9, c=color, marker=marker, edgecolor="white", linewidth=0.3)
        ax.set_title(self.kind)
        return self._keep_axes(ax)
