"""The report page: the demo's style, legends and panels, with the numbers of a user's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...._version import __version__
from ....plots import ReliabilityDisplay, RiskCoverageDisplay, VacuityHistogramDisplay
from ....plots.canvas import COLORS, LINES, from_zero
from ...demo.report.figures import Entry, Panel, panel, panel_axes
from ...demo.report.inline import templates
from ..evaluate import Evaluation
from ..table_model import describe_rows_learned
from .advice import error_ranking, headline, next_steps

__all__ = ["render"]

_BLUE, _ORANGE, _GREEN = COLORS[:3]
_BINS, _FEWEST = 20, 20

_PAIR = [Entry("classifier alone", 1, ""), Entry("with dipedl", 0, "")]
_RANKINGS = [
    Entry("confidence of the classifier", 1, ""),
    Entry("confidence with dipedl", 0, "7 3"),
    Entry("vacuity", 2, "8 2 2 2"),
]


def render(found: Evaluation, test: str, model: str) -> str:
    """The page as HTML text; `test` and `model` are the names of the files."""
    template = templates("dipedl.apps.table.report").get_template("own_data.html.j2")
    return template.render(_values(found, test, model))


def _values(found: Evaluation, test: str, model: str) -> dict[str, Any]:
    known = None if found.truth is None else np.asarray(found.truth) >= 0
    return {
        "version": __version__,
        "test": test,
        "model": model,
        "target": found.model.target,
        "facts": found.model.facts,
        "rows_learned": describe_rows_learned(found.model.facts),
        "held_out": found.model.facts["held_out"],
        "headline": headline(found),
        "steps": next_steps(found),
        "found": found,
        "pair": _PAIR,
        "rankings": _RANKINGS,
        "sets": _sets(found),
        "reliability": [] if known is None else [_reliability(found, known)],
        "selection": [] if known is None else [_selection(found, known)],
        "evidence": list(_evidence(found)),
        "diagnosis": found.diagnosis,
        "ranking": error_ranking(found.diagnosis),
    }


def _sets(found: Evaluation) -> list[Entry]:
    """The legend of the histograms."""
    names = [side.name for side in (found.test, found.ood) if side is not None]
    return [Entry(name, i, "7 3" * i) for i, name in enumerate(names)]


def _reliability(found: Evaluation, known: np.ndarray) -> Panel:
    """Accuracy against confidence, before and after, of the rows with a known class."""
    y = np.asarray(found.truth)[known]
    ax = panel_axes()
    for P, color in ((found.bare, _ORANGE), (found.proba, _BLUE)):
        ReliabilityDisplay(y, P[known]).plot(ax, color=color)
    return panel("Accuracy by confidence", ax, "accuracy against confidence", "rel")


def _selection(found: Evaluation, known: np.ndarray) -> Panel:
    """Error rate against the share of rows that are answered."""
    right = (found.proba.argmax(axis=1) == found.truth)[known]
    ax = panel_axes()
    given = {
        _ORANGE: 1 - found.bare.max(axis=1),
        _BLUE: 1 - found.proba.max(axis=1),
        _GREEN: found.test.vacuity,
    }
    for color, uncertainty in given.items():
        RiskCoverageDisplay(right, uncertainty[known]).plot(ax, color=color)
    # The error rate of a few rows jumps by chance.
    for line in ax.lines:
        drawn = np.asarray(line.get_xydata())
        line.set_data(*drawn[min(_FEWEST, len(drawn)) - 1 :].T)
    ax.relim()
    from_zero(ax)
    return panel("Errors among the surest", ax, "error rate against coverage", "rc")


def _evidence(found: Evaluation) -> Iterator[Panel]:
    """Vacuity and p-values of the test rows, and of the other ones."""
    sides = [side for side in (found.test, found.ood) if side is not None]
    ax = panel_axes()
    VacuityHistogramDisplay({side.name: side.vacuity for side in sides}).plot(ax, legend=False)
    yield panel("Vacuity", ax, "histogram of vacuity", "vac")
    ax = panel_axes()
    edges = np.linspace(0, 1, _BINS + 1)
    for color, line, side in zip(COLORS, LINES, sides, strict=False):
        share = np.histogram(side.answers.p_values, edges)[0] / len(side)
        ax.stairs(share, edges, color=color, linestyle=line, linewidth=1.8)
    ax.axhline(1 / _BINS, color="0.5", linewidth=1, linestyle=":")
    ax.set(xlabel="p-value: how usual the row is", ylabel="share of the rows", xlim=(0, 1))
    yield panel("p-values", ax, "histogram of p-values, even where nothing changed", "p")
