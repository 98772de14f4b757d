"""Headline of a table: a few computed sentences."""

from __future__ import annotations

from collections.abc import Iterator

from .cells import Cell
from .findings import findings, ranked_above, with_number
from .formatting import duration, metric_list, printed, set_title, stable, stable_with_sd
from .table import BenchTable, Line

#: Metrics of which more is better, and `recall` of any class; of all others less is.
HIGHER = (
    "accuracy",
    "balanced_accuracy",
    "worst_recall",
    "errors_avoided_10",
    "auroc",
    "aupr",
    "aupr_in",
    "auroc_confidence",
    "error_auroc",
    "error_correlation",
)
_METHOD = "dip-edl"


def headline(table: BenchTable) -> list[str]:
    """Return a few sentences on the result; empty if no density-informed method was run.

    Beside the paper it is about DIP-EDL, without the paper's numbers about our default.
    """
    if not table.beside_paper and (found := findings(table)):
        return found
    line = next((line for line in table.lines if line.name == _METHOD), None)
    return [] if line is None else list(_about(line, table))


def _about(line: Line, table: BenchTable) -> Iterator[str]:
    seeds = f"{len(line.seeds)} seed" + "s" * (len(line.seeds) != 1)
    accuracy, brier = line.cells["accuracy"], line.cells["brier_id"]
    yield (
        f"Over {seeds} {line.title} reaches an accuracy of {stable_with_sd(accuracy)}"
        f"{_beside(accuracy)} and a Brier score of {stable_with_sd(brier)}{_beside(brier)}."
    )
    yield from _met(line)
    if line.cost is not None:
        took = _cpu_time(line.cost.train_cpu_seconds)
        yield f"One seed trains in {took}, classifier and density together."
    yield from _better_ranked(line, table)


def _cpu_time(seconds: float) -> str:
    """Seconds over all cores, which hardly depend on the number of threads; whole minutes."""
    value, unit = duration(seconds).split()
    return f"{float(value):.0f} CPU minutes" if unit == "min" else f"{value} {unit} of CPU time"


def _beside(cell: Cell) -> str:
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


def met(name: str, cell: Cell) -> bool:
    """Return whether a cell is as good as the paper's, at the paper's number of decimals."""
    if cell.paper is None:
        raise ValueError("cell must hold the paper's number to be compared with")
    ours = round(cell.mean, cell.paper.decimals)
    return ours >= cell.paper.mean if is_higher_better(name) else ours <= cell.paper.mean


def is_higher_better(name: str) -> bool:
    """Direction of a metric such as ``auroc/kmnist``."""
    kind = name.partition("/")[0]
    return kind in HIGHER or kind.startswith("recall_")


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
