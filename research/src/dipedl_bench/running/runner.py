"""Runs a suite: what is missing, one part or cell at a time, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..datasets.spectra_splits import SPECTRA, drop_damaged
from ..results.receipt import config_hash
from ..results.rows import numbers
from ..results.scores import score
from ..results.store import Store, default_root, load_rows, make_root
from ..spec.suite import file_of, load_suite
from .clock import Clock, Say, duration, seldom, silent
from .inputs import check_data_there
from .process import Outcome, run_in_process
from .todo import check_devices, planned_work
from .work import DataError, MethodWork, Place, Step, Work
from .worker import FATAL, PAUSED

__all__ = ["RunResult", "StoppedError", "do", "rescore", "run"]

#: Seconds between two looks at what another run is at work on.
_PAUSE = 2.0


class StoppedError(RuntimeError):
    """Nothing more can be run: data is missing, or there is no space; what is there is kept."""


@dataclass(frozen=True)
class RunResult:
    """Result of a run."""

    #: New rows.
    rows: list[dict[str, Any]] = field(default_factory=list)
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
    they are complete, and the row is written from them. In a crossed suite a cell (data set,
    classifier, seed) has a process of its own, and a row is written when its method is done. So the
    run may be killed at any time, and the same call goes on; two runs on one folder share the work.
    It begins with a look at the checksums of all arrays: what is damaged or gone is named, and only
    that is made again. Arrays of a row whose whole folder was deleted are not made again.

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
        Seconds. The training of a network pauses at an epoch in time, and the next call goes on
        with it. No other part is begun that will probably not be finished by then, going by how
        long it took with other seeds; one that was never timed is begun while there is time left.
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
    loaded = load_suite(suite)
    where = file_of(suite)
    say = progress or silent
    data = os.environ.get("DIPEDL_DATA") if data_dir is None else str(data_dir)
    place = Place(Store(out or default_root(), loaded.name, profile), data)
    clock = Clock(place.store, budget)
    chosen = None if seeds is None else tuple(dict.fromkeys(seeds))
    axes: dict[str, Any] = {"methods": methods, "datasets": datasets, "classifiers": classifiers}
    todo = planned_work(loaded, where, place, chosen, **axes, say=say)
    return do(todo, place, clock, say)


def do(todo: list[Work], place: Place, clock: Clock, say: Say) -> RunResult:
    """Do what is planned for a place: train its parts and write its rows."""
    make_root(place.store.root)
    return _Run(place.store, clock, say).go(todo)


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

    def rescored(row: dict[str, Any]) -> dict[str, Any]:
        nonlocal again
        if not store.has_arrays(row["method"], row["config_hash"], row["seed"]):
            return row
        again += 1
        return {**row, **numbers(score(store.arrays_of(row), resamples))}

    store.change_rows(rescored)
    return again


@dataclass
class _Run:
    store: Store
    clock: Clock
    say: Say
    #: Why a step failed, by digest and seed.
    broken: dict[tuple[str, int], str] = field(default_factory=dict)

    def go(self, wanted: list[Work]) -> RunResult:
        self._find_damage(wanted)
        missing = [len(work.missing()) for work in wanted]
        todo = [work for work, lacking in zip(wanted, missing, strict=True) if lacking]
        result = RunResult(present=sum(work.n_rows for work in wanted) - sum(missing))
        seeds = dict.fromkeys(work.seed for work in wanted)
        self.say(
            f"{self.store.suite}, profile {self.store.profile}: seeds "
            f"{', '.join(map(str, seeds))}; {result.present} rows are there, {sum(missing)} to do; "
            f"in {self.store.folder}"
        )
        if todo:
            check_devices(wanted)
        while todo:
            waiting = self._pass(todo, result)
            if len(waiting) == len(todo):
                self._wait_for_others(waiting)
            todo = waiting
        return result

    def _find_damage(self, wanted: list[Work]) -> None:
        """Name what is damaged, and let it wait to be made again."""
        steps = {(step.unit.digest, work.seed): step for work in wanted for step in work.steps}
        for (_, seed), step in steps.items():
            # most have nothing wrong: looked at without the lock, which would leave a file
            if step.damage():
                with _lock(self.store, step, seed) as free:
                    self._forget_damaged(step, seed, step.damage() if free else [])
        for data, seed in _features(wanted):
            for problem in drop_damaged(data, seed, self.store.root / "features"):
                self.say(f"features of seed {seed}: {problem}; they are made again")

    def _forget_damaged(self, step: Step, seed: int, problems: list[str]) -> None:
        for problem in problems:
            self.say(f"{step}: {problem}; it is made again")
        if problems:
            self.store.forget_arrays(step.unit.name, step.unit.digest, seed)

    def _pass(self, todo: list[Work], result: RunResult) -> list[Work]:
        """Once through; gives what another run is at work on."""
        waiting = []
        for i, work in enumerate(todo):
            if not work.missing():
                continue
            failures = self._failures(work, todo[i:])
            if failures is None:
                waiting.append(work)
                continue
            result.rows.extend(work.finish())
            for method in dict.fromkeys(work.missing().values()):
                if method in failures:
                    result.failed[method, work.seed] = failures[method]
                else:
                    result.left.append((method, work.seed))
        return waiting

    def _failures(self, work: Work, todo: list[Work]) -> dict[str, str] | None:
        """Run the steps that are missing, while there is time; gives why methods have no row.

        None says that another run is at work on a step.
        """
        for step in work.steps:
            key = step.unit.digest, work.seed
            if key not in self.broken:
                with _lock(self.store, step, work.seed) as free:
                    if step.is_done(alone=free):
                        continue
                    if not free:
                        return None
                    if self.clock.too_late(step.unit):
                        return {}
                    outcome = self._outcome(step, todo)
                if outcome.kind == PAUSED:
                    return {}
                if outcome.kind == "done":
                    failed: dict[str, str] = json.loads(outcome.message or "{}")
                    if failed:
                        return failed
                    continue
                self.broken[key] = f"{step.title}: {outcome.message}"
            return dict.fromkeys(work.missing().values(), self.broken[key])
        return {}

    def _outcome(self, step: Step, todo: list[Work]) -> Outcome:
        """Do a step in a process of its own, and tell how it went."""
        expected = self.clock.expected(step.unit)
        self.say(f"{step}" + (f", about {duration(expected)}" if expected else ""))
        try:
            check_data_there(step)
        except DataError as error:
            raise StoppedError(str(error)) from error
        start = time.perf_counter()
        outcome = run_in_process(replace(step, deadline=self.clock.end), self._progress(step))
        if outcome.kind in FATAL:
            raise StoppedError(outcome.message)
        if outcome.kind == "done":
            took = duration(time.perf_counter() - start)
            self.say(f"{step}: {took}; {self.clock.remaining(_untrained(todo))}")
        else:
            failed = "" if outcome.kind == PAUSED else "FAILED: "
            self.say(f"{step}: {failed}{outcome.message}")
        return outcome

    def _progress(self, step: Step) -> Say:
        """Says what a process says, of its epochs only some."""
        epochs = seldom(self.say, f"{step}: ")
        return lambda text: (
            epochs(text) if text.startswith("epoch ") else self.say(f"{step}: {text}")
        )

    def _wait_for_others(self, waiting: list[Work]) -> None:
        names = "; ".join(dict.fromkeys(str(work.steps[-1]) for work in waiting))
        self.say(f"another run is at work on {names}; waiting for it")
        time.sleep(_PAUSE)


@contextmanager
def _lock(store: Store, step: Step, seed: int) -> Iterator[bool]:
    """Hold the lock of a step if it is free; gives whether it was.

    It vanishes with the process that holds it, also when that is killed.
    """
    folder: Path = store.arrays_folder(step.unit.name, step.unit.digest, seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(f".{seed}.lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _features(wanted: list[Work]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Data and seed of the features of spectra that what is missing needs."""
    found = {
        (config_hash(data), work.seed): data
        for work in wanted
        if isinstance(work, MethodWork) and work.missing()
        for data in [work.method.config["data"]]
        if data.get("dataset") in SPECTRA
    }
    yield from ((data, seed) for (_, seed), data in found.items())


def _untrained(todo: list[Work]) -> list[Any]:
    """Parts and cells that are still to be done, once for each seed."""
    found = {
        (step.unit.name, step.unit.digest, work.seed): step.unit
        for work in todo
        for step in work.steps
        if not step.is_done(alone=False)
    }
    return list(found.values())
