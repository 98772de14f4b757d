"""Reliability of a classifier; observed and guaranteed risk against coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..decisions.pipelines import uncertainty as uncertainty_of
from ..decisions.rejection import RejectCurve
from ..maths.arrays import check_integer
from ..maths.scores import wilson
from ..metrics import risk_coverage_curve
from ..metrics.metric import top_label
from .canvas import COLORS, LINES, Display, axes_or_new, from_zero

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D

__all__ = ["ReliabilityDisplay", "RiskCoverageDisplay", "promised_risk"]


class ReliabilityDisplay(Display):
    """Accuracy of a classifier against its confidence in the top class, in bins of equal width.

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True class indices, 0..k-1.
    proba : array-like, shape (n, k)
        Class probabilities; rows sum to one.
    name : str, optional
        Of the classifier, in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    errors_ : Collection
        95 % Wilson intervals of the accuracy: wide for a bin of few inputs.
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
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
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
        name : str, optional
            Default: the name of the estimator's class.
        **options : optional
            As of `plot`.

        Raises
        ------
        TypeError
            If the estimator has no ``predict_proba``.
        ValueError
            If y holds a label that the estimator does not know.
        """
        proba, classes = _proba_of(estimator, X)
        name = name or type(estimator).__name__
        return cls(_class_indices(y, classes), proba, name=name).plot(**options)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw class probabilities that are there already.

        Parameters
        ----------
        y, proba, name
            As of the class.
        classes : array-like, shape (k,), optional
            Labels of the columns of `proba`, of which y holds some; default: 0..k-1.
        **options : optional
            As of `plot`.

        Raises
        ------
        ValueError
            If y holds a label that is not among the classes, or shapes do not match.
        """
        truth = np.asarray(y) if classes is None else _class_indices(y, classes)
        return cls(truth, proba, name=name).plot(**options)

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
        n_bins : int, default=10
            Number of bins between 0 and 1.
        min_rows : int, default=20
            Bins of fewer inputs are left out, and empty ones always: few answers say little.
        color : str, optional
            Of the curve.

        Raises
        ------
        ValueError
            If `min_rows` is below 1.
        """
        check_integer("min_rows", min_rows)
        confidence, hit = top_label(self.y, self.proba)
        # Right-closed bins, as those of `dipedl.metrics.ece`.
        bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
        size = np.bincount(bins, minlength=n_bins)
        full = size >= min_rows
        mean, accuracy = (
            np.bincount(bins, weights=values, minlength=n_bins)[full] / size[full]
            for values in (confidence, hit)
        )
        ax = axes_or_new(ax)
        if not ax.lines:
            ax.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":")
        (self.line_,) = ax.plot(mean, accuracy, "o-", color=color, label=self.name)
        self.line_.set(markersize=4, linewidth=1.6)
        errors, own = np.abs(wilson(accuracy, size[full]) - accuracy), self.line_.get_color()
        ax.errorbar(mean, accuracy, errors, color=own, fmt="none", elinewidth=1)
        ax.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(-0.02, 1.02))
        self.errors_ = ax.collections[-1]
        return self._keep_axes(ax, self.name)


class RiskCoverageDisplay(Display):
    """Error rate among the most certain inputs, against the share of inputs answered.

    Parameters
    ----------
    correct : array-like of bool, shape (n,)
        True for each right prediction; False for an OOD input.
    uncertainty : array-like, shape (n,)
        Uncertainty of each prediction, higher = less sure.
    name : str, optional
        Of the classifier, in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    See Also
    --------
    dipedl.metrics.risk_coverage_curve : the numbers.

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
        **options: Any,
    ) -> Self:
        """Ask a fitted classifier about labelled inputs, and draw.

        Parameters
        ----------
        estimator, X, y, name
            As of `ReliabilityDisplay.from_estimator`.
        kind : str, optional
            As in `DIPClassifier.uncertainty`, for a `DIPClassifier` or a pipeline that ends in
            one. Default, for any classifier: one minus the highest probability.
        **options : optional
            As of `plot`.

        Raises
        ------
        TypeError
            If the estimator has no ``predict_proba``; with `kind`, if it is no `DIPClassifier`.
        ValueError
            If y holds a label that the estimator does not know.
        """
        proba, classes = _proba_of(estimator, X)
        correct = proba.argmax(axis=1) == _class_indices(y, classes)
        unsure = 1 - proba.max(axis=1) if kind is None else uncertainty_of(estimator, X, kind)
        return cls(correct, unsure, name=name or type(estimator).__name__).plot(**options)

    @classmethod
    def from_predictions(
        cls,
        correct: ArrayLike,
        uncertainty: ArrayLike,
        *,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw predictions that are there already: parameters as of the class, and of `plot`."""
        return cls(correct, uncertainty, name=name).plot(**options)

    def plot(self, ax: Axes | None = None, *, color: str | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw, such as ``ax_`` of another Display; default: a new figure.
        color : str, optional
            Of the curve.
        """
        curve, ax = risk_coverage_curve(self.correct, self.uncertainty), axes_or_new(ax)
        line = LINES[len(ax.lines) % len(LINES)]
        (self.line_,) = ax.plot(curve.coverage, curve.risk, line, color=color, label=self.name)
        self.line_.set_linewidth(1.8)
        ax.set(xlabel="coverage: share of inputs answered", ylabel="error rate", xlim=(0, 1))
        from_zero(ax)
        return self._keep_axes(ax, self.name)


def promised_risk(
    curve: RejectCurve,
    *,
    risk: float | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Observed and guaranteed error rate against the share of inputs accepted.

    Parameters
    ----------
    curve : RejectCurve
        Of ``clf.reject_curve()`` or `dipedl.decisions.reject_curve`.
    risk : float, optional
        Marked by a line, and the largest coverage that keeps it by a dot.
    label : str, optional
        Of the bounds.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        Steps: upper bounds, which hold together with probability ``curve.confidence``; line:
        the error rate of the held-out rows, without guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.decisions import reject_curve
    >>> from dipedl.plots import promised_risk
    >>> u = np.arange(400) / 400
    >>> promised_risk(reject_curve(u, u > 0.8), risk=0.1).get_ylabel()
    'error rate of answered inputs'
    """
    ax = axes_or_new(ax)
    ax.step(curve.coverage, curve.upper, where="pre", color=COLORS[0], linewidth=1.8, label=label)
    ax.plot(curve.coverage, curve.risk, color=COLORS[0], linewidth=1, linestyle="--")
    if risk is not None:
        ax.axhline(risk, color="0.5", linewidth=1, linestyle=":")
        within = curve.thresholds <= curve.threshold(risk)
        ax.plot(curve.coverage[within][-1:], curve.upper[within][-1:], "o", color=COLORS[0])
    ax.set(xlabel="coverage: share of inputs answered", ylabel="error rate of answered inputs")
    ax.set_xlim(0, 1.02)
    from_zero(ax)
    return ax


def _proba_of(estimator: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return class probabilities (n, k) of X (n, d), and the labels (k,) of their columns."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must have predict_proba, got {type(estimator).__name__}; wrap it in "
            "CalibratedClassifierCV, or give probabilities to from_predictions"
        )
    proba = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if not hasattr(estimator, "classes_"):
        raise TypeError(
            f"estimator must have classes_, got {type(estimator).__name__} without; give its "
            "probabilities to from_predictions"
        )
    return proba, np.asarray(estimator.classes_)


def _class_indices(y: ArrayLike, classes: ArrayLike) -> np.ndarray:
    """Return the place in `classes` (k,) of each label in y (n,)."""
    places = {label: i for i, label in enumerate(np.asarray(classes).tolist())}
    labels = np.asarray(y).ravel().tolist()
    unknown = [label for label in dict.fromkeys(labels) if label not in places]
    if unknown:
        raise ValueError(
            f"y must hold labels that the classifier knows, such as {[*places][:5]}, got "
            f"{unknown[:5]}; leave out inputs of other classes"
        )
    return np.array([places[label] for label in labels], dtype=np.intp)
