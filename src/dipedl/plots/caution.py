"""Price of caution on known inputs against its gain on pseudo-outliers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..decisions.pipelines import last_step_with
from .canvas import COLORS, Display, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["CautionDisplay"]


class CautionDisplay(Display):
    """Brier score of pseudo-outliers against the price of caution, to choose `caution` by.

    Parameters
    ----------
    curve : dipedl.explanation.CautionCurve
        Of ``diagnose().caution``.

    Attributes
    ----------
    line_ : Line2D
        The curve, a mark for each setting.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.plots import CautionDisplay
    >>> clf = DIPClassifier().fit(*load_iris(return_X_y=True))
    >>> display = CautionDisplay.from_estimator(clf)
    >>> display.ax_.get_ylabel()
    'Brier score of pseudo-outliers'
    """

    line_: Line2D

    def __init__(self, curve: Any) -> None:
        self.curve = curve

    @classmethod
    def from_estimator(cls, estimator: Any) -> Self:
        """Diagnose a fitted model, and draw.

        Parameters
        ----------
        estimator : DIPClassifier
            Fitted; or a pipeline or search that ends in one.

        Raises
        ------
        ValueError
            If the model has no pseudo-outliers: they come with the default density, of numbers
            without gaps.
        """
        curve = last_step_with("diagnose", estimator)[0].diagnose().caution
        if curve is None:
            raise ValueError(
                "estimator has no pseudo-outliers or no labels of held-out rows; fit a "
                "DIPClassifier with density=None, DensitySelector() or FusedDensity() on numbers "
                "without text or gaps; diagnose() still says what caution costs: evidence_cost"
            )
        return cls(curve).plot()

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; default: a new figure.
        """
        curve, ax = self.curve, axes_or_new(ax)
        (self.line_,) = ax.plot(
            100 * curve.price, curve.outlier_brier, color=COLORS[0], marker="o", markersize=4
        )
        for i, caution in enumerate(curve.caution):
            if i != curve.present:
                at = 100 * curve.price[i], curve.outlier_brier[i]
                ax.annotate(
                    f"{caution:g}", at, (5, 4), textcoords="offset points", fontsize="small"
                )
        if curve.present is not None:
            at = curve.present
            ax.plot(
                100 * curve.price[at], curve.outlier_brier[at], color=COLORS[1], marker="D",
                linestyle="none", label=f"present: caution={curve.caution[at]:g}",
            )  # fmt: skip
            ax.legend(fontsize="small")
        ax.set(
            xlabel="price on held-out rows, % of their Brier score",
            ylabel="Brier score of pseudo-outliers",
        )
        ax.margins(x=0.1, y=0.12)
        ax.set_ylim(bottom=0)
        return self._keep_axes(ax)
