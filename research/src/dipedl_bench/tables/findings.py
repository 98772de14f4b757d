"""Computed sentences on a table: what it shows, and where our default falls short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..results.scores import SHIFTED_PREFIX
from ..spec.captions import captions_of
from .formatting import (
    duration,
    metric_list,
    printed,
    set_title,
    stable,
    stable_with_sd,
    with_decimals_of,
)
from .table import BenchTable, Estimate, Line, is_higher_better

#: The default settings of DIPClassifier, and the paper's own.
DEFAULT, PAPER = "dip-edl-default", "dip-edl"
#: Most methods that a sentence names.
_NAMED = 3


def headline(table: BenchTable) -> list[str]:
    """Return a few sentences on the result; empty if no density-informed method was run.

    Beside the paper it is about DIP-EDL, without the paper's numbers about our default.
    """
    if not table.beside_paper and (found := findings(table)):
        return found
    line = _line(table, PAPER)
    return [] if line is None else list(_about(line, table))


def _about(line: Line, table: BenchTable) -> Iterator[str]:
    seeds = f"{len(line.seeds)} seed" + "s" * (len(line.seeds) != 1)
    accuracy, brier = line.cells["accuracy"], line.cells["brier_id"]
    yield (
        f"Over {seeds} {line.title} reaches an accuracy of {stable_with_sd(accuracy)}"
        f"{_paper_text(accuracy)} and a Brier score of {stable_with_sd(brier)}{_paper_text(brier)}."
    )
    yield from _met(line)
    if line.cost is not None:
        took = _cpu_time(line.cost["train_cpu_seconds"])
        yield f"One seed trains in {took}, classifier and density together."
    yield from _better_ranked(line, table)


def _cpu_time(seconds: float) -> str:
    """Seconds over all cores, which hardly depend on the number of threads; whole minutes."""
    value, unit = duration(seconds).split()
    return f"{float(value):.0f} CPU minutes" if unit == "min" else f"{value} {unit} of CPU time"


def _paper_text(cell: Estimate) -> str:
    return f" (paper: {printed(cell)})" if cell.paper else ""


def _met(line: Line) -> Iterator[str]:
    cells = {name: cell for name, cell in line.cells.items() if cell.paper}
    missed = [name for name, cell in cells.items() if not met(name, cell)]
    if cells and not missed:
        yield f"It meets or beats the paper's DIP-EDL in all {len(cells)} metrics that it has."
    elif cells:
        yield (
            f"It meets or beats the paper's DIP-EDL in {len(cells) - len(missed)} of {len(cells)} "
            f"metrics that it has; it falls short here: {metric_list(missed)}."
        )


def met(name: str, cell: Estimate) -> bool:
    """Return whether a cell is as good as the paper's, at the paper's number of decimals."""
    if cell.paper is None:
        raise ValueError("cell must hold the paper's number to be compared with")
    ours = round(cell.mean, cell.paper.decimals)
    return ours >= cell.paper.mean if is_higher_better(name) else ours <= cell.paper.mean


def _better_ranked(line: Line, table: BenchTable) -> Iterator[str]:
    """How many methods rank a set better, and the best of them, for each such set."""
    for ood in table.ood:
        name = f"auroc/{ood}"
        above = ranked_above(table, line, name)
        if above:
            ours, best = stable(line.cells[name]), with_number(above[0], name)
            yield (
                f"On {set_title(ood, table.suite)} its AUROC of {ours} is below that of "
                f"{len(above)} other methods; the best is {best}."
            )


def trivial_sentences(table: BenchTable) -> list[str]:
    """Return the sentence on the best detector without a model on each set."""
    said = []
    for ood in table.ood if table.trivial else ():
        name = f"auroc/{ood}"
        best = max(table.trivial, key=lambda line: line.cells[name].mean)
        value, title = stable(best.cells[name]), set_title(ood, table.suite)
        said.append(f"{title}: “{best.title}” has an AUROC of {value}.")
    return said


def findings(table: BenchTable) -> list[str]:
    """Compare the default with all others, a sentence or two for each set; for one profile."""
    line = _line(table, DEFAULT)
    if line is None:
        return []
    said = [_ranked(table, line, ood) for ood in table.ood if f"auroc/{ood}" in line.cells]
    said.append(_known(table, line))
    return [*said, *(_moved(table, line, name) for name in table.shifted)]


def shortfalls(table: BenchTable) -> list[str]:
    """Where the default misses what it was meant to reach, with the numbers; for one profile."""
    line = _line(table, DEFAULT)
    if line is None:
        return []
    return [*_below(table, line), *_beyond(table, line), *_lower(table, line)]


def share_interval(cell: Estimate | None) -> str:
    """A cell with its interval over the rows of the set, as ``0.93 (0.88 to 0.96)``."""
    if cell is None:
        return ""
    if cell.over_images is None:
        return stable(cell)
    low, high = (with_decimals_of(end, cell) for end in cell.over_images)
    return f"{stable(cell)} ({low} to {high})"


def ranked_above(table: BenchTable, line: Line, name: str) -> list[Line]:
    """Lines whose cell of a metric is higher in the fourth decimal, the highest first."""
    ours = round(line.cells[name].mean, 4)
    above = [
        other
        for other in table.lines
        if other.name != line.name
        and name in other.cells
        and round(other.cells[name].mean, 4) > ours
    ]
    return sorted(above, key=lambda other: -other.cells[name].mean)


def with_number(line: Line, name: str) -> str:
    """Title of a line and its number, as ``EDL (0.95)``."""
    return f"{line.title} ({stable(line.cells[name])})"


def _line(table: BenchTable, name: str) -> Line | None:
    return next((line for line in table.lines if line.name == name), None)


def _ranked(table: BenchTable, line: Line, ood: str) -> str:
    name, title = f"auroc/{ood}", set_title(ood, table.suite)
    ours = line.cells[name]
    said = f"{title}: {line.title} has an AUROC of {stable_with_sd(ours)}"
    preset = _line(table, PAPER)
    if preset is not None and name in preset.cells:
        said += f"; {preset.title}: {stable_with_sd(preset.cells[name])}"
    above = ranked_above(table, line, name)
    single = [with_number(other, name) for other in above if _passes(other) == 1]
    several = [with_number(other, name) for other in above if _passes(other) > 1]
    said += (
        f". Of the methods with a single pass these are above: {_first(single)}."
        if single
        else ". No other method with a single pass ranks it better."
    )
    return said + (f" With several passes: {_first(several)}." if several else "")


def _known(table: BenchTable, line: Line) -> str:
    name = "brier_id"
    ours, best = line.cells[name], _best_brier(table)
    said = (
        f"{set_title('', table.suite)}: {line.title} has an accuracy of "
        f"{stable_with_sd(line.cells['accuracy'])} and a Brier score of "
        f"{stable_with_sd(ours)}"
    )
    if best.name == line.name:
        return f"{said}, the best of all."
    said += f"; the best Brier is {stable_with_sd(best.cells[name])} ({best.title})"
    if len(ours.values) < 2:
        return f"{said}; a single seed has no standard deviation to compare them by."
    within = "within" if _within(ours, best.cells[name]) else "not within"
    return f"{said}: {within} one standard deviation of it."


def _moved(table: BenchTable, line: Line, name: str) -> str:
    cells, n = line.cells, table.n[f"{SHIFTED_PREFIX}{name}"]
    said = (
        f"{set_title(name, table.suite)} ({n:,}): {line.title} has a balanced accuracy of "
        f"{share_interval(cells.get(f'balanced_accuracy/{name}'))}"
    )
    avoided = cells.get(f"errors_avoided_10/{name}")
    if avoided is not None:
        said += (
            "; leaving the least trusted tenth unanswered avoids a share of "
            f"{share_interval(avoided)} of its errors"
        )
    return f"{said}. In brackets 95 % over the {captions_of(table.suite).rows}."


def _below(table: BenchTable, line: Line) -> Iterator[str]:
    sets = []
    for ood in table.ood:
        name = f"auroc/{ood}"
        above = [other for other in ranked_above(table, line, name) if _passes(other) == 1]
        if above:
            best, ours = above[0].cells[name], line.cells[name]
            gap = with_decimals_of(best.mean - ours.mean, best, ours)
            sets.append(f"{set_title(ood, table.suite)}: {len(above)} rank better, by up to {gap}")
    if sets:
        told = "the default is not the best method with a single pass"
        yield f"{table.profile}: {told}. {'; '.join(sets)}."


def _beyond(table: BenchTable, line: Line) -> Iterator[str]:
    best = _best_brier(table)
    ours, theirs = line.cells["brier_id"], best.cells["brier_id"]
    if not _within(ours, theirs):
        sd = with_decimals_of(theirs.sd, theirs)
        spread = f", whose standard deviation is {sd}" if theirs.sd else ""
        above = with_decimals_of(ours.mean - theirs.mean, ours, theirs)
        yield f"{table.profile}: the default's Brier is {above} above that of {best.title}{spread}."


def _lower(table: BenchTable, line: Line) -> Iterator[str]:
    for name in table.shifted:
        there = line.cells.get(f"balanced_accuracy/{name}")
        here = line.cells.get("balanced_accuracy")
        if there is not None and here is not None and there.mean < here.mean:
            yield (
                f"{table.profile}, {set_title(name, table.suite)}: the default's balanced accuracy "
                f"is {stable(there)}, that on the test set {stable(here)}."
            )


def _best_brier(table: BenchTable) -> Line:
    return min(table.lines, key=lambda line: line.cells["brier_id"].mean)


def _within(ours: Estimate, best: Estimate) -> bool:
    return ours.mean - best.mean <= best.sd


def _passes(line: Line) -> int:
    return 1 if line.cost is None else int(line.cost["forward_passes"])


def _first(named: Sequence[str]) -> str:
    """At most three, and how many more."""
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more
