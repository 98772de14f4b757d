"""Figures of the report on a user's table, of the pieces of the demo's report."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...demo.report.figures import Entry, Panel, panel, panel_axes
from ...plots import reliability_diagram, risk_coverage, uncertainty_histogram
from ...plots._canvas import COLORS, LINES
from ..measuring import Measured

_BLUE, _ORANGE, _GREEN = COLORS[:3]
_BINS = 20

PAIR = [Entry("classifier alone", 1, ""), Entry("with dipedl", 0, "")]
RANKINGS = [
    Entry("confidence of the classifier", 1, ""),
    Entry("confidence with dipedl", 0, "7 3"),
    Entry("vacuity", 2, "8 2 2 2"),
]


def sets(found: Measured) -> list[Entry]:
    """The legend of the histograms."""
    names = [side.name for side in (found.test, found.ood) if side is not None]
    return [Entry(name, i, "7 3" * i) for i, name in enumerate(names)]


def reliability(found: Measured, known: np.ndarray) -> Panel:
    """Accuracy against confidence, before and after, of the rows with a known class."""
    y = np.asarray(found.truth)[known]
    ax = reliability_diagram(y, found.bare[known], color=_ORANGE, ax=panel_axes())
    reliability_diagram(y, found.proba[known], color=_BLUE, ax=ax)
    return panel("Accuracy by confidence", ax, "accuracy against confidence", "rel")


def selection(found: Measured, known: np.ndarray) -> Panel:
    """Error rate against the share of rows that are answered."""
    right = (found.proba.argmax(axis=1) == found.truth)[known]
    ax = panel_axes()
    given = {
        _ORANGE: 1 - found.bare.max(axis=1),
        _BLUE: 1 - found.proba.max(axis=1),
        _GREEN: found.test.vacuity,
    }
    for color, uncertainty in given.items():
        risk_coverage(right, uncertainty[known], color=color, ax=ax)
    return panel("Errors among the surest", ax, "error rate against coverage", "rc")


def evidence(found: Measured) -> Iterator[Panel]:
    """Vacuity and p-values of the test rows, and of the other ones."""
    sides = [side for side in (found.test, found.ood) if side is not None]
    ax = uncertainty_histogram(
        {side.name: side.vacuity for side in sides}, log_odds=True, legend=False, ax=panel_axes()
    )
    ax.set_xlabel("vacuity (both ends stretched)")
    yield panel("Vacuity", ax, "histogram of vacuity", "vac")
    ax = panel_axes()
    edges = np.linspace(0, 1, _BINS + 1)
    for color, line, side in zip(COLORS, LINES, sides, strict=False):
        share = np.histogram(side.answers["p_value"], edges)[0] / len(side)
        ax.stairs(share, edges, color=color, linestyle=line, linewidth=1.8)
    ax.axhline(1 / _BINS, color="0.5", linewidth=1, linestyle=":")
    ax.set(xlabel="p-value: how usual the row is", ylabel="share of the rows", xlim=(0, 1))
    yield panel("p-values", ax, "histogram of p-values, even where nothing changed", "p")
