"""Pages of HTML that load nothing: the report of a model on a test table, and of a monitor."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

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
from ..monitor import DriftMonitor, DriftReport, Window
from ..monitor.drift_monitor import TESTS
from .evaluate import (
    Evaluation,
    ScoredTable,
    error_ranking,
    headline,
    next_steps,
)
from .table_model import describe_rows_learned

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


# A monitor: a chart for each question

#: Evidence as a multiple of its limit above which a line leaves the chart; columns in a chart, and
#: letters of their names; index of stability of the largest dot.
_HIGHEST, _COLUMNS, _WIDTH, _LARGE = 3.0, 10, 14, 1.0


@dataclass(frozen=True)
class Chart:
    """A panel of the page with the lines of its legend."""

    panel: Panel
    legend: list[Entry]

    @classmethod
    def of(cls, title: str, ax: Axes, lines: Iterable[str]) -> Chart:
        """Return axes as a chart under a title, whose lines have these names in order."""
        legend = [Entry(name, i, DASHES[i]) for i, name in enumerate(lines)]
        alt = ", ".join([title, *(entry.label for entry in legend)])
        return cls(panel(title, ax, alt, title.partition(" ")[0].lower()), legend)


def render_drift(monitor: DriftMonitor, report: DriftReport, stream: str) -> str:
    """Return the report and its windows, as charts and a table, in HTML text that loads nothing."""
    template = templates("dipedl.apps.table").get_template("drift.html.j2")
    windows = monitor.windows_
    return template.render(
        stream=stream,
        report=Markup(report._repr_html_()),
        charts=list(_charts(monitor, windows)) if windows else [],
        windows=windows[::-1],
        waiting=f"{len(monitor.open_):,} of {monitor.window:,}",
    )


def _charts(monitor: DriftMonitor, windows: Sequence[Window]) -> Iterator[Chart]:
    """Draw evidence, shares, accuracy and columns by the last row of each window."""
    last = [w.last for w in windows]
    limits = {test: monitor.limit(test) for test in windows[0].evidence}
    evidence = {
        TESTS[test]: [w.evidence[test] / limit for w in windows] for test, limit in limits.items()
    }
    ax = _axes(last)
    _draw(ax, last, evidence)
    ax.axhline(1, color="0.5", linewidth=1, linestyle=":")
    lowest, highest = ax.dataLim.y0, ax.dataLim.y1
    ax.set(ylabel="evidence / limit", ylim=(lowest - 0.1, min(max(highest, 1) + 0.1, _HIGHEST)))
    yield Chart.of("Evidence of a change: an alarm at 1", ax, evidence)
    shares = {
        "flagged rows": [w.flagged for w in windows],
        "mean uncertainty": [w.uncertainty for w in windows],
        "distance of p-values": [w.distance for w in windows],
    }
    ax = _axes(last)
    _draw(ax, last, shares)
    from_zero(ax)
    yield Chart.of("Rows unlike the reference", ax, shares)
    estimates = {
        "measured": [w.accuracy for w in windows],
        "estimated without labels": [w.estimated_accuracy for w in windows],
    }
    known = {name: values for name, values in estimates.items() if any(values)}
    if known:
        ax = _axes(last)
        for color, values in zip(COLORS, known.values(), strict=False):
            ends = np.array([(v.low, v.high) if v else (np.nan, np.nan) for v in values])
            ax.fill_between(last, *ends.T, color=color, alpha=0.15, linewidth=0)
        _draw(
            ax,
            last,
            {n: [None if v is None else v.value for v in values] for n, values in known.items()},
        )
        yield Chart.of("Accuracy, with 95 % intervals", ax, known)
    largest: dict[str, float] = {}
    for w in windows:
        for name, psi in w.changed:
            largest[name] = max(psi, largest.get(name, 0.0))
    if largest:
        names = sorted(largest, key=lambda name: -largest[name])[:_COLUMNS]
        ax = _axes(last)
        for height, name in enumerate(reversed(names)):
            dots = [(w.last, psi) for w in windows for n, psi in w.changed if n == name]
            at, psi = np.array(dots).T
            sizes = 20 + 60 * psi.clip(max=_LARGE) / _LARGE
            ax.scatter(at, np.full(len(at), height), sizes, color=COLORS[0], linewidth=0)
        texts = [name[:_WIDTH] for name in reversed(names)]
        ax.set_yticks(range(len(names)), texts, parse_math=False)
        ax.set(ylim=(-0.6, len(names) - 0.4))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # the table below has such names too
            yield Chart.of("Columns that differ: the larger the dot, the more", ax, {})


def _axes(last: Sequence[int]) -> Axes:
    """Return axes over the rows of a stream whose windows end at these."""
    ax = panel_axes(5.2, 2.5)
    ax.set(xlabel="rows of the stream", xlim=(0, 1.02 * last[-1]))
    ax.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return ax


def _draw(ax: Axes, last: Sequence[int], lines: Mapping[str, Sequence[float | None]]) -> None:
    """Draw a line for each name, with a mark for each window."""
    for color, style, values in zip(COLORS, LINES, lines.values(), strict=False):
        numbers = np.array(values, dtype=float)
        ax.plot(last, numbers, color=color, linestyle=style, marker=".", markersize=4)
