"""Reliability of a classifier, as a Display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..calibration import reliability_diagram
from ._asked import Drawn, class_indices, proba_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

__all__ = ["ReliabilityDisplay"]


class ReliabilityDisplay(Drawn):
    """Accuracy against confidence of a classifier: `reliability_diagram` as a Display.

    Parameters
    ----------
    y, proba : array-like, shapes (n,) and (n, k)
        As of `reliability_diagram`.
    name : str, optional
        Of the classifier, in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    errors_ : Collection
        95 % intervals of the accuracy.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dipedl.plots import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = ReliabilityDisplay.from_estimator(GaussianNB().fit(X, y), X, y)
    >>> display.line_.get_label()
    'GaussianNB'
    """

    line_: Line2D
    errors_: Collection

    def __init__(self, y: ArrayLike, proba: ArrayLike, *, name: str | None = None) -> None:
        self.y, self.proba, self.name = y, proba, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_bins: int = 10,
        min_rows: int = 20,
        name: str | None = None,
        color: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Ask a fitted classifier about labelled inputs, and draw.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba``; of any library.
        X : array-like, shape (n, d)
            Inputs that it was not fitted on.
        y : array-like, shape (n,)
            Their labels, as in ``estimator.classes_``.
        n_bins, min_rows, color, ax : optional
            As in `plot`.
        name : str, optional
            Default: the name of the estimator's class.

        Raises
        ------
        TypeError
            If the estimator has no ``predict_proba``.
        ValueError
            If y holds a label that the estimator does not know.
        """
        proba, classes = proba_of(estimator, X)
        made = cls(class_indices(y, classes), proba, name=name or type(estimator).__name__)
        return made.plot(ax, n_bins=n_bins, min_rows=min_rows, color=color)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        n_bins: int = 10,
        min_rows: int = 20,
        name: str | None = None,
        color: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw class probabilities that are there already.

        Parameters
        ----------
        y, proba, name
            As of the class.
        classes : array-like, shape (k,), optional
            Labels of the columns of `proba`, of which y holds some; default: 0..k-1.
        n_bins, min_rows, color, ax : optional
            As in `plot`.

        Raises
        ------
        ValueError
            If y holds a label that is not among the classes, or shapes do not match.
        """
        truth = np.asarray(y) if classes is None else class_indices(y, classes)
        made = cls(truth, proba, name=name)
        return made.plot(ax, n_bins=n_bins, min_rows=min_rows, color=color)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_bins: int = 10,
        min_rows: int = 20,
        color: str | None = None,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw, such as ``ax_`` of another Display; default: a new figure.
        n_bins, min_rows, color : optional
            As in `reliability_diagram`.
        """
        drawn = reliability_diagram(
            self.y,
            self.proba,
            n_bins=n_bins,
            min_rows=min_rows,
            label=self.name,
            color=color,
            ax=ax,
        )
        self._keep(drawn, self.name)
        self.line_, self.errors_ = drawn.lines[-1], drawn.collections[-1]
        return self
