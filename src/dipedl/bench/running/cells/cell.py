"""The classifier of a cell, and every method that has no row yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ...data.splits import make_splits
from ...results.store import Store
from ...spec.cells import Cell, CellMethod
from ..job import CellJob, DataError
from .classifier import Given, given
from .method import Refusal, run_method
from .rows import method_rows, refusal_rows

__all__ = ["missing_rows", "rows_of", "run_cell"]

Say = Callable[[str], None]


def run_cell(job: CellJob, say: Say = lambda text: None) -> dict[str, str]:
    """Run the methods of a cell that lack a row; gives why one has none, by method."""
    try:
        splits = make_splits(job.cell.data, job.cell.seed)
    except Exception as error:
        raise DataError(str(error)) from error
    parts = given(job, splits, say)
    scored = {s: rows for s, rows in splits.X.items() if s not in ("train", "validation")}
    failed = {}
    lacking = set(missing_rows(job.store, job.cell, rows_of(job.cell, job.methods)).values())
    for method in (method for method in job.methods if method.name in lacking):
        if job.deadline is not None and time.monotonic() > job.deadline:
            break
        start = time.perf_counter()
        failure = _run(job, method, parts, scored, splits.y["test"])
        if failure:
            failed[method.name] = failure
        say(f"{method.name}: {failure or f'{time.perf_counter() - start:.1f} s'}")
    return failed


def rows_of(cell: Cell, methods: Sequence[CellMethod]) -> dict[str, tuple[str, str]]:
    """Name of each row of a cell -> name of its method, and hash of its config."""
    return {
        row: (method.name, digest)
        for method in methods
        if method.runs_in(cell)
        for row, digest in method.digests(cell).items()
    }


def missing_rows(store: Store, cell: Cell, rows: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Name of each row that is not in the store -> name of its method."""
    return {
        row: method
        for row, (method, digest) in rows.items()
        if not store.has_row(row, digest, cell.seed)
    }


def _run(
    job: CellJob, method: CellMethod, parts: Given, X: Mapping[str, np.ndarray], y: np.ndarray
) -> str:
    """Run a method and write its rows; gives what went wrong, or nothing."""
    try:
        predictions = run_method(method, parts, X, job.cell.seed)
        rows = method_rows(job, method, y, predictions, len(parts.y))
    except Refusal as refusal:
        rows = refusal_rows(job, method, str(refusal))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for row in rows:
        job.store.append(row)
    return ""
