"""Runs a suite: trains what is missing, one part at a time, and appends rows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..results.rows import make_row, rescored
from ..results.store import Store, default_root, load_rows
from ..spec.plan import MethodPart, Part, plan, trained_parts
from ..spec.stand_in import first_there
from ..spec.suite import Profile, Suite, chosen_ood, load_suite
from .clock import Clock, duration, seldom
from .devices import check_devices
from .lock import try_locked
from .process import run_in_process
from .worker import FATAL, PAUSED, Job

__all__ = ["RunResult", "StoppedError", "rescore", "run"]

Say = Callable[[str], None]


class StoppedError(RuntimeError):
    """Nothing more can be run: data is missing, or there is no space; what is there is kept."""


@dataclass(frozen=True)
class RunResult:
    """What a run did.

    Attributes
    ----------
    rows : list of dict
        New rows.
    present : int
        Rows that were there before.
    failed : dict of (str, int) to str
        Why there is no row of a (method, seed).
    left : list of (str, int)
        Methods and seeds that the budget left for the next run.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    present: int = 0
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    left: list[tuple[str, int]] = field(default_factory=list)


def run(
    suite: str | os.PathLike[str],
    *,
    profile: str = "smoke",
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
    they are complete, and the row is written from them. So the run may be killed at any time, and
    the same call goes on; two runs on one folder share the work.

    Parameters
    ----------
    suite : str or path-like
        Name of a suite of the package, or the path of a TOML file.
    profile : str, default="smoke"
        How much of everything; a name of the suite.
    methods : iterable of str, optional
        Names of the suite's methods; default: all of the profile.
    seeds : iterable of int, optional
        For every method; default: those that the method, the profile or the suite has.
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

    Returns
    -------
    RunResult
        New rows, and what failed or was left.

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
    where = str(suite) if str(suite).endswith(".toml") else f"{suite}.toml"
    chosen = loaded.chosen_methods(profile, methods)
    say = progress or (lambda text: None)
    folder = os.environ.get("DIPEDL_DATA") if data_dir is None else str(data_dir)
    setting = loaded.profile(profile)
    ood = chosen_ood(loaded, setting, lambda names: first_there(names, folder, say))
    parts = plan(loaded, profile, chosen, where, ood)
    store = Store(out or default_root(), loaded.name, profile)
    todo = _in_order(parts, loaded, setting, seeds)
    return _Run(loaded, profile, store, Clock(store, budget), folder, say).go(todo)


def rescore(
    suite: str | os.PathLike[str],
    *,
    profile: str,
    out: str | os.PathLike[str] | None = None,
) -> int:
    """Compute the metrics of all rows again from their arrays; gives the number of rows.

    Rows whose arrays have been deleted stay as they are.
    """
    loaded = load_suite(suite)
    resamples = loaded.profile(profile).resamples
    store = Store(out or default_root(), loaded.name, profile)
    load_rows(loaded.name, profile, out)  # says so if there are none
    return store.change_rows(
        lambda row: (
            rescored(row, store.arrays_of(row), resamples)
            if store.has_arrays(row["method"], row["config_hash"], row["seed"])
            else row
        )
    )


def _in_order(
    methods: list[MethodPart], suite: Suite, profile: Profile, seeds: Iterable[int] | None
) -> list[tuple[MethodPart, int]]:
    """Methods with their seeds: all that have the first seed before any has the second."""
    asked = None if seeds is None else tuple(dict.fromkeys(seeds))
    of_method = [asked or m.spec.seeds or profile.seeds or suite.seeds for m in methods]
    every = list(dict.fromkeys(seed for found in of_method for seed in found))
    if asked == () or not every or any(seed < 0 for seed in every):
        raise ValueError(f"seeds must be integers >= 0, at least one, got {every}")
    pairs = list(zip(methods, of_method, strict=True))
    return [(m, seed) for seed in every for m, found in pairs if seed in found]


@dataclass
class _Run:
    suite: Suite
    profile: str
    store: Store
    clock: Clock
    data_dir: str | None
    say: Say

    def go(self, wanted: list[tuple[MethodPart, int]]) -> RunResult:
        todo = [(method, seed) for method, seed in wanted if not self._there(method, seed)]
        result = RunResult(present=len(wanted) - len(todo))
        methods, seeds = dict.fromkeys(m for m, _ in wanted), dict.fromkeys(s for _, s in wanted)
        self.say(
            f"{self.suite.name}, profile {self.profile}: {len(methods)} methods, seeds "
            f"{', '.join(map(str, seeds))}; {result.present} rows are there, {len(todo)} to do; "
            f"in {self.store.folder}"
        )
        if todo:
            check_devices(methods)
        broken: dict[tuple[str, int], str] = {}
        while todo:
            waiting = self._pass(todo, result, broken)
            if len(waiting) == len(todo):
                self._wait_for_others(waiting)
            todo = waiting
        return result

    def _pass(
        self,
        todo: list[tuple[MethodPart, int]],
        result: RunResult,
        broken: dict[tuple[str, int], str],
    ) -> list[tuple[MethodPart, int]]:
        """Once through; gives those that another run is at work on."""
        waiting = []
        for i, (method, seed) in enumerate(todo):
            if self._there(method, seed):
                continue
            state = self._parts_ready(method, seed, todo[i:], broken)
            if state == "busy":
                waiting.append((method, seed))
            elif state == "late":
                result.left.append((method.name, seed))
            elif state == "ready":
                row = self._row(method, seed)
                if self.store.append(row):
                    result.rows.append(row)
            else:
                result.failed[method.name, seed] = state
        return waiting

    def _parts_ready(
        self,
        method: MethodPart,
        seed: int,
        todo: list[tuple[MethodPart, int]],
        broken: dict[tuple[str, int], str],
    ) -> str:
        """Train what is missing: "ready", "busy", "late", or why it failed."""
        for part in trained_parts(method):
            if (part.digest, seed) in broken:
                return broken[part.digest, seed]
            lock = self.store.arrays_folder(part.name, part.digest, seed)
            with try_locked(lock.with_name(f".{seed}.lock")) as free:
                if self.store.has_arrays(part.name, part.digest, seed):
                    if free:  # killed between its last two steps
                        self._job(part, seed).forget()
                    continue
                if not free:
                    return "busy"
                if self.clock.too_late(part):
                    return "late"
                failure = self._train(part, seed, todo)
            if failure == PAUSED:
                return "late"
            if failure:
                broken[part.digest, seed] = f"{part.role} {part.name}: {failure}"
                return broken[part.digest, seed]
        return "ready"

    def _train(self, part: Part, seed: int, todo: list[tuple[MethodPart, int]]) -> str:
        """Train one part in a process of its own; gives what went wrong, "paused", or nothing."""
        label = f"seed {seed}  {part.role} {part.name}"
        expected = self.clock.expected(part)
        self.say(f"{label}" + (f", about {duration(expected)}" if expected else ""))
        start = time.perf_counter()
        outcome = run_in_process(self._job(part, seed), seldom(self.say, f"{label}: "))
        if outcome.kind in FATAL:
            raise StoppedError(outcome.message)
        if outcome.kind == PAUSED:
            self.say(f"{label}: {outcome.message}")
            return PAUSED
        if outcome.kind != "done":
            self.say(f"{label}: FAILED: {outcome.message}")
            return outcome.message
        took = duration(time.perf_counter() - start)
        self.say(f"{label}: {took}; {self.clock.remaining(_missing(self.store, todo))}")
        return ""

    def _job(self, part: Part, seed: int) -> Job:
        spec = part.spec if isinstance(part, MethodPart) else None
        return Job(
            root=str(self.store.root),
            suite=self.store.suite,
            profile=self.store.profile,
            role=part.role,
            name=part.name,
            digest=part.digest,
            seed=seed,
            table=part.table,
            where=part.where,
            data=part.config["data"],
            below={role: (below.name, below.digest) for role, below in part.below.items()},
            tables={role: below.table for role, below in part.below.items()},
            sees="answers" if spec is None else spec.sees,
            statistics="train" if spec is None else spec.statistics,
            uncertainty=None if spec is None else spec.uncertainty,
            data_dir=self.data_dir,
            deadline=self.clock.end,
        )

    def _row(self, method: MethodPart, seed: int) -> dict[str, Any]:
        receipts = {
            part.role: {
                "name": part.name,
                "config_hash": part.digest,
                **self.store.receipt(part.name, part.digest, seed),
            }
            for part in trained_parts(method)
        }
        own = receipts.pop("method")
        return make_row(
            suite=self.store.suite,
            profile=self.store.profile,
            method=method.name,
            title=method.spec.title,
            seed=seed,
            config=method.config,
            digest=method.digest,
            arrays=self.store.load(method.name, method.digest, seed),
            own=own,
            parts=receipts,
            n_resamples=self.suite.profile(self.profile).resamples,
        )

    def _there(self, method: MethodPart, seed: int) -> bool:
        return self.store.has_row(method.name, method.digest, seed)

    def _wait_for_others(self, waiting: list[tuple[MethodPart, int]]) -> None:
        names = ", ".join(f"{method.name} ({seed})" for method, seed in waiting)
        self.say(f"another run is at work on {names}; waiting for it")
        time.sleep(2)


def _missing(store: Store, todo: list[tuple[MethodPart, int]]) -> list[Part]:
    """Parts that are still to be trained, once for each seed."""
    found = {
        (part.name, part.digest, seed): part
        for method, seed in todo
        for part in trained_parts(method)
        if not store.has_arrays(part.name, part.digest, seed)
    }
    return list(found.values())
