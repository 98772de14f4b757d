"""A suite of many data sets on one page: which measures were met, and a summary of each method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..honest.markdown import SUMMARY, number, verdict
from ..honest.measures import Measure, measures
from ..honest.study import Study, load_study
from ..honest.table import StudyTable, study_table, summary
from ..tables.markdown import grid

__all__ = ["measures_and_summary"]

_SHOWN = ("lines", "AUROC", "worst line", "OOD Brier, share of the bare", "ID Brier, cost")
_DESIGN = {True: "AUROC, pairs of the design", False: "AUROC, other pairs"}


def measures_and_summary(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was asked and what came out, and one table of all methods.

    Parameters
    ----------
    rows : sequence of dict
        Of one profile, see `dipedl.bench.load_rows`.
    """
    table = study_table(rows)
    yield "\n".join(map(_verdict, measures(table)))
    yield f"{_counted(table)}:"
    yield _summary(table, load_study(table.study))


def _verdict(measure: Measure) -> str:
    return f"- **{verdict(measure)}**: {measure.statement}. Found: {measure.found}."


def _counted(table: StudyTable) -> str:
    sets = {line.dataset for line in table.lines}
    seeds = sorted({len(of) for of in table.seeds.values()})
    few = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    return (
        f"All methods over {len(table.lines)} lines: {len(sets)} known data sets, "
        f"{len(table.known())} classifiers on them, {few} seeds"
    )


def _summary(table: StudyTable, study: Study) -> str:
    rows = []
    for column in table.columns:
        if column.group in ("bare", "ours", "baseline"):
            of = summary(table, column.name)
            apart = [_auroc(table, study, column.name, seen) for seen in _DESIGN]
            rows.append([column.title, *(SUMMARY[name](of) for name in _SHOWN), *apart])
    return grid(["method", *_SHOWN, *_DESIGN.values()], rows)


def _auroc(table: StudyTable, study: Study, method: str, designed_on: bool) -> str:
    """Mean over the pairs that the default was designed with, or over the others."""
    named = {name for name, entry in study.datasets.items() if entry.designed_on is designed_on}
    lines = tuple(line for line in table.lines if line.dataset in named)
    return number(summary(replace(table, lines=lines), method).auroc if lines else np.nan)
