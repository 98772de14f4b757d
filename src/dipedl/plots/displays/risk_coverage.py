"""Errors among the surest answers of a classifier, as a Display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from ...decisions.pipelines import uncertainty as uncertainty_of
from ..calibration import risk_coverage
from ._asked import Drawn, class_indices, proba_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["RiskCoverageDisplay"]


class RiskCoverageDisplay(Drawn):
    """Error rate among the most certain inputs: `risk_coverage` as a Display.

    Parameters
    ----------
    correct, uncertainty : array-like, shape (n,)
        As of `risk_coverage`.
    name : str, optional
        Of the classifier, in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dipedl.plots import RiskCoverageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = RiskCoverageDisplay.from_estimator(GaussianNB().fit(X, y), X, y)
    >>> display.line_.get_ydata()[-1].round(2)
    np.float64(0.04)
    """

    line_: Line2D

    def __init__(
        self, correct: ArrayLike, uncertainty: ArrayLike, *, name: str | None = None
    ) -> None:
        self.correct, self.uncertainty, self.name = correct, uncertainty, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        kind: str | None = None,
        name: str | None = None,
        color: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Ask a fitted classifier about labelled inputs, and draw.

        Parameters
        ----------
        estimator, X, y, name
            As of `ReliabilityDisplay.from_estimator`.
        kind : str, optional
            As in `DIPClassifier.uncertainty`, for a `DIPClassifier` or a pipeline that ends in
            one. Default, for any classifier: one minus the highest probability.
        color, ax : optional
            As in `plot`.

        Raises
        ------
        TypeError
            If the estimator has no ``predict_proba``; with `kind`, if it is no `DIPClassifier`.
        ValueError
            If y holds a label that the estimator does not know.
        """
        proba, classes = proba_of(estimator, X)
        correct = proba.argmax(axis=1) == class_indices(y, classes)
        unsure = 1 - proba.max(axis=1) if kind is None else uncertainty_of(estimator, X, kind)
        made = cls(correct, unsure, name=name or type(estimator).__name__)
        return made.plot(ax, color=color)

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        uncertainty: ArrayLike,
        *,
        name: str | None = None,
        color: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw predictions that are there already.

        Parameters
        ----------
        correct, uncertainty, name : array-like, array-like, str
            As in the class.
        color, ax : optional
            As in `plot`.
        """
        return cls(correct, uncertainty, name=name).plot(ax, color=color)

    def plot(self, ax: Axes | None = None, *, color: str | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw, such as ``ax_`` of another Display; default: a new figure.
        color : str, optional
            Of the curve.
        """
        drawn = risk_coverage(self.correct, self.uncertainty, label=self.name, color=color, ax=ax)
        self._keep(drawn, self.name)
        self.line_ = drawn.lines[-1]
        return self
