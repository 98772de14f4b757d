"""A point for each pair of a crossed suite: our default beside the bare classifier."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from ...demo.report.inline import svg
from ...plots._canvas import COLORS
from ..tables.crossed.pairs import Crossed

__all__ = ["figure_of_pairs"]

_INCHES = 0.19


def figure_of_pairs(found: Crossed) -> Markup:
    """AUROC of every pair as SVG: bare classifier, our default, and the best single candidate."""
    from matplotlib.figure import Figure

    lines = found.pairs
    bare, ours = (found.values(method, "auroc") for method in (found.bare, found.ours))
    figure = Figure(figsize=(7.4, 0.9 + _INCHES * len(lines)), layout="constrained")
    ax = figure.subplots()
    y = -np.arange(len(lines))
    ax.hlines(y, np.fmin(bare, ours), np.fmax(bare, ours), color=COLORS[0], lw=1, alpha=0.5)
    best = _best_candidate(found)
    ax.plot(best, y, "|", color=COLORS[1], ms=9, mew=1.5)
    ax.plot(bare, y, "o", mfc="none", mec="black", ms=4.5)
    ax.plot(ours, y, "o", color=COLORS[0], ms=5)
    ax.set_yticks(y, [str(line) for line in lines], fontsize=7)
    ax.set(xlabel="AUROC", ylim=(-len(lines) + 0.3, 0.7))
    ax.axvline(0.5, color="black", lw=0.6, ls=":")
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="x", labelsize=8)
    return svg(figure, "AUROC of every line: bare classifier and our default", "lines")


def _best_candidate(found: Crossed) -> np.ndarray:
    """Best AUROC of a single candidate by pair; NaN where none was run."""
    values = [found.values(column.name, "auroc") for column in found.named("candidate")]
    return np.fmax.reduce(values) if values else np.full(len(found.pairs), np.nan)
