"""A stream of table rows watched by a monitor, whose state goes on in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np

from ...io import load
from ...plots.canvas import COLORS
from ...writing import notebook
from ..monitor import ColumnBins, DriftMonitor, DriftReport, Window
from .columns import CATEGORY, ColumnSpec, as_inputs, check_known
from .errors import UsageError, UserError
from .reading import RejectedRow, Table
from .sampling import sample_rows
from .score import Progress
from .table_model import TableModel

_MOST_CUTS = 10


@dataclass
class WatchResult:
    """Result of a stream: the report after its last row, and the rows that were left out."""

    report: DriftReport
    refused: list[RejectedRow] = field(default_factory=list)


def start_monitor(
    model: TableModel, reference: Table | None, rate: float, window: int
) -> DriftMonitor:
    """A monitor of a model's columns, by its held-out rows or by rows it has not seen."""
    n = len(model.rows)
    columns = [bins_of_column(c, n) for c in model.columns if c.shares]
    monitor = DriftMonitor(rate, window)
    if reference is None:
        return monitor.fit(model.classifier, columns=columns)
    check_known(model.columns, reference.names, reference.path)
    some = sample_rows(reference, None)
    X, _, _ = as_inputs(model.columns, some.frame, some.rows)
    return monitor.fit(model.classifier, X)


def load_monitor(path: Path) -> DriftMonitor:
    """The monitor in a file."""
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
) -> WatchResult:
    """Feed the rows of a table to a monitor, with their classes where the table has them."""
    check_known(model.columns, table.names, table.path)
    watched, rows = WatchResult(monitor.report()), 0
    for piece in table.pieces():
        watched.refused += piece.refused
        rows += len(piece.frame)
        for first in range(0, len(piece.frame), monitor.window):
            some = slice(first, first + monitor.window)
            frame = piece.frame.iloc[some].reset_index(drop=True)
            X, fine, odd = as_inputs(model.columns, frame, piece.rows[some])
            labels = model.labels(frame)
            labels = None if labels is None else labels[fine]
            watched.refused += odd
            watched.report = monitor.update(model.classifier, X, labels, batch=batch)
            batch = None
        if progress is not None:
            progress(rows, piece.done)
    return watched


def bins_of_column(column: ColumnSpec, n: int) -> ColumnBins:
    """Return the usual values of a column of the n rows of the fit, as a monitor counts them."""
    known, gaps = n * (1 - column.missing), n * column.missing
    if column.kind == CATEGORY:
        counts = np.array([*(known * np.array(column.shares)), 0.0, gaps])
        return ColumnBins(column.name, np.zeros(0), column.levels, counts)
    # The lowest cut is the smallest number, the highest the largest; half of many others will do.
    some = slice(2, -1, 2) if len(column.cuts) > _MOST_CUTS else slice(None)
    cuts, shares = np.array(column.cuts)[some], np.array(column.shares)[some]
    counts = np.diff(shares, prepend=0.0, append=1.0) * known
    return ColumnBins(column.name, cuts, (), np.append(counts, gaps))


def render_page(monitor: DriftMonitor, report: DriftReport, stream: str) -> str:
    """The report and its windows, as charts and a table, in HTML text that loads nothing."""
    head = (
        "Rows",
        "KS distance",
        "p-values",
        "Columns changed",
        "Uncertainty",
        "Flagged",
        "Accuracy",
        "Estimated accuracy",
    )
    rows = [
        (
            f"{w.first:,} to {w.last:,}",
            f"{w.distance:.3f}",
            "differ" if w.differs else "as before",
            escape(", ".join(f"{name} ({psi:.2f})" for name, psi in w.changed)) or "none",
            f"{w.uncertainty:.3f}",
            f"{w.flagged:.1%}",
            f"{w.accuracy.value:.3f}" if w.accuracy else "",
            f"{w.estimated_accuracy.value:.3f}" if w.estimated_accuracy else "",
        )
        for w in reversed(monitor.windows_)
    ]
    parts, windows = [report._repr_html_()], monitor.windows_
    if rows:
        shares = {
            "share of flagged rows": [w.flagged for w in windows],
            "mean uncertainty": [w.uncertainty for w in windows],
            "KS distance of p-values": [w.distance for w in windows],
        }
        accuracy = {
            "accuracy, measured": [w.accuracy for w in windows],
            "accuracy, estimated": [w.estimated_accuracy for w in windows],
        }
        known = {
            label: [np.nan if one is None else one.value for one in values]
            for label, values in accuracy.items()
            if any(values)
        }
        charts = _chart("shares", windows, shares), _chart("accuracy", windows, known)
        parts += [notebook.frame(*charts, notebook.table("Windows", head, rows))]
    colors = "".join(f"--c{i}:{color};" for i, color in enumerate(COLORS[:4]))
    title = f"Drift of {escape(stream)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
        f"<style>:root{{{colors}}}</style></head>"
        f'<body style="font-family:sans-serif"><h1>{title}</h1>{"".join(parts)}</body></html>\n'
    )


def _chart(name: str, windows: Sequence[Window], lines: Mapping[str, Sequence[float]]) -> str:
    """Return lines over the last rows of windows as inline SVG, with a dot for each value."""
    from ...plots.page import panel, panel_axes

    ax = panel_axes(6.4, 2.2)
    for (label, values), color in zip(lines.items(), COLORS, strict=False):
        ax.plot([w.last for w in windows], values, color=color, marker=".", label=label)
    ax.set_xlabel("row")
    if lines:
        ax.legend(fontsize=8, frameon=False)
    return f"<figure>{panel(name, ax, ', '.join(lines), name).svg}</figure>"
