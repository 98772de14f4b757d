"""A card as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._plugins import explain_missing
from ._text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._card import Card


def draw_card(card: Card, ax: Axes | None = None) -> Axes:
    """Bars of the posterior mean with 95 % intervals, dots of the classifier alone."""
    try:
        from ..plots.inputs import dirichlet_bars

        ax = dirichlet_bars(card.dirichlet, class_names=card.class_names, ax=ax)
    except ImportError as error:
        raise explain_missing(error, "Card.plot") from error
    ax.plot(np.arange(len(card.bare)), card.bare, "_", color="#D55E00", markersize=12)
    evidence = f"{count(card.evidence)} of {card.n:,.0f} samples"
    ax.set_title(f"{card.label}: {evidence}, p = {card.p_value:.2g}", fontsize="small")
    return ax
