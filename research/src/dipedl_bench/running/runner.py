"""Runs a suite: what is missing, one step at a time, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from filelock import FileLock, Timeout

from ..datasets.spectra_splits import SPECTRA, drop_damaged
from ..results.rows import make_row
from ..results.scores import score
from ..results.store import Store, default_root, load_rows, make_root
from ..spec.plan import Cell, plan
from ..spec.suite import file_of, load_suite
from .process import FATAL, PAUSED, Outcome, run_in_process
from .steps import DataError, Say, Step, steps_of
from .training import check_data_there

__all__ = ["RunResult", "StoppedError", "rescore", "run", "run_cells"]

Row = dict[str, Any]
#: Seconds between two looks at what another run is at work on, and between two epochs that are
#: told.
_PAUSE, _SELDOM = 2.0, 20.0


class StoppedError(RuntimeError):
    """Nothing more can be run: data is missing, or there is no space; what is there is kept."""


@dataclass(frozen=True)
class RunResult:
    """Result of a run."""

    #: New rows.
    rows: list[Row] = field(default_factory=list)
    #: How many rows were there before, none of their arrays damaged.
    present: int = 0
    #: Why there is no row of a (method, seed); in a crossed suite a method is named with data set
    #: and classifier, "wine-1, forest: knn".
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    #: Methods and seeds that the budget left for the next run.
    left: list[tuple[str, int]] = field(default_factory=list)


def run(
    suite: str | os.PathLike[str],
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
) -> RunResult:
    """Run methods of a suite with several seeds; what is there already is not run again.

    Seed by seed: all methods get the first seed before any gets the second. Every part (a
    classifier, a density, a method) is trained in a process of its own, its arrays are stored when
    they are complete, and the row is written from them. In a crossed suite the methods of a cell
    (data set, classifier, seed) share a process, and a row is written when its method is done. So
    the run may be killed at any time, and the same call goes on; two runs on one folder share the
    work. It begins with a look at the checksums of all arrays: what is damaged or gone is named,
    and only that is made again. Arrays of a row whose whole folder was deleted are not made again.

    Parameters
    ----------
    suite : str or path-like
        Name of a suite of the package, or the path of a TOML file.
    profile : str, default="smoke"
        How much of everything; a name of the suite.
    datasets, classifiers : iterable of str, optional
        Names, of a crossed suite; default: all of the profile.
    methods : iterable of str, optional
        Names of the suite's methods; default: all of the profile.
    seeds : iterable of int, optional
        For every method; default: those that the method, the profile, the data set or the suite
        has.
    out : path-like, optional
        Folder of all results; default: ``DIPEDL_BENCH``, else ``./bench-results``.
    budget : float, optional
        Seconds after which nothing is begun. The training of a network pauses at an epoch in time,
        and the next call goes on with it.
    data_dir : path-like, optional
        Folder of the data sets; default: ``DIPEDL_DATA``, else they are downloaded.
    progress : callable, optional
        Gets a line of text now and then.

    Raises
    ------
    ValueError
        If suite, profile, method or a setting is unknown or refused; before anything has begun.
    ImportError
        If the package of a method is missing.
    StoppedError
        If data is missing, or no space is left.
    """
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be > 0 seconds, got {budget!r}")
    deadline = None if budget is None else time.monotonic() + budget
    loaded = load_suite(suite)
    say = progress or (lambda text: None)
    data = os.environ.get("DIPEDL_DATA") if data_dir is None else str(data_dir)
    store = Store(out or default_root(), loaded.name, profile)
    axes: dict[str, Any] = {"methods": methods, "datasets": datasets, "classifiers": classifiers}
    cells = plan(loaded, profile, file_of(suite), seeds=seeds, **axes)
    return run_cells(cells, store, data, deadline, say)


def rescore(
    suite: str | os.PathLike[str],
    *,
    profile: str,
    out: str | os.PathLike[str] | None = None,
) -> int:
    """Compute the metrics of rows again from their arrays; gives the number of these rows.

    Rows that have no arrays stay as they are.
    """
    loaded = load_suite(suite)
    resamples = loaded.profile(profile).resamples
    store = Store(out or default_root(), loaded.name, profile)
    load_rows(loaded.name, profile, out)  # says so if there are none
    again = 0

    def rescored(row: Row) -> Row:
        nonlocal again
        if not store.has_arrays(row["method"], row["config_hash"], row["seed"]):
            return row
        again += 1
        return {**row, **score(store.arrays_of(row), resamples)}

    store.change_rows(rescored)
    return again


def run_cells(
    cells: list[Cell], store: Store, data_dir: str | None, deadline: float | None, say: Say
) -> RunResult:
    """Do what is missing of the cells: train their parts, run their methods, write their rows."""
    make_root(store.root)
    return _Run(store, data_dir, deadline, say).go(cells)


@dataclass
class _Run:
    store: Store
    data_dir: str | None
    deadline: float | None
    say: Say
    #: Why a step failed, by its key.
    broken: dict[tuple[str, str, int], str] = field(default_factory=dict)

    def go(self, cells: list[Cell]) -> RunResult:
        self._forget_damaged(cells)
        missing = sum(len(self._missing(cell)) for cell in cells)
        result = RunResult(present=sum(len(cell.heads) for cell in cells) - missing)
        seeds = ", ".join(str(seed) for seed in dict.fromkeys(cell.seed for cell in cells))
        self.say(
            f"{self.store.suite}, profile {self.store.profile}: seeds {seeds}; {result.present} "
            f"rows are there, {missing} to do; in {self.store.folder}"
        )
        todo = [cell for cell in cells if self._missing(cell)]
        while todo:
            waiting = [cell for cell in todo if not self._finished(cell, result)]
            if len(waiting) == len(todo):
                names = "; ".join(dict.fromkeys(str(self._steps(cell)[-1]) for cell in waiting))
                self.say(f"another run is at work on {names}; waiting for it")
                time.sleep(_PAUSE)
            todo = waiting
        return result

    def _steps(self, cell: Cell) -> list[Step]:
        return steps_of(cell, self.store, self.data_dir)

    def _missing(self, cell: Cell) -> dict[str, Row]:
        """Rows that are not there, or, without `methods`, whose arrays wait to be made again."""
        missing = self.store.missing(cell.heads)
        keys = ((part.name, part.digest, cell.seed) for part in cell.parts)
        if not cell.methods and any(self.store.is_waiting(*key) for key in keys):
            return {head["method"]: head for head in cell.heads}
        return missing

    def _forget_damaged(self, cells: list[Cell]) -> None:
        """Name what is damaged, and let it wait to be made again."""
        needed = [cell for cell in cells if not cell.methods or self._missing(cell)]
        steps = {s.key: s for cell in needed for s in self._steps(cell) if s.part is not None}
        for key, step in steps.items():
            # most have nothing wrong: looked at without the lock, which would leave a file
            if self.store.damage(*key):
                with self._lock(step) as free:
                    problems = self.store.damage(*key) if free else []
                    for problem in problems:
                        self.say(f"{step}: {problem}; it is made again")
                    if problems:
                        self.store.forget_arrays(*key)
        features = {}
        for cell in cells:
            data = cell.heads[0]["config"]["data"]
            if data.get("dataset") in SPECTRA and self._missing(cell):
                features[json.dumps(data), cell.seed] = data
        for (_, seed), data in features.items():
            for problem in drop_damaged(data, seed, self.store.root / "features"):
                self.say(f"features of seed {seed}: {problem}; they are made again")

    def _finished(self, cell: Cell, result: RunResult) -> bool:
        """Do a cell, and tell the result of it; False if another run is at work on it."""
        before = self._missing(cell)
        if not before:
            return True
        why = self._failures(cell)
        if why is None:
            return False
        result.rows.extend(self._new_rows(cell, before))
        for method in dict.fromkeys(name.partition(":")[0] for name in self._missing(cell)):
            if method in why:
                result.failed[cell.title(method), cell.seed] = why[method]
            else:
                result.left.append((cell.title(method), cell.seed))
        return True

    def _failures(self, cell: Cell) -> dict[str, str] | None:
        """Do the steps that are missing, while there is time; gives why methods have no row.

        None says that another run is at work on a step.
        """
        for step in self._steps(cell):
            if step.key not in self.broken:
                with self._lock(step) as free:
                    if self._is_done(step, free):
                        continue
                    if not free:
                        return None
                    if self.deadline is not None and time.monotonic() > self.deadline:
                        return {}
                    outcome = self._outcome(step)
                if outcome.kind == PAUSED:
                    return {}
                if outcome.kind == "done":
                    failed: dict[str, str] = json.loads(outcome.message or "{}")
                    if failed:
                        return failed
                    continue
                self.broken[step.key] = f"{step.title}: {outcome.message}"
            names = (name.partition(":")[0] for name in self._missing(cell))
            return dict.fromkeys(names, self.broken[step.key])
        return {}

    def _is_done(self, step: Step, alone: bool) -> bool:
        """Return whether a step is done; `alone` says that no other run is at work on it."""
        if step.part is None:
            return not self._missing(step.cell)
        done = self.store.has_arrays(*step.key)
        if done and alone:  # killed between its last two actions
            self.store.forget_checkpoint(*step.key)
        return done

    def _outcome(self, step: Step) -> Outcome:
        """Do a step in a process of its own, and say how it went."""
        self.say(str(step))
        try:
            check_data_there(step)
        except DataError as error:
            raise StoppedError(str(error)) from error
        start = last = time.monotonic()

        def progress(text: str) -> None:
            nonlocal last
            if not text.startswith("epoch ") or time.monotonic() - last >= _SELDOM:
                last = time.monotonic()
                self.say(f"{step}: {text}")

        outcome = run_in_process(replace(step, deadline=self.deadline), progress)
        if outcome.kind in FATAL:
            raise StoppedError(outcome.message)
        if outcome.kind == "done":
            self.say(f"{step}: {time.monotonic() - start:.1f} s")
        else:
            failed = "" if outcome.kind == PAUSED else "FAILED: "
            self.say(f"{step}: {failed}{outcome.message}")
        return outcome

    def _new_rows(self, cell: Cell, before: Mapping[str, Row]) -> list[Row]:
        """Rows of a cell that were missing; without `methods`, written of the arrays of its parts.

        Nothing is written while a part is not trained.
        """
        store, seed = self.store, cell.seed
        if cell.methods:
            new = {(name, head["config_hash"], seed) for name, head in before.items()}
            rows = store.rows() if len(self._missing(cell)) < len(before) else []
            return [r for r in rows if (r["method"], r["config_hash"], r["seed"]) in new]
        keys = [(part.name, part.digest, seed) for part in cell.parts]
        if not all(store.has_arrays(*key) for key in keys):
            return []
        receipts = {
            part.role: {"name": key[0], "config_hash": key[1], **store.receipt(*key)}
            for part, key in zip(cell.parts, keys, strict=True)
        }
        row = make_row(
            cell.heads[0],
            arrays=store.load(*keys[-1]),
            own=receipts.pop("method"),
            parts=receipts,
            n_resamples=cell.resamples,
        )
        return [row] if store.append(row) else []

    @contextmanager
    def _lock(self, step: Step) -> Iterator[bool]:
        """Hold the lock of a step if it is free; gives whether it was.

        It vanishes with the process that holds it, also when that is killed.
        """
        folder = self.store.arrays_folder(*step.key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder.with_name(f".{folder.name}.lock"))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()
