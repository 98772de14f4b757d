"""The table as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from .cells import Cell
from .crossed.markdown import crossed_blocks
from .formatting import (
    cost_texts,
    difference,
    differences,
    escaped,
    grid,
    measured,
    metric_title,
    printed,
    set_heading,
)
from .table import BenchTable


def markdown(table: BenchTable) -> str:
    """All tables of a suite: by set, metrics beyond the paper's, costs, and why numbers differ.

    Those of a crossed suite are by data set, OOD set and classifier.
    """
    if table.crossed:
        return "\n\n".join(crossed_blocks(table)) + "\n"
    blocks = [f"## {table.suite}, profile {table.profile}"]
    blocks += [table.note] if table.note else []
    seeds = sorted({seed for line in table.lines for seed in line.seeds})
    blocks.append(f"Seeds {', '.join(map(str, seeds))}.")
    beyond = " (not in the paper)" if table.beside_paper else " (more)"
    for extra in (False, True):
        for split, names in table.columns(extra).items():
            if names:
                heading = f"### {set_heading(table, split)}{beyond if extra else ''}"
                blocks += [heading, _by_method(table, split, names)]
    blocks += ["### Cost of one seed", _costs(table)]
    why = [f"- {one.method}, {one.where}: {one.sentence}" for one in differences(table)]
    if why:
        blocks += ["### Where ours differs from the paper", "\n".join(why)]
    return "\n\n".join([*blocks, escaped(table.rule)]) + "\n"


def _by_method(table: BenchTable, split: str, names: Sequence[str]) -> str:
    heads = ["method", *(metric_title(name, classes=table.classes) for name in names)]
    rows = [
        [line.title, *(_cell(line.cells.get(n)) for n in names)] for line in table.lines_on(split)
    ]
    return grid(heads, rows)


def _cell(cell: Cell | None) -> str:
    if cell is None or cell.paper is None:
        return measured(cell)
    return f"{measured(cell)} (paper {printed(cell)}; {difference(cell)})"


def _costs(table: BenchTable) -> str:
    heads = ["method", "train", "score", "processor time", "peak memory", "passes", "parameters"]
    rows = [[line.title, *cost_texts(line.cost)] for line in table.lines if line.cost is not None]
    return grid(heads, rows)
