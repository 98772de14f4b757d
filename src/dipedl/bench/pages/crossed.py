"""A crossed suite on one page: which measures were met, and a summary of each method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..spec.suite import load_suite
from ..tables.crossed.markdown import SUMMARY, number, verdict
from ..tables.crossed.measures import Measure, measures
from ..tables.crossed.pairs import Crossed, crossed, summary
from ..tables.formatting import grid
from ..tables.table import BenchTable

__all__ = ["measures_and_summary"]

_SHOWN = ("lines", "AUROC", "worst line", "OOD Brier, share of the bare", "ID Brier, cost")
_DESIGN = {True: "AUROC, pairs of the design", False: "AUROC, other pairs"}


def measures_and_summary(table: BenchTable) -> Iterator[str]:
    """What was asked and what came out, and one table of all methods."""
    found = crossed(table)
    yield "\n".join(map(_verdict, measures(found)))
    yield _counted(found)
    yield _summary(found)


def _verdict(measure: Measure) -> str:
    return f"- **{verdict(measure)}**: {measure.statement}. Found: {measure.found}."


def _counted(found: Crossed) -> str:
    sets = {pair.dataset for pair in found.pairs}
    seeds = sorted({len(line.seeds) for line in found.table.lines if line.seeds})
    few = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    return (
        f"All methods over {len(found.pairs)} lines: {len(sets)} known data sets, "
        f"{len(found.known())} classifiers on them, {few} seeds:"
    )


def _summary(found: Crossed) -> str:
    datasets = load_suite(found.table.suite).datasets
    apart = [_with(found, {n for n, d in datasets.items() if d.designed_on is s}) for s in _DESIGN]
    rows = []
    for column in found.columns:
        if column.group in ("bare", "ours", "baseline"):
            of = summary(found, column.name)
            cells = [SUMMARY[name](of) for name in _SHOWN]
            rows.append([column.title, *cells, *(_auroc(part, column.name) for part in apart)])
    return grid(["method", *_SHOWN, *_DESIGN.values()], rows)


def _with(found: Crossed, datasets: set[str]) -> Crossed:
    return replace(found, pairs=tuple(pair for pair in found.pairs if pair.dataset in datasets))


def _auroc(found: Crossed, method: str) -> str:
    return number(summary(found, method).auroc if found.pairs else np.nan)
