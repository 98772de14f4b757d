"""Default figures, colours and scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

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
