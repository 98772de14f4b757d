"""Displays in scikit-learn's manner: made from an estimator or from predictions, then drawn."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A Display: the axes and the figure of its last drawing, which a notebook shows."""

    ax_: Axes
    figure_: Figure

    def _keep_axes(self, ax: Axes, name: str | None = None) -> Self:
        """Keep the axes of the drawing, with a legend if there is a name."""
        self.ax_, self.figure_ = ax, ax.figure.get_figure(root=True)
        if name is not None:
            ax.legend()
        return self

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        """Return the picture for a notebook; None before `plot`, and where pyplot shows it."""
        if not hasattr(self, "figure_") or self.figure_.canvas.manager is not None:
            return None
        picture, sharpness = BytesIO(), 2
        self.figure_.savefig(picture, format="png", dpi=sharpness * self.figure_.dpi)
        width, height = (self.figure_.get_size_inches() * self.figure_.dpi).astype(int).tolist()
        return picture.getvalue(), {"width": width, "height": height}


def proba_of(estimator: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
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


def class_indices(y: ArrayLike, classes: ArrayLike) -> np.ndarray:
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
