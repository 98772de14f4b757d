"""Figure of an explanation card: class probabilities before and after the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..dirichlet import Dirichlet
from .inputs import dirichlet_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALONE = "classifier alone"


def draw_card(
    dirichlet: Dirichlet,
    P: np.ndarray,
    class_names: Sequence[str],
    title: str,
    ax: Axes | None = None,
) -> Axes:
    """Bars of the posterior mean with 95 % intervals, dashes of P (k,), the classifier alone."""
    ax = dirichlet_bars(dirichlet, class_names=class_names, ax=ax)
    ax.patches[-1].set_label("with the evidence, 95 % interval")
    x = np.arange(len(P))
    ax.plot(x, P, "_", color="#D55E00", markersize=16, markeredgewidth=2, label=_ALONE)
    ax.set_ylim(-0.03, 1.03)  # room for a dash at either end
    ax.legend(fontsize="small")
    ax.set_xlabel("class")
    ax.set_ylabel("probability")
    if len(P) > 6:
        ax.tick_params(axis="x", rotation=45)
    ax.set_title(title, fontsize="small")
    return ax
