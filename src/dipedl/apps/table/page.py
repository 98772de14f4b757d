"""The report of a model on a test table: one HTML page that loads nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..._version import __version__
from ...datasets import Provenance
from ...explanation import UnknownRehearsal
from ...plots import (
    CautionDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    UnknownRehearsalDisplay,
    VacuityHistogramDisplay,
)
from ...plots.canvas import COLORS, LINES, from_zero
from ...plots.page import DASHES, Entry, Panel, panel, panel_axes, png_uri, templates
from .evaluate import (
    Evaluation,
    ScoredTable,
    error_ranking,
    false_alarm_rate,
    headline,
    next_steps,
)
from .table_model import describe_rows_learned

__all__ = ["render"]

_BINS, _FEWEST, _LOOKS = 20, 20, 10
_PAIR = [Entry("classifier alone", 1, ""), Entry("with dipedl", 0, "")]
_RANKINGS = [
    Entry("confidence of the classifier", 1, ""),
    Entry("confidence with dipedl", 0, "7 3"),
    Entry("vacuity", 2, "8 2 2 2"),
]


def render(found: Evaluation, test: str, model: str, sources: Sequence[Provenance] = ()) -> str:
    """Return the page as HTML text; `test` and `model` are the names of the files.

    `sources` are those of data that ask to be named.
    """
    sides, known = [found.test, *found.others], found.truth is not None
    rehearsed = getattr(found.model.classifier, "unknown_rehearsal_", None)
    values = {
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
        "false_alarm_rate": false_alarm_rate(found),
        "pair": _PAIR,
        "rankings": _RANKINGS,
        "sets": [Entry(side.name, i % 4, DASHES[i % 4]) for i, side in enumerate(sides)],
        "reliability": [_reliability(found)] if known else [],
        "selection": [_selection(found)] if known else [],
        "evidence": list(_evidence(sides)),
        "looks": list(_looks(found)) if found.model.of_pixels else [],
        "picture": lambda at: _picture(found.test, at) if found.model.of_pixels else None,
        "diagnosis": found.diagnosis,
        "caution": _caution(found),
        "rehearsed": rehearsed,
        "rehearsal": _rehearsal(rehearsed) if rehearsed else [],
        "left_out": [Entry(name, j, "") for j, name in enumerate(rehearsed.methods)]
        if rehearsed
        else [],
        "sources": sources,
        "ranking": error_ranking(found.diagnosis),
    }
    return templates("dipedl.apps.table").get_template("report.html.j2").render(values)


def _reliability(found: Evaluation) -> Panel:
    """Accuracy against confidence, before and after, of the rows with a known class."""
    truth = np.asarray(found.truth)
    known, ax = truth >= 0, panel_axes()
    for P, color in ((found.test.bare, COLORS[1]), (found.proba, COLORS[0])):
        ReliabilityDisplay(truth[known], P[known]).plot(ax, color=color)
    return panel("Accuracy by confidence", ax, "accuracy against confidence", "rel")


def _selection(found: Evaluation) -> Panel:
    """Error rate against the share of rows that are answered."""
    known = np.asarray(found.truth) >= 0
    right, ax = (found.proba.argmax(axis=1) == found.truth)[known], panel_axes()
    bare, proba = found.test.bare.max(axis=1), found.proba.max(axis=1)
    rankings = (1 - bare, 1 - proba, found.test.answers.vacuity)
    for entry, uncertainty in zip(_RANKINGS, rankings, strict=True):
        RiskCoverageDisplay(right, uncertainty[known]).plot(ax, color=COLORS[entry.color])
    # The error rate of a few rows jumps by chance.
    for line in ax.lines:
        drawn = np.asarray(line.get_xydata())
        line.set_data(*drawn[min(_FEWEST, len(drawn)) - 1 :].T)
    ax.relim()
    from_zero(ax)
    return panel("Errors among the surest", ax, "error rate against coverage", "rc")


def _evidence(sides: list[ScoredTable]) -> Iterator[Panel]:
    """Vacuity and p-values of the test rows, and of the other ones."""
    vacuity, ax = {side.name: side.answers.vacuity for side in sides}, panel_axes()
    VacuityHistogramDisplay(vacuity).plot(ax, legend=False)
    yield panel("Vacuity", ax, "histogram of vacuity", "vac")
    ax = panel_axes()
    edges = np.linspace(0, 1, _BINS + 1)
    for color, line, side in zip(COLORS, LINES, sides, strict=False):
        share = np.histogram(side.answers.p_values, edges)[0] / len(side)
        ax.stairs(share, edges, color=color, linestyle=line, linewidth=1.8)
    ax.axhline(1 / _BINS, color="0.5", linewidth=1, linestyle=":")
    ax.set(xlabel="p-value: how usual the row is", ylabel="share of the rows", xlim=(0, 1))
    yield panel("p-values", ax, "histogram of p-values, even where nothing changed", "p")


def _caution(found: Evaluation) -> list[Panel]:
    """Price of caution on held-out rows, and what it buys on pseudo-outliers."""
    if found.diagnosis.caution is None:
        return []
    ax = panel_axes()
    CautionDisplay(found.diagnosis.caution).plot(ax)
    text = "Brier score of pseudo-outliers against the price of caution"
    return [panel("Price of caution", ax, text, "caution")]


def _rehearsal(rehearsed: UnknownRehearsal) -> list[Panel]:
    """Share flagged of each class that the fit did not have."""
    ax = panel_axes(height=1.0 + 0.42 * len(rehearsed))
    UnknownRehearsalDisplay(rehearsed).plot(ax, legend=False)
    return [panel("If a class were unknown", ax, "share flagged of each class left out", "left")]


def _looks(found: Evaluation) -> Iterator[dict[str, Any]]:
    """Ten images of each table, evenly spread and not chosen, with what flags them."""
    limit = found.test.entropy_limit
    for side in (found.test, *found.others):
        alone, alarm = side.flagged_by_entropy(limit), side.answers.flagged
        some = np.linspace(0, len(side) - 1, min(_LOOKS, len(side))).astype(int)
        yield {
            "title": side.name,
            "entropy": alone.mean(),
            "dipedl": alarm.mean(),
            "images": [(_picture(side, i), bool(alone[i]), bool(alarm[i])) for i in some],
        }


def _picture(side: ScoredTable, at: int) -> str:
    """Return a row of grey pixels of a square as the address of an image."""
    pixels = side.X.iloc[at].to_numpy(dtype=float)
    return png_uri(pixels.reshape(round(len(pixels) ** 0.5), -1))
