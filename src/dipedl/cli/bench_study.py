"""What the commands of ``dipedl bench`` do where they are given a study, and not a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from .bench_tables import Column, print_columns

if TYPE_CHECKING:
    from ..bench.honest.measures import Measure
    from ..bench.honest.table import StudyTable
    from ..bench.results.store import Store

__all__ = [
    "is_study",
    "print_study",
    "print_study_result",
    "study_of_store",
    "study_table_of",
    "study_titles",
]


def is_study(name: str) -> bool:
    """Whether a name, or the TOML file at a path, is a study; ValueError if it is nothing."""
    from ..bench.honest.study import NAMES
    from ..bench.honest.study import is_study as named
    from ..bench.spec.names import refuse_unknown
    from ..bench.spec.suite import suite_names

    if not name.endswith(".toml"):
        refuse_unknown("suite", [name], [*suite_names(), *NAMES])
    return named(name)


def study_titles(name: str, profile: str) -> dict[str, str]:
    """Titles of the methods of a study, by name."""
    from ..bench.honest.study import load_study

    study = load_study(name)
    return {m: study.methods[m].title for m in study.chosen_methods(profile, None)}


def study_of_store(store: Store) -> bool:
    """Whether the rows of a store are those of a study."""
    rows = store.rows()
    return bool(rows) and "dataset" in rows[0]


def study_table_of(store: Store) -> StudyTable:
    """The table of a store."""
    from ..bench.honest.table import study_table

    return study_table(store.rows())


def print_study_result(result: Any, command: str) -> int:
    """Say what a run did; gives the exit code."""
    typer.echo(f"{result.new} methods done, {result.present} were there before.")
    for place, reason in result.failed.items():
        typer.echo(f"dipedl: no row of {place}: {reason}", err=True)
    if result.left:
        typer.echo(f"The budget left {result.left}.\nTo go on: {command}")
    return 1 if result.failed else 0


def print_study(console: Console, table: StudyTable) -> None:
    """Measures, the summary of every method, and the AUROC of every line."""
    from ..bench.honest.measures import measures

    for measure in measures(table):
        _print_measure(console, measure)
    _print_summaries(console, table)
    _print_lines(console, table)


def _print_measure(console: Console, measure: Measure) -> None:
    from ..bench.honest.markdown import verdict

    style = {True: "green", False: "red", None: "dim"}[measure.met]
    console.print(Text(f"{verdict(measure)}: ", style=style) + Text(measure.statement))
    for line in (measure.found, *measure.misses):
        console.print(Padding(Text(line), (0, 0, 0, 4)))


def _print_summaries(console: Console, table: StudyTable) -> None:
    from ..bench.honest.markdown import SUMMARY
    from ..bench.honest.table import summary

    _title(console, "All methods, over all lines")
    found = [summary(table, column.name) for column in table.columns]
    shown = {head: show for head, show in SUMMARY.items() if head != "worst at"}
    columns = [Column(_stacked(head), [show(of) for of in found]) for head, show in shown.items()]
    print_columns(console, "method", [column.title for column in table.columns], columns)


def _print_lines(console: Console, table: StudyTable) -> None:
    from ..bench.honest.markdown import cell_text

    _title(console, "AUROC")
    columns = [
        Column(
            _stacked(column.title),
            [cell_text(table, line, column.name, "auroc") for line in table.lines],
        )
        for column in table.columns
        if ":" not in column.name
    ]
    print_columns(console, "known / foreign, classifier", list(map(str, table.lines)), columns)


def _stacked(head: str) -> str:
    """Words below one another, so that columns are no wider than their numbers."""
    return head.replace(" ", "\n")


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))
    console.print()
