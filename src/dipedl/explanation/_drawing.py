"""A card as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._plugins import explain_missing
from ..dirichlet import Dirichlet
from ._text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._card import Card


#: More classes than this are drawn as the most probable ones and the rest.
_MOST_BARS = 12
_ALONE = "classifier alone"


def draw_card(card: Card, ax: Axes | None = None) -> Axes:
    """Bars of the posterior mean with 95 % intervals, dashes of the classifier alone."""
    dirichlet, names, bare = _gathered(card)
    try:
        from ..plots.inputs import dirichlet_bars

        ax = dirichlet_bars(dirichlet, class_names=names, ax=ax)
    except ImportError as error:
        raise explain_missing(error, "Card.plot") from error
    ax.patches[-1].set_label("with the evidence, 95 % interval")
    x = np.arange(len(bare))
    ax.plot(x, bare, "_", color="#D55E00", markersize=12, clip_on=False, label=_ALONE)
    ax.legend(fontsize="small")
    ax.set_xlabel("class")
    ax.set_ylabel("probability")
    if len(bare) > 6:
        ax.tick_params(axis="x", rotation=45)
    evidence = f"{count(card.evidence)} of {card.n:,.0f} samples"
    ax.set_title(f"{card.label}: {evidence}, p = {card.p_value:.2g}", fontsize="small")
    return ax


def _gathered(card: Card) -> tuple[Dirichlet, list[str], np.ndarray]:
    """Dirichlet, names and classifier's probabilities of what is drawn; the rest as one class."""
    names, bare = list(card.class_names), np.asarray(card.bare)
    k = len(names)
    if k <= _MOST_BARS:
        return card.dirichlet, names, bare
    first = np.sort(np.argsort(-np.maximum(card.mean, bare), kind="stable")[: _MOST_BARS - 1])
    rest = np.setdiff1d(np.arange(k), first)
    alpha = np.asarray(card.dirichlet.concentration)[0]
    # Sums of components of a Dirichlet are again one.
    dirichlet = Dirichlet(np.append(alpha[first], alpha[rest].sum())[None])
    shown = [names[i] for i in first]
    return dirichlet, [*shown, f"other {len(rest)}"], np.append(bare[first], bare[rest].sum())
