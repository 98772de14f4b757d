"""Figure of an explanation card: class probabilities before and after the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..dirichlet import Dirichlet
from .inputs import dirichlet_bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: With more classes, only the most probable are drawn and the others are summed.
_MOST_BARS = 12
_ALONE = "classifier alone"


def draw_card(
    dirichlet: Dirichlet,
    P: np.ndarray,
    class_names: Sequence[str],
    title: str,
    ax: Axes | None = None,
) -> Axes:
    """Bars of the posterior mean with 95 % intervals, dashes of P (k,), the classifier alone."""
    dirichlet, names, P = _most_probable(dirichlet, P, list(class_names))
    ax = dirichlet_bars(dirichlet, class_names=names, ax=ax)
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


def _most_probable(
    dirichlet: Dirichlet, P: np.ndarray, names: list[str]
) -> tuple[Dirichlet, list[str], np.ndarray]:
    """The most probable classes; all others are merged into one class, "other"."""
    k = len(names)
    if k <= _MOST_BARS:
        return dirichlet, names, P
    mean, alpha = (np.asarray(a)[0] for a in (dirichlet.mean, dirichlet.concentration))
    first = np.sort(np.argsort(-np.maximum(mean, P), kind="stable")[: _MOST_BARS - 1])
    rest = np.setdiff1d(np.arange(k), first)
    # The sums of components of a Dirichlet are again Dirichlet.
    merged = Dirichlet(np.append(alpha[first], alpha[rest].sum())[None])
    shown = [*(names[i] for i in first), f"other {len(rest)}"]
    return merged, shown, np.append(P[first], P[rest].sum())
