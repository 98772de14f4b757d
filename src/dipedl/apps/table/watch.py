"""A stream of table rows watched by a monitor, whose state goes on in a file."""

from __future__ import annotations

from pathlib import Path

from ...io import load
from ..monitor import DriftMonitor, DriftReport
from .columns import as_inputs, check_known
from .errors import UsageError, UserError
from .reading import RejectedRow, Table, sample_rows
from .score import Progress
from .table_model import TableModel


def start_monitor(
    model: TableModel, reference: Table | None, rate: float, window: int
) -> DriftMonitor:
    """Return a monitor of a model's columns, by its held-out rows or by rows it has not seen."""
    monitor = DriftMonitor(rate, window)
    if reference is None:
        return monitor.fit(model.classifier, columns=list(model.usual.values()))
    check_known(model.columns, reference.names, reference.path)
    some = sample_rows(reference, None)
    X, _, _ = as_inputs(model.columns, some.frame, some.rows)
    return monitor.fit(model.classifier, X)


def load_monitor(path: Path) -> DriftMonitor:
    """Return the monitor in a file."""
    try:
        monitor = load(path)
    except ValueError as error:
        raise UserError(f"{error}; to begin anew, name a file that is not there") from error
    if not isinstance(monitor, DriftMonitor):
        raise UsageError(
            f"{path} holds a {type(monitor).__name__}, not a monitor: name another file"
        )
    return monitor


def watch(
    monitor: DriftMonitor,
    model: TableModel,
    table: Table,
    batch: int | None = None,
    progress: Progress | None = None,
) -> tuple[DriftReport, list[RejectedRow]]:
    """Feed a monitor the rows of a table, with their classes where it has them.

    Return the report after the last row, and the rows that were left out.
    """
    check_known(model.columns, table.names, table.path)
    report, refused, rows = monitor.report(), list[RejectedRow](), 0
    for piece in table.pieces():
        refused += piece.refused
        rows += len(piece.frame)
        for first in range(0, len(piece.frame), monitor.window):
            some = slice(first, first + monitor.window)
            frame = piece.frame.iloc[some].reset_index(drop=True)
            X, fine, odd = as_inputs(model.columns, frame, piece.rows[some])
            labels = model.labels(frame)
            labels = None if labels is None else labels[fine]
            refused += odd
            report = monitor.update(model.classifier, X, labels, batch=batch)
            batch = None
        if progress is not None:
            progress(rows, piece.done)
    return report, refused
