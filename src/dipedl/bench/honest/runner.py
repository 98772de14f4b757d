"""Runs the study: cell by cell, each in a process of its own, what is missing and nothing else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..results.store import Store, default_root
from ..run.clock import duration, seldom
from ..run.lock import try_locked
from ..run.process import run_in_process
from ..run.runner import StoppedError
from ..run.worker import FATAL
from ..spec.names import refuse_unknown
from .plan import Cell, Task, plan_cells, plan_tasks
from .study import load_study
from .work import CellJob, missing, run_cell_job

__all__ = ["StudyResult", "run_study"]

Say = Callable[[str], None]


@dataclass
class StudyResult:
    """What a run did.

    Attributes
    ----------
    new, present : int
        Methods in cells that got their rows now, and that had them before.
    failed : dict of str to str
        Why a method has no row in a cell.
    left : int
        Methods in cells that the budget left for the next run.
    """

    new: int = 0
    present: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0


def run_study(
    study: str | os.PathLike[str] = "honest",
    *,
    profile: str = "smoke",
    datasets: Iterable[str] | None = None,
    classifiers: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    budget: float | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    progress: Say | None = None,
) -> StudyResult:
    """Run the study; what is there already is not run again.

    A cell is a data set, a classifier and a seed. Each runs in a process of its own, and a row is
    written when its method is done; networks are kept when they are trained. So the run may be
    killed at any time, and the same call goes on.

    Parameters
    ----------
    study : str or path-like, default="honest"
        The study of the package, or the path of a TOML file.
    profile : str, default="smoke"
        How much of everything.
    datasets, classifiers, methods : iterable of str, optional
        Names; default: all of the profile.
    seeds : iterable of int, optional
        Default: those of profile, data set or study.
    out : path-like, optional
        Folder of all results; default: ``DIPEDL_BENCH``, else ``./bench-results``.
    budget : float, optional
        Seconds, > 0. No method is begun after them.
    data_dir : path-like, optional
        Folder of the data sets; default: ``DIPEDL_DATA``, else they are downloaded.
    progress : callable, optional
        Gets a line of text now and then.

    Raises
    ------
    ValueError
        If a name or a setting is unknown or refused; before anything has begun.
    ImportError
        If a package is missing.
    StoppedError
        If data is missing, or no space is left.
    """
    if budget is not None and budget <= 0:
        raise ValueError(f"budget must be > 0 seconds, got {budget!r}")
    loaded = load_study(study)
    where = str(study) if str(study).endswith(".toml") else f"{study}.toml"
    if classifiers is not None:
        classifiers = tuple(classifiers)
        refuse_unknown("classifier", classifiers, loaded.classifiers)
    tasks = plan_tasks(loaded, loaded.chosen_methods(profile, methods), where)
    names = loaded.chosen_datasets(profile, datasets)
    cells = plan_cells(loaded, profile, names, classifiers, seeds, where)
    store = Store(out or default_root(), loaded.name, profile)
    end = None if budget is None else time.time() + budget
    folder = os.environ.get("DIPEDL_DATA") if data_dir is None else str(data_dir)
    return _Run(store, tuple(tasks), end, folder, progress or (lambda text: None)).go(cells)


@dataclass
class _Run:
    store: Store
    tasks: tuple[Task, ...]
    end: float | None
    data_dir: str | None
    say: Say

    def go(self, cells: list[Cell]) -> StudyResult:
        result = StudyResult()
        todo = [cell for cell in cells if self._missing(cell)]
        lacking = sum(len(self._missing(cell)) for cell in todo)
        wanted = sum(task.runs_in(cell) for cell in cells for task in self.tasks)
        result.present = wanted - lacking
        self.say(
            f"{self.store.suite}, profile {self.store.profile}: {len(cells)} cells, {wanted} "
            f"methods in them; {result.present} are there, {lacking} to do; in {self.store.folder}"
        )
        while todo:
            busy = [cell for cell in todo if not self._tried(cell, result)]
            if len(busy) == len(todo):
                self.say("another run is at work on what is left; waiting for it")
                time.sleep(2)
            todo = busy
        return result

    def _tried(self, cell: Cell, result: StudyResult) -> bool:
        """Run a cell; False if another run is at work on it."""
        lock = self.store.arrays_folder(cell.part, cell.digest, cell.seed)
        with try_locked(lock.with_name(f".{cell.seed}.lock")) as free:
            if free:
                self._run(cell, result)
        return free

    def _run(self, cell: Cell, result: StudyResult) -> None:
        before = self._missing(cell)
        if not before:
            return
        if self.end is not None and time.time() > self.end:
            result.left += len(before)
            return
        self.say(f"{cell}: {len(before)} methods")
        start = time.perf_counter()
        failed = self._failures(cell, tuple(before))
        after = self._missing(cell)
        result.new += len(before) - len(after)
        result.failed |= {f"{cell}: {name}": reason for name, reason in failed.items()}
        result.left += len(after) - len(failed)
        self.say(f"{cell}: {duration(time.perf_counter() - start)}")

    def _failures(self, cell: Cell, tasks: tuple[Task, ...]) -> dict[str, str]:
        job = CellJob(
            root=str(self.store.root),
            study=self.store.suite,
            profile=self.store.profile,
            cell=cell,
            tasks=tasks,
            end=self.end,
            data_dir=self.data_dir,
        )
        outcome = run_in_process(job, self._heard(cell), run_cell_job)
        if outcome.kind in FATAL:
            raise StoppedError(outcome.message)
        if outcome.kind == "done":
            found: dict[str, str] = json.loads(outcome.message)
            return found
        return {task.name: outcome.message for task in self._missing(cell)}

    def _heard(self, cell: Cell) -> Say:
        epochs = seldom(self.say, f"{cell}: ")

        def hear(text: str) -> None:
            if text.startswith("epoch "):
                epochs(text)
            else:
                self.say(f"{cell}: {text}")

        return hear

    def _missing(self, cell: Cell) -> list[Task]:
        return missing(self.store, cell, self.tasks)
