"""The table of a suite as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    signed,
)
from .measures import Measure, measures
from .pairs import (
    INTERVALS,
    KNOWN_TITLES,
    PAIR_TITLES,
    SUMMARY,
    interval_rows,
    known,
    pair_rows,
    pair_title,
    problem_rows,
    regret,
    summary_rows,
    values,
)
from .table import BenchTable, Estimate

#: Metrics of which ablations and candidates are shown line by line.
_OF_PARTS = ("auroc", "brier_ood")


def markdown(table: BenchTable) -> str:
    """All tables of a suite: by set, metrics beyond the paper's, costs, and why numbers differ.

    Of several data sets the measures, and every metric by data set, OOD set and classifier.
    """
    blocks = _by_pair(table) if table.crossed else _by_set(table)
    return "\n\n".join(blocks) + "\n"


def _by_set(table: BenchTable) -> list[str]:
    blocks = [f"## {table.suite}, profile {table.profile}"]
    blocks += [table.note] if table.note else []
    seeds = sorted({seed for line in table.lines for seed in line.seeds})
    blocks.append(f"Seeds {', '.join(map(str, seeds))}.")
    beyond = " (not in the paper)" if table.beside_paper else " (more)"
    for extra in (False, True):
        for split, names in table.columns(extra).items():
            if names:
                blocks.append(f"### {set_heading(table, split)}{beyond if extra else ''}")
                heads = (metric_title(name, classes=table.classes) for name in names)
                rows = [
                    [line.title, *(_cell(line.cells.get(n)) for n in names)]
                    for line in table.lines_on(split)
                ]
                blocks.append(grid(["method", *heads], rows))
    heads_ = ["method", "train", "score", "processor time", "peak memory", "passes", "parameters"]
    costs = [[line.title, *cost_texts(line.cost)] for line in table.lines if line.cost is not None]
    blocks += ["### Cost of one seed", grid(heads_, costs)]
    if why := [f"- {method}, {where}: {said}" for method, where, said in differences(table)]:
        blocks += ["### Where ours differs from the paper", "\n".join(why)]
    return [*blocks, escaped(table.rule)]


def _cell(cell: Estimate | None) -> str:
    if cell is None or cell.paper is None:
        return measured(cell)
    return f"{measured(cell)} (paper {printed(cell)}; {difference(cell)})"


def _by_pair(table: BenchTable) -> list[str]:
    def of_metric(methods: Sequence[str], metric: str) -> str:
        titles = table.methods["title"][list(methods)]
        return grid(["", *titles], pair_rows(table, methods, metric))

    groups = table.methods["group"]
    main, rest = (
        list(groups.index[groups.isin(of)])
        for of in (["bare", "ours", "baseline"], ["ablation", "candidate"])
    )
    blocks = []
    if judged := measures(table):
        blocks += ["## What was asked", measure_list(judged)]
    blocks += interval_blocks(table)
    rows = [
        [title, group, *texts]
        for group, (title, *texts) in zip(groups, summary_rows(table), strict=True)
    ]
    blocks += ["## All methods, over all lines", grid(["method", "group", *SUMMARY], rows)]
    for metric, title in PAIR_TITLES.items():
        blocks += [f"## {title}", of_metric(main, metric)]
        if rest and metric in _OF_PARTS:
            blocks += [f"### {title} of parts", of_metric(rest, metric)]
    for metric, title in KNOWN_TITLES.items():
        blocks += [f"## {title}", of_metric(main, metric)]
    blocks += ["## Regret of the selection", _regret(table)]
    if refused := [line for line in table.lines if line.refused]:
        why = [[f"{ln.dataset}, {ln.classifier}", ln.name, ln.refused] for ln in refused]
        blocks += ["## Refused", grid(["", "method", "why"], why)]
    return [*blocks, "## Cost, processor seconds", _costs(table)]


def interval_blocks(table: BenchTable, mark: str = "##") -> list[str]:
    """Write coverage of intervals, by method and by line; nothing where no probability is known."""
    rows = interval_rows(table)
    if not rows:
        return []
    return [
        f"{mark} Intervals: share of the true class probabilities that they hold",
        grid(["method", *INTERVALS], rows),
        f"{mark} 95 % intervals by line, without a spread → with",
        grid(*problem_rows(table)),
    ]


def measure_list(found: Sequence[Measure]) -> str:
    """Measures as a list, each miss named."""
    lines = ([one.line, *(f"  - misses: {miss}" for miss in one.misses)] for one in found)
    return "\n".join(line for of_one in lines for line in of_one)


def selected(table: BenchTable, pair: tuple[str, str, str]) -> str:
    """Return the choices of our selection on a pair, each once."""
    line = table.by_place[pair[0], pair[2], table.ours]
    return ", ".join(dict.fromkeys(line.selected))


def _regret(table: BenchTable) -> str:
    names = table.in_groups("candidate")
    rows = []
    for pair, value in regret(table, table.pairs).items():
        of_pair = [values(table.pairs, "auroc", name)[pair] for name in names]
        best = names[int(np.nanargmax(of_pair))]
        rows.append([pair_title(pair), best, selected(table, pair), signed(value)])
    if not rows:
        return "The candidates were not run."
    return grid(["", "best candidate, by OOD labels", "chosen", "regret"], rows)


def _costs(table: BenchTable) -> str:
    rows = []
    for name, title in table.methods["title"].items():
        lines = [
            table.by_place.get((data, classifier, str(name)))
            for data, _, classifier in known(table.pairs).index
        ]
        costs = [line.cost for line in lines if line is not None and line.cost]
        if costs and ":" not in str(name):
            sums = [sum(of[step] for of in costs) for step in ("train", "classifier", "predict")]
            rows.append([title, str(len(costs)), *(f"{s:.2f}" for s in sums)])
    heads = ["method", "classifiers", "fit", "of that, fits of the classifier", "predict"]
    return grid(heads, rows)
