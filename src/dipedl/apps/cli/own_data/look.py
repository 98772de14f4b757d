"""``dipedl inspect``, ``check``, ``report`` and ``monitor``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ....writing.cells import printable_name
from ..terminal import echo, names_in, one_line
from . import options, running

if TYPE_CHECKING:
    from ...monitor import DriftMonitor
    from ...table.table_model import TableModel
    from ...table.watch import WatchResult

#: Exit code of an alarm, new or old.
ALARM = 4
_RATE, _WINDOW = 0.01, 1_000


def inspect(
    model: options.Model,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what a model's file holds: versions, columns, what it was fitted on.

    Nothing in the file is built or executed.
    """
    with running.mistakes_told(quiet):
        from ...table.table_model import inspect_model

        with running.step(f"{model} read", verbose):
            found = inspect_model(model)
        if json:
            running.as_json(found)
            return
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items() if v)
    lines = {
        "File": f"{model}, {found['megabytes']:.1f} MB, format {found['format']}",
        "Type": f"{found['type']}, {found['arrays']} arrays, all checksums right",
        "Versions": versions,
        "Classes": ", ".join(map(one_line, map(str, found["classes"] or []))) or "none",
        "Samples": f"{found['n']:,.0f}" if found["n"] else "none",
        "Untrusted": ", ".join(found["untrusted_types"]) or "no types",
    }
    for name, text in lines.items():
        echo(f"{name + ':':<11}{text}")
    _print_table(found["table"])


def _print_table(table: dict[str, Any] | None) -> None:
    if table is None:
        echo("Table:     none; the model was made in Python")
        return
    from ...table.table_model import describe_inputs, describe_rows_learned

    facts = table["facts"]
    held = facts["held_out"]
    echo(f"Target:    {one_line(table['target'])}")
    echo(f"Fitted on: {facts['file']} ({facts['format']}), {describe_rows_learned(facts)}")
    echo(f"Model:     {facts['model_title']}")
    echo(f"Held out:  accuracy {held['accuracy']:.3f}, Brier score {held['brier']:.3f}")
    kinds = {column["name"]: column["kind"] for column in table["columns"]}
    for name, kind in describe_inputs(kinds, facts).items():
        echo(f"  {one_line(name):<20} {kind}")


def check(
    data: options.Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    test: Annotated[
        Path | None, typer.Option(help="Another table, to find rows that are in both.")
    ] = None,
    drop: options.Drop = "",
    types: options.Types = "",
    gaps: options.Gaps = "",
    delimiter: options.Delimiter = None,
    rows: Annotated[
        int, typer.Option(help="Rows to look at, drawn at random; 0: all.", min=0)
    ] = 100_000,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what is wrong with a table before anything is fitted.

    Leaks of the target, ids, duplicates, rare classes, constant columns, gaps, dates, rows that are
    in a test table too. The exit code is 3 if there are warnings.
    """
    with running.mistakes_told(quiet):
        from ...table.check import check_table

        tables = [running.opened(path, delimiter, names_in(gaps)) for path in (data, test) if path]
        if not quiet:
            echo(f"Reading {data} and looking ...", err=True)
        with running.step("rows read and checked", verbose):
            found = check_table(
                tables, target, names_in(drop), running.pairs_in(types), rows or None
            )
    if json:
        running.as_json(found.to_dict())
    else:
        echo(str(found))
    if found.warnings:
        raise typer.Exit(running.PARTIAL)


def report(
    model: options.Model,
    data: Annotated[
        Path, typer.Argument(help="Rows the fit has not seen, with their classes if known.")
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    ood: Annotated[
        Path | None,
        typer.Option(help="Rows that are of no class, to see whether the model notices."),
    ] = None,
    rows: Annotated[
        int, typer.Option(help="Rows of each table to use, drawn at random; 0: all.", min=0)
    ] = 20_000,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a page about a model on your own test rows: one HTML file that loads nothing.

    What the model can be trusted on, reliability, classes, rows, changes since the fit, next steps.
    """
    running.in_range(coverage, "--coverage", "0.9")
    with running.mistakes_told(quiet):
        from ...table.evaluate import evaluate
        from ...table.report import render
        from ...table.report.advice import headline, next_steps
        from ...table.table_model import read_model
        from ...table.writing import check_writable, complete_file

        check_writable(out, [model, data, ood])
        with running.step(f"{model} read", verbose):
            fitted = read_model(model)
        tables = [
            running.opened_for(fitted, model, path, delimiter) for path in (data, ood) if path
        ]
        if not quiet:
            echo("Answering and drawing ...", err=True)
        with running.step("rows answered and measured", verbose):
            found = evaluate(fitted, tables[0], tables[1] if ood else None, rows or None, coverage)
        with running.step("page drawn", verbose):
            page = render(found, *map(printable_name, (data.name, model.name)))
        with complete_file(out) as file:
            file.write(page.encode())
    if json:
        changed = [drift.name for drift in found.drifts if drift.changed]
        steps = {"next_steps": next_steps(found), "changed_columns": changed}
        running.as_json({"report": str(out), "rows": len(found.test), **found.scores, **steps})
        return
    echo(headline(found))
    for advice in next_steps(found):
        echo(f"* {advice}")
    echo(f"Report: {out}")


def monitor(
    model: options.Model,
    data: options.Data,
    state: Annotated[
        Path | None,
        typer.Option(
            help="The monitor, read and written anew; without such a file a new one begins."
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="Usual rows that the fit has not seen; default: its held-out rows."),
    ] = None,
    false_alarms: Annotated[
        float | None, typer.Option(help="Chance of ever raising a false alarm. Default: 0.01.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Rows that are tested together. Default: 1000.", min=50)
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(help="Number of this table; refused unless larger than the one before."),
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Also write the report as HTML.")] = None,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Watch a stream of rows for drift, without labels; exit code 4 is an alarm.

    Give each row of the stream once, in the order in which rows came. With a column of classes
    accuracy is measured too.
    """
    with running.mistakes_told(quiet):
        from ....io import save
        from ...table.errors import UsageError
        from ...table.table_model import read_model
        from ...table.watch import page as made_page
        from ...table.watch import watch
        from ...table.writing import check_writable, complete_file

        inputs = [model, data, reference]
        for option, out in (("--state", state), ("--page", page)):
            if out is not None:
                check_writable(out, inputs, option)
        if page is not None and state is not None and page.resolve() == state.resolve():
            raise UsageError(f"--page and --state are both {page}: name two files")
        fitted = read_model(model)
        settings = (reference, false_alarms, window)
        with _locked(state, quiet):
            watching = _monitor(fitted, model, state, settings, delimiter)
            table = running.opened_for(fitted, model, data, delimiter)
            with running.row_progress(quiet) as progress:
                found = watch(watching, fitted, table, batch, progress)
            if page is not None:
                with complete_file(page) as file:
                    file.write(
                        made_page(watching, found.report, printable_name(data.name)).encode()
                    )
            if state is not None:
                save(watching, state)
    _tell_drift(found, json)


@contextmanager
def _locked(state: Path | None, quiet: bool) -> Iterator[None]:
    """Keep the state to one process from reading it to writing it anew; others wait."""
    if state is None:
        yield
        return
    from filelock import FileLock, Timeout

    # Not the state itself, in whose place a new file comes.
    lock = FileLock(state.with_name(f".{state.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not quiet:
            echo(f"Waiting for another monitor that goes on with {state} ...", err=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _monitor(
    fitted: TableModel,
    model: Path,
    state: Path | None,
    settings: tuple[Path | None, float | None, int | None],
    delimiter: str | None,
) -> DriftMonitor:
    from ...table.errors import UsageError
    from ...table.watch import load_monitor, start_monitor

    reference, rate, window = settings
    if state is not None and state.exists():
        if settings != (None, None, None):
            raise UsageError(
                f"--reference, --false-alarms and --window are for a monitor that begins, and "
                f"{state} goes on: leave them out, or name a file that is not there"
            )
        return load_monitor(state)
    running.in_range(_RATE if rate is None else rate, "--false-alarms", str(_RATE))
    table = None if reference is None else running.opened_for(fitted, model, reference, delimiter)
    return start_monitor(fitted, table, rate or _RATE, window or _WINDOW)


def _tell_drift(found: WatchResult, json: bool) -> None:
    report = found.report
    if json:
        refused = {"refused": len(found.refused)}
        running.as_json(report.to_dict() | {"gauges": report.gauges()} | refused)
    else:
        echo(str(report))
    running.tell_refused(found.refused, len(found.refused))
    if report.alarm:
        raise typer.Exit(ALARM)
    if found.refused:
        raise typer.Exit(running.PARTIAL)
