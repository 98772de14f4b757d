"""The tables of a suite in order, each with its heading: for the terminal and the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from .formatting import (
    cells_frame,
    column_title,
    differences,
    duration,
    escape,
    grid,
    group_sets,
    metric_number,
    metric_title,
    no_price,
    our_text,
    set_heading,
    set_title,
)
from .measures import Measure, measures
from .pairs import (
    KNOWN_TITLES,
    PAIR_TITLES,
    cost_frame,
    error_frame,
    interval_frame,
    pair_frame,
    problem_frame,
    regret_frame,
    summary_frame,
    uncovered_frame,
)
from .table import OF_OOD, BenchTable, Line

if TYPE_CHECKING:
    from pandas import DataFrame

Block = tuple[str, "DataFrame"]
#: Metrics of which ablations and candidates are shown line by line.
_OF_PARTS = ("auroc", "brier_ood")
#: Metrics of the protocol of OpenOOD v1.5: of known rows, and means over near and far sets.
_PROTOCOL, _RANKED = (
    ("accuracy", "ece", "nll"),
    (
        "auroc",
        "caught_5",
        "fpr95",
        "aupr",
        "aupr_in",
    ),
)
#: Metrics of the table that is printed first.
_RANKING = ("accuracy", "ece", "aurc", "auroc", "fpr95", "caught_5")


def markdown(table: BenchTable) -> str:
    """Return all tables of a suite as Markdown.

    Of one data set by set, metrics beyond the paper's, costs, and why numbers differ; of several
    the measures, and every metric by data set, OOD set and classifier.
    """
    lines = []
    if table.crossed:
        if judged := measures(table):
            lines += ["## What was asked", measure_list(judged)]
    else:
        lines += [f"## {table.suite}, profile {table.profile}", *filter(None, [table.note])]
        seeds = sorted({seed for line in table.lines for seed in line.seeds})
        lines.append(f"Seeds {', '.join(map(str, seeds))}.")
    lines += markdown_blocks(blocks(table), "##" if table.crossed else "###")
    if not table.crossed:
        if why := [f"- {method}, {where}: {text}" for method, where, text in differences(table)]:
            lines += ["### Where ours differs from the paper", "\n".join(why)]
        lines += [escape(table.rule), *filter(None, [no_price(table)])]
    return "\n\n".join(lines) + "\n"


def markdown_blocks(tables: Iterator[Block], mark: str) -> list[str]:
    """Return headings and tables of Markdown."""
    return [text for title, frame in tables for text in (f"{mark} {title}", grid(frame))]


def blocks(table: BenchTable) -> Iterator[Block]:
    """Yield heading and texts of each table of a suite."""
    yield from _by_pair(table) if table.crossed else _by_set(table)


def _by_set(table: BenchTable) -> Iterator[Block]:
    beyond = " (not in the paper)" if table.beside_paper else " (more)"
    for extra in (False, True):
        for split, names in table.columns(extra).items():
            if names:
                # the trivial detectors do not classify
                lines = table.lines + (table.trivial if split in table.ood else ())
                heading = set_heading(table, split) + (beyond if extra else "")
                if f"brier_ood/{split}" not in names:
                    yield heading, cells_frame(lines, names, classes=table.classes)
                    continue
                there = {name for line in lines for name in line.cells}
                paid = [name for name in ("brier_id", "price") if name in there]
                frame = cells_frame(lines, [*names, *paid])
                yield heading, frame.rename(columns={metric_title("brier_id"): "ID Brier"})
    if table.groups:
        means = [*_PROTOCOL, *(f"{kind}/{group}" for group in table.groups for kind in _RANKED)]
        heading = f"Means over OOD sets, as in OpenOOD v1.5: {group_sets(table)}"
        yield heading, cells_frame(table.lines, means, our_text, with_set=True, suite=table.suite)
    from pandas import DataFrame

    costs = {line.title: line.cost for line in table.lines if line.cost is not None}
    if not costs:  # of outputs that were imported
        return
    yield (
        "Cost of one seed",
        DataFrame(
            {
                "method": title,
                "train": duration(of["train_seconds"]),
                "score": duration(of["score_seconds"]),
                "processor time": duration(of["cpu_seconds"]),
                "peak memory": f"{of['peak_memory_mb']:,.0f} MiB",
                "passes": str(of["forward_passes"]),
                "parameters": f"{of['n_parameters']:,}" if of["n_parameters"] is not None else "",
            }
            for title, of in costs.items()
        ),
    )


def ranking(table: BenchTable, mine: Iterable[str] = ()) -> str:
    """Return the methods of a suite by AUROC, those of `mine` marked, to read in a terminal.

    Metrics of OOD sets are means over all sets. Below the title stand the seeds of most methods,
    and those of any others.
    """
    mine, lines = set(mine), []
    for line in table.lines:
        means = {name: line.cells[name].mean for name in _RANKING if name in line.cells}
        for kind in (k for k in _RANKING if k in OF_OOD and table.ood):
            of_sets = [line.cells.get(f"{kind}/{name}") for name in table.ood]
            if all(of_sets):
                means[kind] = fmean(cell.mean for cell in of_sets if cell)
        lines.append((line.name, means))
    lines.sort(key=lambda line: line[1].get("auroc", -1.0), reverse=True)
    rows = [("", "", "method", *map(column_title, _RANKING))]
    for place, (name, means) in enumerate(lines, start=1):
        mark = "→" if name in mine else ""
        texts = (metric_number(of, means.get(of)) for of in _RANKING)
        rows.append((mark, str(place), name, *texts))
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    title = f"{table.suite}, profile {table.profile}"
    if table.ood:
        sets = ", ".join(set_title(name, table.suite) for name in table.ood)
        title += f"; means over the OOD sets {sets}"
    aligned = (
        "  ".join(text.ljust(n) if i == 2 else text.rjust(n) for i, (text, n) in enumerate(row))
        for row in (zip(of, width, strict=True) for of in rows)
    )
    return "\n".join([title, _seeds_of(table.lines), "", *aligned]) + "\n"


def _seeds_of(lines: Sequence[Line]) -> str:
    """Return the seeds of most methods, and those of any others with their names."""
    names: dict[str, list[str]] = {}
    for line in lines:
        names.setdefault(", ".join(map(str, line.seeds)), []).append(line.name)
    most, *others = sorted(names, key=lambda seeds: len(names[seeds]), reverse=True)
    if not others:
        return f"Seeds {most}."
    rest = "; ".join(f"seeds {seeds} of {', '.join(names[seeds])}" for seeds in others)
    return f"Seeds {most}, but {rest}."


def _by_pair(table: BenchTable) -> Iterator[Block]:
    groups = table.methods["group"]
    main, parts = (
        list(groups.index[groups.isin(of)])
        for of in (["bare", "ours", "baseline"], ["ablation", "candidate"])
    )
    yield from interval_blocks(table)
    yield "All methods, over all lines", summary_frame(table)
    there = {name.partition("/")[0] for line in table.lines for name in line.cells}
    for metric, title in {**PAIR_TITLES, **KNOWN_TITLES}.items():
        if metric not in there:
            continue
        yield title, pair_frame(table, main, metric)
        if parts and metric in _OF_PARTS:
            yield f"{title} of parts", pair_frame(table, parts, metric)
    if len(regrets := regret_frame(table)):
        yield "Regret of the selection", regrets
    if refused := [line for line in table.lines if line.refused]:
        from pandas import DataFrame

        why = [[f"{ln.dataset}, {ln.classifier}", ln.name, ln.refused] for ln in refused]
        yield "Refused", DataFrame(why, columns=["", "method", "why"])
    yield "Cost, processor seconds", cost_frame(table)


def interval_blocks(table: BenchTable) -> Iterator[Block]:
    """Yield coverage of intervals by method and by line; nothing where no probability is known."""
    if len(by_method := interval_frame(table)):
        yield "Intervals: share of the true class probabilities that they hold", by_method
        yield (
            "Lines on which 95 % intervals, by default, hold less than .80 of a third of the rows",
            uncovered_frame(table),
        )
        yield (
            "Squared error of the class probabilities, and its correlation with epistemic",
            error_frame(table),
        )
        yield (
            "95 % intervals by line, of the evidence’s strength → by default",
            problem_frame(table),
        )


def sweep_blocks(what: str, lines: Sequence[Line]) -> Iterator[Block]:
    """Yield the cells of a sweep on each set on which it was scored."""
    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for line in lines for name in line.cells):
        names.setdefault(name.partition("/")[2], []).append(name)
    for split, of_set in names.items():
        if f"brier_ood/{split}" in of_set and "brier_id" in names.get("", []):
            of_set = [*of_set, "brier_id"]  # what a low OOD Brier score was bought with
        yield set_title(split), cells_frame(lines, of_set, head=what)


def measure_list(entries: Sequence[Measure]) -> str:
    """Return measures as a list, each miss named."""
    lines = ([one.line, *(f"  - misses: {miss}" for miss in one.misses)] for one in entries)
    return "\n".join(line for of_one in lines for line in of_one)
