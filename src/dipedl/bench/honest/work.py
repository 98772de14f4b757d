"""One cell in a process of its own: the classifier, and every method that has no row yet."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np

from ..results.store import Store
from ..run.worker import DataError, in_process
from .classifiers import Given, given
from .data import study_splits
from .methods import Refusal, run_method
from .plan import Cell, Task
from .rows import answer_rows, refusal_rows

__all__ = ["CellJob", "missing", "run_cell", "run_cell_job"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class CellJob:
    """A cell and its methods; everything a process needs to know.

    `end` is the time, in seconds since the epoch, after which no method is begun.
    """

    root: str
    study: str
    profile: str
    cell: Cell
    tasks: tuple[Task, ...]
    end: float | None = None
    data_dir: str | None = None

    @property
    def store(self) -> Store:
        """Where the rows go."""
        return Store(self.root, self.study, self.profile)

    @property
    def where(self) -> str:
        """File and key of the classifier."""
        return self.cell.where


def run_cell_job(job: CellJob, pipe: Connection) -> None:
    """Entry of the process; its last word is the failures, as JSON."""
    in_process(pipe, lambda say: json.dumps(run_cell(job, say)))


def run_cell(job: CellJob, say: Say = lambda text: None) -> dict[str, str]:
    """Run the methods of a cell that have no rows; gives why there is none, by method."""
    if job.data_dir is not None:
        os.environ["DIPEDL_DATA"] = job.data_dir
    try:
        splits = study_splits(job.cell.data, job.cell.seed)
    except Exception as error:
        raise DataError(str(error)) from error
    parts = given(job.cell, splits, job.store, say)
    asked = {s: rows for s, rows in splits.X.items() if s not in ("train", "validation")}
    failed = {}
    for task in missing(job.store, job.cell, job.tasks):
        if job.end is not None and time.time() > job.end:
            break
        start = time.perf_counter()
        failure = _run(job, task, parts, asked, splits.y["test"])
        if failure:
            failed[task.name] = failure
        say(f"{task.name}: {failure or f'{time.perf_counter() - start:.1f} s'}")
    return failed


def missing(store: Store, cell: Cell, tasks: Sequence[Task]) -> list[Task]:
    """Methods that run in a cell and lack a row."""
    there = {(row["method"], row["config_hash"], row["seed"]) for row in store.rows()}

    def lacks(task: Task) -> bool:
        keys = ((name, task.digest(cell, kind), cell.seed) for name, kind in task.kinds.items())
        return any(key not in there for key in keys)

    return [task for task in tasks if task.runs_in(cell) and lacks(task)]


def _run(job: CellJob, task: Task, parts: Given, X: Mapping[str, np.ndarray], y: np.ndarray) -> str:
    """Run a method and write its rows; gives what went wrong, or nothing."""
    try:
        answers = run_method(task, parts, X, job.cell.seed)
        rows = answer_rows(job.study, job.profile, job.cell, task, y, answers, len(parts.y))
    except Refusal as refusal:
        rows = refusal_rows(job.study, job.profile, job.cell, task, str(refusal))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for row in rows:
        job.store.append(row)
    return ""
