"""The page of a monitor: one HTML file that loads nothing, with a chart for each question."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ...plots.canvas import COLORS, LINES, from_zero
from ...plots.page import DASHES, Entry, Panel, panel, panel_axes, templates
from ..monitor import DriftMonitor, DriftReport, Window
from ..monitor.report import TESTS

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


def render_page(monitor: DriftMonitor, report: DriftReport, stream: str) -> str:
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
