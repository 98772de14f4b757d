"""Tables of the benchmark as text: never wider than the terminal, nothing cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..tables.formatting import (
    cost_texts,
    difference,
    differences,
    measured,
    metric_title,
    number,
    printed,
    set_heading,
)
from ..tables.measures import Measure, measures
from ..tables.pairs import INTERVALS, SUMMARY, cell_text, interval_rows, pair_title, summary_rows
from ..tables.table import BenchTable, Cell, Line

_LABEL = 26
#: Space between columns: two blanks, and the blank that stands for a rule.
_GAP = 3


@dataclass(frozen=True)
class Column:
    """Head and cells of a column; a cell may hold several lines."""

    head: str
    cells: list[str]

    @property
    def inner(self) -> int:
        """Characters of the widest line."""
        lines = [line for text in (self.head, *self.cells) for line in text.split("\n")]
        return max(map(len, lines))

    @property
    def width(self) -> int:
        """The same with the space to the next column."""
        return self.inner + _GAP

    def shown(self, text: str) -> Text:
        """Text of a cell or the head, its lines at the right edge; rich drops blanks at an end."""
        if not self.head:
            return Text(text)
        return Text("\n".join(line.rjust(self.inner) for line in text.split("\n")))


def print_bench_table(
    console: Console, table: BenchTable, *, intervals: bool = False, each: bool = False
) -> None:
    """All tables of a suite: by set, metrics beyond the paper's, costs, and why numbers differ.

    Of a crossed suite its measures and the summary of every method; with `each` every miss and the
    AUROC of every pair too.
    """
    if table.crossed:
        _print_summary(console, table, each)
        if each:
            _print_pairs(console, table)
        return
    if table.note:
        console.print()
        console.print(Text(table.note))
    for split, names in table.columns().items():
        _title(console, set_heading(table, split))
        lines = table.lines_on(split)
        print_lines(console, lines, names, intervals, classes=table.classes)
    _print_extra(console, table)
    _print_costs(console, table)
    _print_notes(console, table)


def _print_summary(console: Console, table: BenchTable, each: bool) -> None:
    for measure in measures(table):
        _print_measure(console, measure, each)
    if rows := interval_rows(table):
        _title(console, "True class probabilities in their intervals")
        _print_rows(console, INTERVALS, rows)
    _title(console, "All methods, over all lines")
    heads = [head for head in SUMMARY if head != "worst at"]
    _print_rows(console, heads, summary_rows(table, heads))


def _print_rows(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows of texts, titles of methods in front; heads and long cells in several lines."""
    titles, *cells = zip(*rows, strict=True)
    columns = [
        Column(head.replace(" ", "\n"), [text.replace(" (", "\n(") for text in texts])
        for head, texts in zip(heads, cells, strict=True)
    ]
    print_columns(console, "method", titles, columns)


def _print_pairs(console: Console, table: BenchTable) -> None:
    _title(console, "AUROC")
    pairs = list(table.pairs.index)
    columns = [
        Column(
            title.replace(" ", "\n"),
            [cell_text(table, pair, str(name), "auroc") for pair in pairs],
        )
        for name, title in table.methods["title"].items()
        if ":" not in str(name)
    ]
    print_columns(console, "data / OOD set, classifier", list(map(pair_title, pairs)), columns)


def _print_measure(console: Console, measure: Measure, each: bool) -> None:
    style = {True: "green", False: "red", None: "dim"}[measure.met]
    console.print(Text(f"{measure.verdict}: ", style=style) + Text(measure.statement))
    for line in (measure.found, *(measure.misses if each else ())):
        console.print(Padding(Text(line), (0, 0, 0, 4)))


def print_lines(
    console: Console,
    lines: Sequence[Line],
    names: Sequence[str],
    intervals: bool = False,
    label: str = "method",
    classes: Sequence[str] = (),
) -> None:
    """Lines of a table or of a sweep: ours, the paper's and the difference."""
    heads = [metric_title(name, classes=classes) for name in names]
    columns = list(_beside(lines, names, heads))
    if intervals or sum(c.width for c in columns) > console.width - _front(label, _titles(lines)):
        columns = list(_below(lines, names, heads, intervals))
    print_columns(console, label, _titles(lines), columns)


def _beside(lines: Sequence[Line], names: Sequence[str], heads: Sequence[str]) -> Iterator[Column]:
    for name, head in zip(names, heads, strict=True):
        cells = [line.cells.get(name) for line in lines]
        yield Column(head, _aligned([measured(cell) for cell in cells]))
        if any(cell and cell.paper for cell in cells):
            yield Column("paper", [printed(cell) for cell in cells])
            yield Column("diff.", [difference(cell) for cell in cells])


def _below(
    lines: Sequence[Line], names: Sequence[str], heads: Sequence[str], intervals: bool
) -> Iterator[Column]:
    kinds = [_kinds([line.cells.get(name) for name in names], intervals) for line in lines]
    if any(len(kind) > 1 for kind in kinds):
        yield Column("", ["\n".join(kind) for kind in kinds])
    for name, head in zip(names, heads, strict=True):
        stacks = [
            "\n".join(_SHOWN[kind](line.cells.get(name)) for kind in of_line)
            for line, of_line in zip(lines, kinds, strict=True)
        ]
        yield Column(head, _aligned(stacks))


def _kinds(cells: Sequence[Cell | None], intervals: bool) -> list[str]:
    """Return the texts below one another in the cells of a line."""
    there = [cell for cell in cells if cell is not None]
    kinds = ["ours"]
    if intervals and any(cell.over_seeds for cell in there):
        kinds.append("95 % seeds")
    if intervals and any(cell.over_images for cell in there):
        kinds.append("95 % rows")
    return [*kinds, "paper", "difference"] if any(cell.paper for cell in there) else kinds


def _aligned(cells: Sequence[str]) -> list[str]:
    """Room for the mark at the end of every line if one has it, so that decimals stand in line."""
    if not any("*" in cell for cell in cells):
        return list(cells)
    return [
        "\n".join(line if line.endswith("*") else f"{line}  " for line in cell.split("\n"))
        for cell in cells
    ]


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{number(ends[0])}–{number(ends[1])}"


#: Kind of a line in a cell -> its text.
_SHOWN: dict[str, Callable[[Cell | None], str]] = {
    "ours": measured,
    "95 % seeds": lambda cell: _interval(cell.over_seeds if cell else None),
    "95 % rows": lambda cell: _interval(cell.over_images if cell else None),
    "paper": printed,
    "difference": difference,
}


def _print_extra(console: Console, table: BenchTable) -> None:
    _title(console, f"{'Not in the paper' if table.beside_paper else 'More'}; means over seeds")
    lines = [*table.lines, *table.trivial]
    columns = [
        Column(_stacked_head(name, table), [_mean(line.cells.get(name)) for line in lines])
        for names in table.columns(extra=True).values()
        for name in names
    ]
    print_columns(console, "method", _titles(lines), columns)


def _stacked_head(name: str, table: BenchTable) -> str:
    """Metric and set below one another."""
    title = metric_title(name, with_set=True, suite=table.suite, classes=table.classes)
    return title.replace(", ", "\n").replace(" (", "\n(")


def _mean(cell: Cell | None) -> str:
    return number(cell.mean) if cell else ""


def _print_costs(console: Console, table: BenchTable) -> None:
    _title(console, "Cost of one seed, as if no part were shared")
    lines = [line for line in table.lines if line.cost is not None]
    texts = [cost_texts(line.cost, "0") for line in lines if line.cost is not None]
    heads = ("train", "score", "processor", "memory", "passes", "parameters")
    columns = [Column(head, [cells[i] for cells in texts]) for i, head in enumerate(heads)]
    columns.append(Column("seeds", [str(len(line.seeds)) for line in lines]))
    print_columns(console, "method", _titles(lines), columns)


def _print_notes(console: Console, table: BenchTable) -> None:
    found = list(differences(table))
    if found:
        _title(console, "Where ours differs from the paper")
    for method, where, sentence in found:
        note = f"* {method}, {where}: {sentence}"
        console.print(Padding(Text(note), (0, 0, 0, 2)))
    console.print()
    console.print(Text(table.rule))


def print_columns(
    console: Console, label: str, titles: Sequence[str], columns: Sequence[Column]
) -> None:
    """As many tables as the width needs, each with the titles of the lines in front."""
    for chunk in _chunks(columns, console.width - _front(label, titles)):
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(label, max_width=_LABEL, overflow="fold")
        for column in chunk:
            table.add_column(column.shown(column.head), no_wrap=True)
        for i, title in enumerate(titles):
            table.add_row(Text(title), *(column.shown(column.cells[i]) for column in chunk))
        console.print(table)
        console.print()


def _front(label: str, titles: Sequence[str]) -> int:
    """Width of the labels."""
    return min(max([len(label), *map(len, titles)]), _LABEL) + _GAP


def _titles(lines: Sequence[Line]) -> list[str]:
    return [line.title for line in lines]


def _chunks(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Columns in groups that fit; a column of kinds in front is repeated in each."""
    fixed = [column for column in columns if not column.head]
    room = width - sum(column.width for column in fixed)
    chunk: list[Column] = []
    for column in columns:
        if column in fixed:
            continue
        if chunk and sum(c.width for c in chunk) + column.width > room:
            yield [*fixed, *chunk]
            chunk = []
        chunk.append(column)
    yield [*fixed, *chunk]


def _title(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print()
