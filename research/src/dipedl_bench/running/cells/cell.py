"""The classifier of a cell, and every method that has no row yet."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from ...datasets.splits import make_splits
from ...spec.cells import CellMethod
from ..clock import Say
from ..work import CellWork, DataError
from .classifier import Given, given
from .method import Refusal, run_method
from .rows import answers_of, method_rows, refusal_rows

Rows = Mapping[str, np.ndarray]


def run_cell(work: CellWork, say: Say = lambda text: None) -> dict[str, str]:
    """Run the methods of a cell that lack a row; gives why one has none, by method."""
    try:
        splits = make_splits(work.unit.data, work.seed)
    except Exception as error:
        raise DataError(str(error)) from error
    parts = given(work, splits, say)
    scored = {s: rows for s, rows in splits.X.items() if s not in ("train", "validation")}
    answers = answers_of(splits, parts.X, scored)
    failed = {}
    lacking = set(work.lacking().values())
    for method in (method for method in work.methods if method.name in lacking):
        if work.deadline is not None and time.monotonic() > work.deadline:
            break
        start = time.perf_counter()
        failure = _run(work, method, parts, scored, answers)
        if failure:
            failed[method.name] = failure
        say(f"{method.name}: {failure or f'{time.perf_counter() - start:.1f} s'}")
    return failed


def _run(
    work: CellWork, method: CellMethod, parts: Given, X: Rows, answers: Mapping[str, Rows]
) -> str:
    """Run a method and write its rows; gives what went wrong, or nothing."""
    try:
        known = {split for split, of in answers.items() if "truth" in of}
        predictions = run_method(method, parts, X, work.seed, known)
        rows = method_rows(work, method, answers, predictions, len(parts.y))
    except Refusal as refusal:
        rows = refusal_rows(work, method, str(refusal))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for row in rows:
        work.place.store.append(row)
    return ""
