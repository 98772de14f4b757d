"""``dipedl monitor``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ...writing.text import printable_name
from . import options
from .terminal import (
    ALARM,
    PARTIAL,
    check_share,
    echo,
    echo_json,
    list_rejected,
    report_errors,
    show_rows,
)

_RATE, _WINDOW = 0.01, 1_000


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
    with report_errors(quiet):
        from ...io import save
        from ..table.errors import UsageError
        from ..table.score import load_monitor, start_monitor, watch
        from ..table.table_model import read_model
        from ..table.writing import check_page, check_writable, complete_file

        inputs = options.input_files(model, data, reference)
        for option, out in (("state", state), ("page", page)):
            if out is not None:
                check_writable(out, inputs, option)
        if page is not None and state is not None and page.resolve() == state.resolve():
            raise UsageError(f"--page and --state are both {page}: name two files")
        if page is not None:
            check_page(page, "page")
        options.check_order(model, data)
        fitted = read_model(model)
        with _lock(state, quiet):
            if state is not None and state.exists():
                if (reference, false_alarms, window) != (None, None, None):
                    raise UsageError(
                        "--reference, --false-alarms and --window are for a monitor that begins, "
                        f"and {state} goes on: leave them out, or name a file that is not there"
                    )
                watching = load_monitor(state)
            else:
                rate = _RATE if false_alarms is None else false_alarms
                check_share(rate, "--false-alarms", str(_RATE))
                usual = None
                if reference is not None:
                    usual = options.open_for(fitted, model, reference, delimiter)
                watching = start_monitor(fitted, usual, rate, window or _WINDOW)
            table = options.open_for(fitted, model, data, delimiter)
            with show_rows(quiet) as progress:
                drift, refused = watch(watching, fitted, table, batch, progress)
            if page is not None:
                from ..table.page import render_drift

                text = render_drift(watching, drift, printable_name(data.name))
                with complete_file(page) as file:
                    file.write(text.encode())
            if state is not None:
                save(watching, state)
            elif not quiet:
                echo(
                    "note: the monitor is not kept, and the next table begins anew; name its file "
                    "by --state to go on",
                    err=True,
                )
    if json:
        more = {"gauges": drift.gauges(), "refused": len(refused)}
        echo_json(drift.to_dict() | more)
    else:
        echo(str(drift))
    list_rejected(refused, len(refused))
    if drift.alarm:
        raise typer.Exit(ALARM)
    if refused:
        raise typer.Exit(PARTIAL)


@contextmanager
def _lock(state: Path | None, quiet: bool) -> Iterator[None]:
    """Keep the state to one process from reading it to writing it anew; others wait."""
    if state is None:
        yield
        return
    from filelock import FileLock, Timeout

    # Not the state itself, in whose place a new file comes.
    lock = FileLock(state.with_name(f".{state.name}.lock"))
    try:
        held = lock.acquire(timeout=0)
    except Timeout:
        if not quiet:
            echo(f"Waiting for another monitor that goes on with {state} ...", err=True)
        held = lock.acquire()
    with held:
        yield
