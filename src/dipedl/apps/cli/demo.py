"""``dipedl demo``, and its result as text, 80 columns wide."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...writing.files import writable_target, write_file
from ...writing.progress import LiveLine
from .terminal import exit_on, fail, names_in

if TYPE_CHECKING:
    from ..demo import DemoResult, Row
    from ..demo.runner import Progress

_DRAW = "draw report"


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    models: Annotated[
        str | None,
        typer.Option(help="Any of linear,forest,boosted,cnn; default: all that are installed."),
    ] = None,
    open_: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
) -> None:
    """Fit classifiers on the bundled images, with and without a density; print a table.

    Also writes a report with figures, one HTML file, and its numbers as JSON. Works offline.
    """
    from ..demo import run, stages

    names = None if models is None else tuple(names_in(models))
    with exit_on(ValueError, ImportError):
        planned = stages(names)
    if out.suffix == ".json":
        fail(f"--out must not end in .json, got {str(out)!r}; the numbers are written there")
    with exit_on(OSError):
        writable_target(out)
        writable_target(out.with_suffix(".json"))
    render: Callable[[DemoResult], str] | None = None
    with suppress(ImportError):
        from ..demo.report import render
    console = Console(highlight=False)
    progress = stage_display(planned + [_DRAW] * (render is not None), quiet)
    result = run(names, seed=seed, progress=progress)
    with progress(_DRAW) if render else nullcontext():
        page = render(result) if render else None
    print_result(console, result)
    with exit_on(OSError):
        result.write_json(out.with_suffix(".json"))
        if page is not None:
            write_file(out, page)
    if names is None and "cnn" not in result.receipt.models:
        typer.echo("No CNN: it needs torch: pip install 'dipedl[torch]'")
    if page is None:
        typer.echo("No report: it needs matplotlib and jinja2: pip install 'dipedl[report]'")
    else:
        typer.echo(f"Report:  {out}")
    typer.echo(f"Numbers: {out.with_suffix('.json')}")
    if open_ and page is not None:
        typer.launch(out.resolve().as_uri())


def stage_display(names: Sequence[str], quiet: bool) -> Progress:
    """Return progress of stages of these names on stderr: a line for each, live on a terminal."""

    @contextmanager
    def show(stage: str) -> Iterator[None]:
        line, start = LiveLine(), time.perf_counter()
        name = f"[{names.index(stage) + 1}/{len(names)}] {stage}"
        line.show(f"{name} ...")
        yield
        line.show(f"{name:<24}{time.perf_counter() - start:6.1f} s", last=True)

    return nullcontext if quiet else show


def print_result(console: Console, result: DemoResult) -> None:
    """Print tables, conclusion and cautions."""
    from ..demo.summary import SET_TITLES, cautions, headline

    counts = result.receipt
    note = "Brier, NLL, ECE: lower is better. flagged: false alarms."
    console.print(_title(f"{counts.n_test:,} new digits", note), _known_table(result.rows))
    for name, n in counts.n_ood.items():
        title, what = SET_TITLES[name]
        note = f"AUPR of guessing: {n / (n + counts.n_test):.3f}. FPR95, Brier: lower is better."
        console.print(_title(f"{title}: {n:,} {what}", note), _ood_table(result.rows, name))
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
    from ..demo.rows import BARE, DIP

    table = _table(("model", "probabilities of", "accuracy", "Brier", "NLL", "ECE", "flagged"))
    for row in rows:
        if row.method in (DIP, BARE[0]):
            table.add_row(
                row.model,
                "DIP-EDL" if row.method == DIP else "bare classifier",
                *map(_number, (row.accuracy, row.brier, row.nll, row.ece)),
                _share(row.flagged),
                end_section=row.method == BARE[0],
            )
    return table


def _ood_table(rows: Iterable[Row], name: str) -> Table:
    from ..demo.rows import BARE, NO_MODEL

    table = _table(("model", "uncertainty", "AUROC [95 %]", "AUPR", "FPR95", "Brier", "flagged"))
    for row in rows:
        score = row.ood[name]
        table.add_row(
            "–" if row.model == NO_MODEL else row.model,
            row.method,
            Text(f"{score.auroc:.3f} [{score.auroc_low:.3f}–{score.auroc_high:.3f}]"),
            *map(_number, (score.aupr, score.fpr95, score.brier)),
            _share(score.flagged),
            end_section=row.method == BARE[-1],
        )
    return table


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
