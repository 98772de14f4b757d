"""Vacuity of known and of other inputs, as a Display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from ...decisions.pipelines import uncertainty
from ..histogram import uncertainty_histogram
from ._asked import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

__all__ = ["VacuityHistogramDisplay"]

_ID = "ID"


class VacuityHistogramDisplay(Drawn):
    """Share of inputs by vacuity, both ends stretched: `uncertainty_histogram` as a Display.

    Parameters
    ----------
    vacuity : mapping of str to array-like, shape (n_i,)
        Vacuity of the inputs of each set, in [0, 1], by its name.

    Attributes
    ----------
    outlines_ : dict of str to Patch
        Outline of each set.
    ax_, figure_ : Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.plots import VacuityHistogramDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier().fit(X, y)
    >>> display = VacuityHistogramDisplay.from_estimator(clf, X, ood={"far": X + 5})
    >>> list(display.outlines_)
    ['ID', 'far']
    """

    outlines_: dict[str, Patch]

    def __init__(self, vacuity: Mapping[str, ArrayLike]) -> None:
        self.vacuity = vacuity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        ood: Mapping[str, Any] | None = None,
        bins: int = 36,
        threshold: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Ask a fitted model about inputs, and draw.

        Parameters
        ----------
        estimator : DIPClassifier
            Fitted; or a pipeline or search that ends in one.
        X : array-like, shape (n, d)
            Inputs like those of the fit, but not among them; called "ID".
        ood : mapping of str to array-like, shape (m_i, d), optional
            Other inputs, by name of the set.
        bins, threshold, ax : optional
            As in `plot`.

        Raises
        ------
        TypeError
            If the estimator is no `DIPClassifier` and ends in none.
        """
        sets = {_ID: X, **(ood or {})}
        made = cls({name: uncertainty(estimator, rows) for name, rows in sets.items()})
        return made.plot(ax, bins=bins, threshold=threshold)

    @classmethod
    def from_predictions(
        cls,
        vacuity: ArrayLike,
        *,
        ood: Mapping[str, ArrayLike] | None = None,
        bins: int = 36,
        threshold: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw vacuities that are there already.

        Parameters
        ----------
        vacuity : array-like, shape (n,)
            Of known inputs; called "ID".
        ood : mapping of str to array-like, shape (m_i,), optional
            Of other inputs, by name of the set.
        bins, threshold, ax : optional
            As in `plot`.

        Raises
        ------
        ValueError
            If a set is empty or not finite.
        """
        return cls({_ID: vacuity, **(ood or {})}).plot(ax, bins=bins, threshold=threshold)

    def plot(
        self, ax: Axes | None = None, *, bins: int = 36, threshold: float | None = None
    ) -> Self:
        """Draw the outlines.

        Parameters
        ----------
        ax, bins, threshold : optional
            As of `uncertainty_histogram`.
        """
        drawn = uncertainty_histogram(
            self.vacuity, log_odds=True, bins=bins, threshold=threshold, ax=ax
        )
        drawn.set_xlabel("vacuity (both ends stretched)")
        self._keep(drawn)
        outlines = drawn.patches[-2 * len(self.vacuity) :: 2]  # each has its filling after it
        self.outlines_ = dict(zip(self.vacuity, outlines, strict=True))
        return self
