"""The sections of a report on a crossed suite: measures, a figure of every pair, all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tables.crossed.markdown import (
    KNOWN_TITLES,
    PAIR_TITLES,
    SUMMARY,
    cell_text,
    column_mean,
)
from ..tables.crossed.measures import measures
from ..tables.crossed.pairs import OF_PAIR, Column, Crossed, crossed, summary
from ..tables.provenance import receipts
from ..tables.table import bench_table, latest
from .crossed_figure import figure_of_pairs

__all__ = ["SECTIONS", "values"]

_HIGHER = ("auroc", "aupr", "accuracy", "error_auroc")


@dataclass(frozen=True)
class Grid:
    """A table of the page: heads of columns, and rows of a title and cells."""

    heading: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


#: Sections of the report, and their titles.
SECTIONS = {
    "short": "What was asked, and what came out",
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
    """What the templates of `SECTIONS` show, from the rows of one crossed suite and one profile."""
    kept = latest(rows)
    found = crossed(bench_table(kept))
    main = found.named("bare", "ours", "baseline")
    ablation, candidates = (_with_ours(found, group) for group in ("ablation", "candidate"))
    kinds = [column for column in found.columns if column.name.partition(":")[0] == found.ours]
    return {
        "found": found,
        "receipts": receipts(kept),
        "seeds": sorted({seed for line in found.table.lines for seed in line.seeds}),
        "measures": measures(found),
        "figure": figure_of_pairs(found),
        "summary": _summary(found),
        "of_pairs": [_of_pairs(found, main, name) for name in PAIR_TITLES],
        "of_known": [_of_pairs(found, main, name) for name in KNOWN_TITLES],
        "kinds": _of_pairs(found, kinds, "auroc"),
        "ablation": _of_pairs(found, ablation, "auroc"),
        "ablation_brier": _of_pairs(found, ablation, "brier_ood"),
        "candidates": _of_pairs(found, candidates, "auroc"),
        "regret": found.regret(),
        "refused": [line for line in found.table.lines if line.refused],
    }


def _with_ours(found: Crossed, group: str) -> list[Column]:
    return [*found.named("ours"), *found.named(group)]


def _summary(found: Crossed) -> Grid:
    rows = []
    for column in found.columns:
        of = summary(found, column.name)
        rows.append((column.title, tuple((show(of), False) for show in SUMMARY.values())))
    return Grid("All methods", tuple(SUMMARY), tuple(rows))


def _of_pairs(found: Crossed, columns: Sequence[Column], metric: str) -> Grid:
    """A metric of every pair and method, the best of each pair marked, and the means."""
    rows = []
    for pair in found.of(metric):
        values = np.array([found.value(pair, column.name, metric) for column in columns])
        best = _best(values, metric)
        texts = (cell_text(found.line(pair, c.name), metric, pair.ood) for c in columns)
        cells = tuple(zip(texts, (bool(v == best) for v in np.round(values, 3)), strict=True))
        rows.append((str(pair) if metric in OF_PAIR else pair.place, cells))
    of_column = (found.values(c.name, metric, found.of(metric)) for c in columns)
    rows.append(("mean", tuple((column_mean(values), False) for values in of_column)))
    heading = {**PAIR_TITLES, **KNOWN_TITLES}[metric]
    return Grid(heading, tuple(column.title for column in columns), tuple(rows))


def _best(values: np.ndarray, metric: str) -> float:
    there = np.round(values[~np.isnan(values)], 3)
    if not len(there):
        return np.nan
    return float(there.max() if metric in _HIGHER else there.min())
