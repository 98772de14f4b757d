"""The result of the demo as text, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..demo import DemoResult, Row, SetScore
from ..demo.rows import BARE, DIP, NO_MODEL
from ..demo.summary import SET_TITLES, cautions, headline


def density_table(described: Mapping[str, str]) -> Table:
    """Names of densities and their first line."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("density", no_wrap=True)
    table.add_column("what it is")
    for name, line in described.items():
        table.add_row(name, Text(line))
    return table


def print_result(console: Console, result: DemoResult) -> None:
    """Print tables, conclusion and cautions."""
    counts = result.receipt
    note = "Brier, NLL, ECE: lower is better. flagged: false alarms."
    console.print(_title(f"{counts.n_test:,} new digits", note), _known_table(result.rows))
    for name, n in counts.n_ood.items():
        console.print(_ood_title(name, n, counts.n_test), _ood_table(result.rows, name))
    console.print()
    console.print(Text(headline(result)))
    for caution in cautions(result):
        console.print(Padding(Text(f"* {caution}"), (0, 0, 0, 2)))
    console.print()


def _table(columns: Iterable[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i < 2 else "right", no_wrap=True)
    return table


def _title(title: str, note: str) -> Group:
    return Group(Text(), Text(title, style="bold"), Text(note), Text())


def _known_table(rows: Iterable[Row]) -> Table:
    table = _table(("model", "probabilities of", "accuracy", "Brier", "NLL", "ECE", "flagged"))
    for row in rows:
        if row.method in (DIP, BARE[0]):
            table.add_row(
                row.model,
                "DIP-EDL" if row.method == DIP else "bare classifier",
                *(_number(value) for value in (row.accuracy, row.brier, row.nll, row.ece)),
                _share(row.flagged),
                end_section=row.method == BARE[0],
            )
    return table


def _ood_title(name: str, n: int, n_known: int) -> Group:
    title, what = SET_TITLES[name]
    chance = n / (n + n_known)
    note = f"AUPR of guessing: {chance:.3f}. FPR95, Brier: lower is better."
    return _title(f"{title}: {n:,} {what}", note)


def _ood_table(rows: Iterable[Row], name: str) -> Table:
    table = _table(("model", "uncertainty", "AUROC [95 %]", "AUPR", "FPR95", "Brier", "flagged"))
    for row in rows:
        table.add_row(*_ood_cells(row, row.ood[name]), end_section=row.method == BARE[-1])
    return table


def _ood_cells(row: Row, score: SetScore) -> tuple[str | Text, ...]:
    return (
        "–" if row.model == NO_MODEL else row.model,
        row.method,
        Text(f"{score.auroc:.3f} [{score.auroc_low:.3f}–{score.auroc_high:.3f}]"),
        _number(score.aupr),
        _number(score.fpr95),
        _number(score.brier),
        _share(score.flagged),
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
