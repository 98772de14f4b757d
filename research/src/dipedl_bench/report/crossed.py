"""The sections of a report on a crossed suite: measures, a figure of every pair, all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from dipedl.apps.demo.report.inline import svg
from dipedl.plots.canvas import COLORS, LINES

from ..results.known_truth import LEVELS
from ..tables.crossed.intervals import (
    HEADS,
    coverage_of,
    interval_columns,
    interval_rows,
    problem_rows,
)
from ..tables.crossed.markdown import KNOWN_TITLES, PAIR_TITLES, SUMMARY, pair_rows, summary_rows
from ..tables.crossed.measures import measures
from ..tables.crossed.pairs import Column, Crossed, crossed
from ..tables.headline import is_higher_better
from ..tables.provenance import receipts
from ..tables.table import bench_table, latest

_INCHES = 0.19


@dataclass(frozen=True)
class Grid:
    """A table of the page: heads of columns, and rows of a title and cells."""

    heading: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


#: Sections of the report, and their titles; "intervals" where class probabilities are known.
_SECTIONS = {
    "short": "Targets and results",
    "intervals": "Intervals",
    "lines": "Every line",
    "methods": "All methods",
    "protocol": "Protocol",
    "pairs": "OOD sets",
    "known": "Known data",
    "kinds": "Which uncertainty ranks",
    "parts": "Without one part",
    "regret": "What the selection chose",
    "refused": "Refusals",
    "again": "Get these numbers again",
}


def values(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the content of the templates, from the rows of one crossed suite and one profile."""
    kept = latest(rows)
    found = crossed(bench_table(kept))
    main = found.named("bare", "ours", "baseline")
    ablation, candidates = (found.named("ours", group) for group in ("ablation", "candidate"))
    kinds = [column for column in found.columns if column.name.partition(":")[0] == found.ours]
    return {
        "found": found,
        "receipts": receipts(kept),
        "seeds": sorted({seed for line in found.table.lines for seed in line.seeds}),
        "measures": measures(found),
        "figure": _figure(found),
        "intervals": _intervals(found),
        "summary": _plain("All methods", SUMMARY, summary_rows(found, found.columns)),
        "of_pairs": [_of_pairs(found, main, name) for name in PAIR_TITLES],
        "of_known": [_of_pairs(found, main, name) for name in KNOWN_TITLES],
        "kinds": _of_pairs(found, kinds, "auroc"),
        "ablation": _of_pairs(found, ablation, "auroc"),
        "ablation_brier": _of_pairs(found, ablation, "brier_ood"),
        "candidates": _of_pairs(found, candidates, "auroc"),
        "regret": found.regret(),
        "refused": [line for line in found.table.lines if line.refused],
    }


def sections(found: Mapping[str, Any]) -> dict[str, str]:
    """Sections that the values of a page have something for, and their titles."""
    return {name: title for name, title in _SECTIONS.items() if found.get(name, True) is not None}


def _intervals(found: Crossed) -> dict[str, Any] | None:
    """Tables and figure of what intervals hold; None where no class probability is known."""
    by_method = interval_rows(found)
    if not by_method:
        return None
    (_, *heads), by_problem = problem_rows(found)
    return {
        "figure": svg(coverage_figure(found), "Coverage against the level of intervals", "levels"),
        "methods": _plain("Intervals by method", HEADS, by_method),
        "problems": _plain("95 % intervals, without → with", heads, by_problem),
    }


def _plain(heading: str, heads: Iterable[str], rows: Iterable[Sequence[str]]) -> Grid:
    """A grid in which no cell is marked."""
    unmarked = ((title, tuple((text, False) for text in texts)) for title, *texts in rows)
    return Grid(heading, tuple(heads), tuple(unmarked))


def coverage_figure(found: Crossed) -> Figure:
    """Coverage against the level of the intervals, one line for each method."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    axes, levels = figure.subplots(), [level / 100 for level in LEVELS]
    axes.plot([0, 1], [0, 1], color="black", lw=0.8, ls=":")
    for i, column in enumerate(interval_columns(found)):
        width = 2.6 if column.name == found.ours else 1.2
        style: Any = {"color": COLORS[i % 4], "ls": LINES[i // 4 % 4], "lw": width}
        held = coverage_of(found, column.name)
        axes.plot(levels, held, marker="o", ms=4, label=column.title, **style)
    axes.set(xlim=(0.45, 1), ylim=(0, 1), xlabel="level of the interval", ylabel="coverage")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, handlelength=4)
    return figure


def _of_pairs(found: Crossed, columns: Sequence[Column], metric: str) -> Grid:
    """A metric of every pair and method, the best of each pair marked, and the means."""
    *texts, (mean, *means) = pair_rows(found, columns, metric)
    best_of = np.fmax if is_higher_better(metric) else np.fmin  # neither looks at NaN
    rows = []
    for pair, (title, *cells) in zip(found.of(metric), texts, strict=True):
        values = np.round([found.value(pair, column.name, metric) for column in columns], 3)
        best = (values == best_of.reduce(values, initial=np.nan)).tolist()
        rows.append((title, tuple(zip(cells, best, strict=True))))
    rows.append((mean, tuple((text, False) for text in means)))
    heading = {**PAIR_TITLES, **KNOWN_TITLES}[metric]
    return Grid(heading, tuple(column.title for column in columns), tuple(rows))


def _figure(found: Crossed) -> Markup:
    """AUROC of every pair as SVG: bare classifier, our default, and the best single candidate."""
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
