"""Default figures, colours and scales, and the base of Displays in scikit-learn's manner."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import logit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

#: Okabe and Ito's palette, distinct for colour-blind readers too.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: A second mark beside the colour.
LINES = ("-", "--", "-.", ":")


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (4.5, 3.4)) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    return figure_or_new(None, size).add_subplot() if ax is None else ax


def figure_or_new(fig: FigureBase | None, size: tuple[float, float]) -> FigureBase:
    """Return `fig`, or a new figure of this size in inches, unknown to pyplot."""
    if fig is not None:
        return fig
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def from_zero(ax: Axes) -> None:
    """Let the y-axis begin at 0 and hold every curve that is drawn so far."""
    # `ax.set_ylim(bottom=0)` would keep the upper end of the first curve for those that follow.
    ax.set_ylim(0, 1.05 * float(ax.dataLim.y1) or 1.0)


def vacuity_text(vacuity: float) -> str:
    """Return two digits; near 1 four decimals, of which the last ones differ."""
    if vacuity < 0.99:
        return f"{vacuity:.2g}"
    return "1" if 1 - vacuity < 1e-4 else f"{vacuity:.4f}"


def ink() -> str:
    """Return the text colour of matplotlib's style in use: black, or white in a dark one."""
    from matplotlib import rcParams

    return str(rcParams["text.color"])


def log_odds(p: np.ndarray, edge: float) -> np.ndarray:
    """Log-odds of shares p, of which those nearer than `edge` to 0 or 1 are moved to there."""
    return np.asarray(logit(np.clip(p, edge, 1 - edge)))


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
