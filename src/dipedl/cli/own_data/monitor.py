"""``dipedl monitor``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options, running

if TYPE_CHECKING:
    from ...monitoring import DriftMonitor
    from ...own_data.saved import TableModel
    from ...own_data.watching import Watched

#: Exit code of an alarm, new or old.
ALARM = 4
_RATE, _WINDOW = 0.01, 1_000


def monitor(
    model: options.Model,
    data: options.Data,
    state: Annotated[
        Path | None,
        typer.Option(help="Go on from this file, and write it anew; one that is not there begins."),
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

    A table is read in the order of its rows, each row of the stream once. With a column of classes
    accuracy is measured too.
    """
    with running.mistakes_told(quiet):
        from ...own_data.saved import read_model
        from ...own_data.tables.writing import check_writable, complete_file
        from ...own_data.watching import page as made_page
        from ...own_data.watching import watch
        from ...persistence import save

        inputs = [model, data, reference]
        for option, out in (("--state", state), ("--page", page)):
            if out is not None:
                check_writable(out, inputs, option)
        fitted = read_model(model)
        settings = (reference, false_alarms, window)
        watching = _monitor(fitted, model, state, settings, delimiter)
        table = running.opened_for(fitted, model, data, delimiter)
        with running.row_progress(quiet) as progress:
            found = watch(watching, fitted, table, batch, progress)
        if page is not None:
            with complete_file(page) as file:
                file.write(made_page(watching, found.report, data.name).encode())
        if state is not None:
            save(watching, state)
    _finish(found, json)


def _monitor(
    fitted: TableModel,
    model: Path,
    state: Path | None,
    settings: tuple[Path | None, float | None, int | None],
    delimiter: str | None,
) -> DriftMonitor:
    from ...own_data.tables.mistake import WrongOption
    from ...own_data.watching import begun_monitor, kept_monitor

    reference, rate, window = settings
    if state is not None and state.exists():
        if settings != (None, None, None):
            raise WrongOption(
                f"--reference, --false-alarms and --window are for a monitor that begins, and "
                f"{state} goes on: leave them out, or name a file that is not there"
            )
        return kept_monitor(state)
    running.in_range(_RATE if rate is None else rate, "--false-alarms", str(_RATE))
    table = None if reference is None else running.opened_for(fitted, model, reference, delimiter)
    return begun_monitor(fitted, table, rate or _RATE, window or _WINDOW)


def _finish(found: Watched, json: bool) -> None:
    report = found.report
    if json:
        refused = {"refused": len(found.refused)}
        running.as_json(report.to_dict() | {"gauges": report.gauges()} | refused)
    else:
        typer.echo(str(report))
    running.tell_refused(found.refused, len(found.refused))
    if report.alarm:
        raise typer.Exit(ALARM)
    if found.refused:
        raise typer.Exit(running.PARTIAL)
