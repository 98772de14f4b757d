"""A stream of table rows watched by a monitor, whose state goes on in a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from markupsafe import Markup

from ...io import load
from ...plots.canvas import COLORS
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


def render_page(monitor: DriftMonitor, report: DriftReport, stream: str) -> str:
    """Return the report and its windows, as charts and a table, in HTML text that loads nothing."""
    from ...plots.page import panel, panel_axes, templates

    windows = monitor.windows_
    lines = {
        "share of flagged rows": [w.flagged for w in windows],
        "mean uncertainty": [w.uncertainty for w in windows],
        "KS distance of p-values": [w.distance for w in windows],
        "accuracy, measured": [w.accuracy and w.accuracy.value for w in windows],
        "accuracy, estimated": [
            w.estimated_accuracy and w.estimated_accuracy.value for w in windows
        ],
    }
    charts = []
    for title, names in (("Shares", list(lines)[:3]), ("Accuracy", list(lines)[3:])):
        ax = panel_axes(6.4, 2.2)
        drawn = [name for name in names if any(value is not None for value in lines[name])]
        for name, color in zip(drawn, COLORS, strict=False):
            values = np.array(lines[name], dtype=float)
            ax.plot([w.last for w in windows], values, color=color, marker=".", label=name)
        ax.set_xlabel("row")
        if drawn:
            ax.legend(fontsize=8, frameon=False)
        charts.append(panel(title, ax, ", ".join(drawn), title))
    template = templates("dipedl.apps.table").get_template("drift.html.j2")
    return template.render(
        stream=stream, report=Markup(report._repr_html_()), charts=charts, windows=windows[::-1]
    )
