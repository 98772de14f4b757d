"""The sections of a report on several data sets: measures, a figure of every line, all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..honest.markdown import KNOWN_TITLES, PAIR_TITLES, SUMMARY, cell_text, number
from ..honest.measures import measures, regret
from ..honest.table import Column, Line, StudyTable, study_table, summary
from ..tables.provenance import receipts
from ..tables.table import latest_by
from .lines_figure import figure_of_lines

__all__ = ["SECTIONS", "values"]

_HIGHER = ("auroc", "aupr", "accuracy", "error_auroc")
_MAIN = ("bare", "ours", "baseline")
_OURS = "default"


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
    "pairs": "OOD data",
    "known": "Known data",
    "kinds": "Which uncertainty ranks",
    "parts": "Without one part",
    "regret": "What the selection chose",
    "refused": "Refusals",
    "again": "Get these numbers again",
}


def values(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the templates of `SECTIONS` show.

    Parameters
    ----------
    rows : sequence of dict
        Of one suite of several data sets and one profile.
    """
    table = study_table(rows)
    main = _columns(table, _MAIN)
    return {
        "seeds": sorted({seed for seeds in table.seeds.values() for seed in seeds}),
        "measures": measures(table),
        "figure": figure_of_lines(table),
        "summary": _summary(table),
        "of_pairs": [_of_lines(table, table.lines, main, name) for name in PAIR_TITLES],
        "of_known": [_of_lines(table, table.known(), main, name) for name in KNOWN_TITLES],
        "kinds": _of_lines(table, table.lines, _kinds(table), "auroc"),
        "ablation": _of_lines(table, table.lines, _with_ours(table, "ablation"), "auroc"),
        "ablation_brier": _of_lines(table, table.lines, _with_ours(table, "ablation"), "brier_ood"),
        "candidates": _of_lines(table, table.lines, _with_ours(table, "candidate"), "auroc"),
        "regret": regret(table),
        "chosen": table.chosen,
        "refused": table.refused,
        "receipts": receipts(latest_by(rows, ("dataset", "classifier", "method"))),
    }


def _columns(table: StudyTable, groups: Iterable[str]) -> list[Column]:
    return [column for group in groups for column in table.named(group)]


def _with_ours(table: StudyTable, group: str) -> list[Column]:
    return [column for column in table.columns if column.name == _OURS] + table.named(group)


def _kinds(table: StudyTable) -> list[Column]:
    """Our default by every kind of its uncertainty."""
    return [column for column in table.columns if column.name.partition(":")[0] == _OURS]


def _summary(table: StudyTable) -> Grid:
    rows = []
    for column in table.columns:
        of = summary(table, column.name)
        rows.append((column.title, tuple((show(of), False) for show in SUMMARY.values())))
    return Grid("All methods", tuple(SUMMARY), tuple(rows))


def _of_lines(
    table: StudyTable, lines: Sequence[Line], columns: Sequence[Column], metric: str
) -> Grid:
    """A metric of every line and method, the best of each line marked, and the means."""
    of_pair = metric in PAIR_TITLES
    rows = []
    for line in lines:
        values = np.array([table.value(line, column.name, metric) for column in columns])
        best = _best(values, metric)
        texts = (cell_text(table, line, column.name, metric) for column in columns)
        cells = tuple(zip(texts, (bool(v == best) for v in np.round(values, 3)), strict=True))
        title = str(line) if of_pair else f"{line.dataset}, {line.classifier}"
        rows.append((title, cells))
    rows.append(("mean, where all answered", _means(table, lines, columns, metric)))
    heading = {**PAIR_TITLES, **KNOWN_TITLES}[metric]
    return Grid(heading, tuple(column.title for column in columns), tuple(rows))


def _means(
    table: StudyTable, lines: Sequence[Line], columns: Sequence[Column], metric: str
) -> tuple[tuple[str, bool], ...]:
    found = [table.values(column.name, metric, lines) for column in columns]
    return tuple((number(v.mean()) if len(v) else "", False) for v in found)


def _best(values: np.ndarray, metric: str) -> float:
    there = np.round(values[~np.isnan(values)], 3)
    if not len(there):
        return np.nan
    return float(there.max() if metric in _HIGHER else there.min())
