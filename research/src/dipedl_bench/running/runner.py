"""Runs a suite: what is missing, one part at a time, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from filelock import FileLock, Timeout

from ..results.rows import Row, default_root, key_of, make_root, method_of
from ..results.store import Store
from ..spec.plan import Cell, Part, plan
from ..spec.suite import file_of, load_suite
from .process import PAUSED, Outcome, run_in_process
from .training import DataError, Say, check_data_there

__all__ = ["RunResult", "StoppedError", "run", "run_cells"]

#: Seconds between two looks at what another run is at work on, and between two epochs in progress.
_PAUSE, _SELDOM = 2.0, 20.0
Key = tuple[str, str, int]


class StoppedError(OSError):
    """Nothing more can be run: data is missing, or there is no space; what is there is kept."""


@dataclass(frozen=True)
class RunResult:
    """Result of a run."""

    #: New rows.
    rows: list[Row] = field(default_factory=list)
    #: How many rows were there before, none of their arrays damaged.
    present: int = 0
    #: Why there is no row of a (method, seed); in a crossed suite a method is named with data set
    #: and classifier, "wine-1/forest: knn".
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
    device: str | None = None,
    progress: Say | None = None,
) -> RunResult:
    """Run methods of a suite; what is there already is not run again.

    Seed by seed: all methods get the first seed before any gets the second. Every part (a
    classifier, a density, a method) is trained in a process of its own, its arrays are stored when
    they are complete, and the row is written from them. In a crossed suite the methods of a cell
    (data set, classifier, seed) share a process, and a row is written when its method is done. So
    the run may be killed at any time, and the same call goes on; two runs on one folder share the
    work. Data sets lie in the folder ``DIPEDL_DATA``, else they are downloaded. It begins with a
    look at the checksums of all arrays: what is damaged or gone is named, and only that is made
    again. Arrays of a row whose whole folder was deleted are not made again.

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
        For every method; default: those that the method, the profile or the suite has.
    out : path-like, optional
        Folder of all results; default: ``DIPEDL_BENCH``, else ``./bench-results``.
    budget : float, optional
        Seconds after which nothing is begun. The training of a network pauses at an epoch in time,
        and the next call goes on with it.
    device : str, optional
        Where networks are trained: "auto", "cpu", "cuda"; default: as the profile says. It is no
        part of a configuration, and the rows say it.
    progress : callable, optional
        Gets a line of text now and then.

    Raises
    ------
    ValueError
        If suite, profile, method or a setting is unknown or refused; before anything has begun.
    ImportError
        If the package of a method is missing.
    StoppedError
        If no space is left, or the data of a run are missing that has one data set; of several,
        the methods on a missing one fail.
    """
    if budget is not None and not budget > 0:
        raise ValueError(f"budget must be > 0 seconds, got {budget!r}")
    deadline = None if budget is None else time.monotonic() + budget
    loaded = load_suite(suite)
    if device is not None:
        from dipedl.networks import Training  # imports PyTorch

        Training(device=device)  # refuses what is none
        setting = loaded.profile(profile)
        setting = setting.model_copy(update={"training": {**setting.training, "device": device}})
        loaded = loaded.model_copy(update={"profiles": {**loaded.profiles, profile: setting}})
    store = Store(out or default_root(), loaded.name, profile)
    axes: dict[str, Any] = {"methods": methods, "datasets": datasets, "classifiers": classifiers}
    cells = plan(loaded, profile, file_of(suite), seeds=seeds, **axes)
    return run_cells(cells, store, deadline, progress or (lambda text: None))


def run_cells(cells: list[Cell], store: Store, deadline: float | None, say: Say) -> RunResult:
    """Do what is missing of the cells: train their parts, run their methods, write their rows."""
    make_root(store.root)
    return _Run(store, deadline, say).go(cells)


@dataclass
class _Run:
    store: Store
    deadline: float | None
    say: Say
    #: How a part failed, by its key.
    broken: dict[Key, Outcome] = field(default_factory=dict)
    #: Whether a data set that is missing leaves others.
    others: bool = False

    def go(self, cells: list[Cell]) -> RunResult:
        self.others = len({cell.heads[0].get("dataset") for cell in cells}) > 1
        self._forget_damaged(cells)
        todo = [cell for cell in cells if self._missing(cell)]
        missing = sum(len(self._missing(cell)) for cell in todo)
        result = RunResult(present=sum(len(cell.heads) for cell in cells) - missing)
        seeds = ", ".join(str(seed) for seed in dict.fromkeys(cell.seed for cell in cells))
        self.say(
            f"{self.store.suite}, profile {self.store.profile}: seeds {seeds}; {result.present} "
            f"rows are there, {missing} to do; in {self.store.folder}"
        )
        while todo:
            busy = [cell for cell in todo if not self._finish(cell, result)]
            if len(busy) == len(todo):
                names = "; ".join(dict.fromkeys(cell.label(cell.parts[-1]) for cell in busy))
                self.say(f"another run is at work on {names}; waiting for it")
                time.sleep(_PAUSE)
            todo = busy
        return result

    def _missing(self, cell: Cell) -> dict[str, Row]:
        """Rows that are not there, or, without `methods`, whose arrays wait to be made again."""
        if not cell.methods and any(self.store.is_waiting(*cell.key(part)) for part in cell.parts):
            return {head["method"]: head for head in cell.heads}
        return self.store.missing(cell.heads)

    def _forget_damaged(self, cells: list[Cell]) -> None:
        """Name what is damaged, and let it wait to be made again."""
        stored = {
            cell.key(part): cell.label(part)
            for cell in cells
            if not cell.methods or self._missing(cell)
            for part in cell.parts
            if part.role != "methods"
        }
        for key, label in stored.items():
            # most have nothing wrong: looked at without the lock, which would leave a file
            if self.store.damage(*key):
                with self._lock(key) as free:
                    problems = self.store.damage(*key) if free else []
                    for problem in problems:
                        self.say(f"{label}: {problem}; it is made again")
                    if problems:
                        self.store.forget_arrays(*key)

    def _finish(self, cell: Cell, result: RunResult) -> bool:
        """Do a cell, and add what came of it to the result; False if another run is at work."""
        if not self._missing(cell):
            return True
        new, why = self.store.missing(cell.heads), {}
        for part in cell.parts:
            kind, message = self._make(cell, part)
            if kind == "busy":
                return False
            if kind == PAUSED:
                break
            if kind != "done":
                message = f"{part.role} {part.name}: {message}"
                why = dict.fromkeys(map(method_of, self._missing(cell).values()), message)
                break
            why = json.loads(message)
        left = self._missing(cell)
        if len(self.store.missing(cell.heads)) < len(new):
            keys = set(map(key_of, new.values()))
            result.rows.extend(row for row in self.store.rows() if key_of(row) in keys)
        for method in dict.fromkeys(map(method_of, left.values())):
            if method in why:
                result.failed[cell.title(method), cell.seed] = why[method]
            else:
                result.left.append((cell.title(method), cell.seed))
        return True

    def _make(self, cell: Cell, part: Part) -> Outcome:
        """Make a part if it is missing; "busy" if another run is at work on it."""
        key = cell.key(part)
        if key in self.broken:
            return self.broken[key]
        with self._lock(key) as free:
            if self._is_made(cell, part, free):
                return "done", "{}"
            if not free:
                return "busy", ""
            if self.deadline is not None and time.monotonic() > self.deadline:
                return PAUSED, ""
            outcome = self._run_part(cell, part)
        if outcome[0] not in ("done", PAUSED):
            self.broken[key] = outcome
        return outcome

    def _is_made(self, cell: Cell, part: Part, free: bool) -> bool:
        """Return whether a part is made; `free` says that no other run is at work on it."""
        if part is cell.parts[-1] and self._missing(cell):
            return False
        if part.role == "methods":
            return True
        made = self.store.has_arrays(*cell.key(part))
        if made and free:  # killed between its last two actions
            self.store.forget_checkpoint(*cell.key(part))
        return made

    def _run_part(self, cell: Cell, part: Part) -> Outcome:
        """Make a part in a process of its own, and say how it went."""
        label = cell.label(part)
        self.say(label)
        try:
            check_data_there(part)
        except DataError as error:
            return self._failed(label, "data", str(error))
        start = last = time.monotonic()

        def progress(text: str) -> None:
            nonlocal last
            if not text.startswith("epoch ") or time.monotonic() - last >= _SELDOM:
                last = time.monotonic()
                self.say(f"{label}: {text}")

        kind, message = run_in_process(cell, part, self.store, self.deadline, progress)
        if kind not in ("done", PAUSED):
            return self._failed(label, kind, message)
        took = f"{time.monotonic() - start:.1f} s"
        self.say(f"{label}: {took if kind == 'done' else message}")
        return kind, message

    def _failed(self, label: str, kind: str, message: str) -> Outcome:
        """Say that a part failed; StoppedError if nothing else can be made either."""
        if kind == "space" or (kind == "data" and not self.others):
            raise StoppedError(message)
        self.say(f"{label}: FAILED: {message}")
        return kind, message

    @contextmanager
    def _lock(self, key: Key) -> Iterator[bool]:
        """Hold the lock of a part if it is free; gives whether it was.

        It vanishes with the process that holds it, also when that is killed.
        """
        folder = self.store.arrays_folder(*key)
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
