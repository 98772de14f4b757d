"""Observed and guaranteed risk of rejection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..decisions.rejection import RejectCurve
from ._canvas import COLORS, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["promised_risk"]


def promised_risk(
    curve: RejectCurve,
    *,
    risk: float | None = None,
    label: str | None = None,
    color: str = COLORS[0],
    ax: Axes | None = None,
) -> Axes:
    """Observed and guaranteed error rate against the share of inputs accepted.

    Parameters
    ----------
    curve : RejectCurve
        Of ``clf.reject_curve()`` or `dipedl.decisions.reject_curve`.
    risk : float, optional
        Marked by a line, and the largest coverage that keeps it by a dot.
    label, color : str, optional
        Of this curve.
    ax : Axes, optional
        Where to draw; call again with the same to compare.

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
    ax.step(curve.coverage, curve.upper, where="pre", color=color, linewidth=1.8, label=label)
    ax.plot(curve.coverage, curve.risk, color=color, linewidth=1, linestyle="--")
    if risk is not None:
        ax.axhline(risk, color="0.5", linewidth=1, linestyle=":")
        kept = curve.thresholds <= curve.threshold(risk)
        ax.plot(curve.coverage[kept][-1:], curve.upper[kept][-1:], "o", color=color)
    ax.set(
        xlabel="coverage: share of inputs answered",
        ylabel="error rate of answered inputs",
        xlim=(0, 1.02),
    )
    ax.set_ylim(bottom=0)
    return ax
