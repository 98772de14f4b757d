"""Computed sentences on a table: what it shows, and where our default falls short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..results.scores import SHIFTED_PREFIX
from ..spec.captions import captions_of
from .formatting import (
    metric_list,
    paper_text,
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
    if not table.beside_paper and (sentences := findings(table)):
        return sentences
    line = _line(table, PAPER)
    return [] if line is None else list(_beside_paper(line, table))


def _beside_paper(line: Line, table: BenchTable) -> Iterator[str]:
    def text(cell: Estimate) -> str:
        return stable_with_sd(cell) + (f" (paper: {paper_text(cell)})" if cell.paper else "")

    accuracy, brier = (text(line.cells[name]) for name in ("accuracy", "brier_id"))
    yield (
        f"Over {len(line.seeds)} seed{'s' * (len(line.seeds) != 1)} {line.title} reaches an "
        f"accuracy of {accuracy} and a Brier score of {brier}."
    )
    cells = {name: cell for name, cell in line.cells.items() if cell.paper}
    missed = [name for name, cell in cells.items() if not meets_paper(name, cell)]
    meets = f"{line.title} meets or beats the paper's DIP-EDL in"
    if missed:
        yield (
            f"{meets} {len(cells) - len(missed)} of {len(cells)} metrics that it has; it falls "
            f"short here: {metric_list(missed)}."
        )
    elif cells:
        yield f"{meets} all {len(cells)} metrics that it has."
    for ood in table.ood:
        name = f"auroc/{ood}"
        if above := lines_above(table, line, name):
            yield (
                f"On {set_title(ood, table.suite)} its AUROC of {stable(line.cells[name])} is "
                f"below that of {len(above)} other methods; the best is "
                f"{_with_number(above[0], name)}."
            )


def meets_paper(name: str, cell: Estimate) -> bool:
    """Return whether a cell is as good as the paper's, at the paper's number of decimals."""
    if cell.paper is None:
        raise ValueError("cell must hold the paper's number to be compared with")
    ours = round(cell.mean, cell.paper.decimals)
    return ours >= cell.paper.mean if is_higher_better(name) else ours <= cell.paper.mean


def trivial_sentences(table: BenchTable) -> list[str]:
    """Return the sentence on the best detector without a model on each set."""
    sentences = []
    for ood in table.ood if table.trivial else ():
        best = max(table.trivial, key=lambda line: line.cells[f"auroc/{ood}"].mean)
        value, title = stable(best.cells[f"auroc/{ood}"]), set_title(ood, table.suite)
        sentences.append(f"{title}: “{best.title}” has an AUROC of {value}.")
    return sentences


def findings(table: BenchTable) -> list[str]:
    """Compare the default with all others, a sentence or two for each set; for one profile."""
    line = _line(table, DEFAULT)
    if line is None:
        return []
    texts = [_rank_sentence(table, line, ood) for ood in table.ood if f"auroc/{ood}" in line.cells]
    texts.append(_known_sentence(table, line))
    return [*texts, *(_shifted_sentence(table, line, name) for name in table.shifted)]


def _rank_sentence(table: BenchTable, line: Line, ood: str) -> str:
    name = f"auroc/{ood}"
    text = f"{set_title(ood, table.suite)}: {line.title} has an AUROC of "
    text += stable_with_sd(line.cells[name])
    preset = _line(table, PAPER)
    if preset is not None and name in preset.cells:
        text += f"; {preset.title}: {stable_with_sd(preset.cells[name])}"
    above = lines_above(table, line, name)
    single = [_with_number(other, name) for other in above if other.passes == 1]
    several = [_with_number(other, name) for other in above if other.passes > 1]
    text += (
        f". Of the methods with a single pass these have a higher mean: {_first_names(single)}."
        if single
        else ". No other method with a single pass ranks it better."
    )
    return text + (f" With several passes: {_first_names(several)}." if several else "")


def _known_sentence(table: BenchTable, line: Line) -> str:
    ours, best = line.cells["brier_id"], _best_brier(table)
    text = (
        f"{set_title('', table.suite)}: {line.title} has an accuracy of "
        f"{stable_with_sd(line.cells['accuracy'])} and a Brier score of {stable_with_sd(ours)}"
    )
    if best.name == line.name:
        return f"{text}, the best of all."
    text += f"; the best Brier is {stable_with_sd(best.cells['brier_id'])} ({best.title})"
    if len(ours.values) < 2:
        return f"{text}; a single seed has no standard deviation to compare them by."
    within = "within" if _within(ours, best.cells["brier_id"]) else "not within"
    return f"{text}: {within} one standard deviation of it."


def _shifted_sentence(table: BenchTable, line: Line, name: str) -> str:
    def share(cell: Estimate | None) -> str:
        """Write a share with its interval over the rows of the set, as ``0.93 (0.88 to 0.96)``."""
        if cell is None or cell.ci95_images is None:
            return "" if cell is None else stable(cell)
        return "{} ({} to {})".format(
            stable(cell), *(with_decimals_of(end, cell) for end in cell.ci95_images)
        )

    n, kinds = table.n[f"{SHIFTED_PREFIX}{name}"], ("balanced_accuracy", "errors_avoided_10")
    cells = balanced, avoided = [line.cells.get(f"{kind}/{name}") for kind in kinds]
    text = (
        f"{set_title(name, table.suite)} ({n:,}): {line.title} has a balanced accuracy of "
        f"{share(balanced)}"
    )
    if avoided is not None:
        text += (
            "; leaving the least trusted tenth unanswered avoids a share of "
            f"{share(avoided)} of its errors"
        )
    if any(cell is not None and cell.ci95_images for cell in cells):
        text += f". In brackets 95 % over the {captions_of(table.suite).rows}"
    return f"{text}."


def shortfalls(table: BenchTable) -> list[str]:
    """Return the goals that the default misses, with the numbers; for one profile."""
    line = _line(table, DEFAULT)
    return [] if line is None else [f"{table.profile}{text}" for text in _short(table, line)]


def _short(table: BenchTable, line: Line) -> Iterator[str]:
    sets = []
    for ood in table.ood:
        name = f"auroc/{ood}"
        above = [other for other in lines_above(table, line, name) if other.passes == 1]
        if above:
            best, ours = above[0].cells[name], line.cells[name]
            gap = with_decimals_of(best.mean - ours.mean, best, ours)
            sets.append(f"{set_title(ood, table.suite)}: {len(above)} rank better, by up to {gap}")
    if sets:
        yield f": the default is not the best method with a single pass. {'; '.join(sets)}."
    best_line = _best_brier(table)
    ours, theirs = line.cells["brier_id"], best_line.cells["brier_id"]
    if not _within(ours, theirs):
        sd = with_decimals_of(theirs.sd, theirs)
        spread = f", whose standard deviation is {sd}" if theirs.sd else ""
        above_by = with_decimals_of(ours.mean - theirs.mean, ours, theirs)
        yield f": the default's Brier is {above_by} above that of {best_line.title}{spread}."
    for name in table.shifted:
        there = line.cells.get(f"balanced_accuracy/{name}")
        here = line.cells.get("balanced_accuracy")
        if there is not None and here is not None and there.mean < here.mean:
            yield (
                f", {set_title(name, table.suite)}: the default's balanced accuracy is "
                f"{stable(there)}, that on the test set {stable(here)}."
            )


def lines_above(table: BenchTable, line: Line, name: str) -> list[Line]:
    """Return lines whose cell of a metric is higher in the fourth decimal, the highest first."""
    ours = round(line.cells[name].mean, 4)
    there = (other for other in table.lines if other.name != line.name and name in other.cells)
    above = [other for other in there if round(other.cells[name].mean, 4) > ours]
    return sorted(above, key=lambda other: -other.cells[name].mean)


def _with_number(line: Line, name: str) -> str:
    """Title of a line and its number, as ``EDL (0.95)``."""
    return f"{line.title} ({stable(line.cells[name])})"


def _line(table: BenchTable, name: str) -> Line | None:
    return next((line for line in table.lines if line.name == name), None)


def _best_brier(table: BenchTable) -> Line:
    return min(table.lines, key=lambda line: line.cells["brier_id"].mean)


def _within(ours: Estimate, best: Estimate) -> bool:
    return ours.mean - best.mean <= best.sd


def _first_names(named: Sequence[str]) -> str:
    """At most three, and how many more."""
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return ", ".join(named[:_NAMED]) + more
