"""Work of a run: methods with the trained parts below them, and cells of a crossed suite."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..results.rows import make_row
from ..results.store import Store
from ..spec.cells import Cell, CellMethod
from ..spec.plan import MethodPart, Part, trained_parts

Row = dict[str, Any]


class DataError(Exception):
    """The data of a suite cannot be had: nothing can be trained."""


@dataclass(frozen=True)
class Place:
    """Where results go, and where the data sets lie."""

    store: Store
    data_dir: str | None


@dataclass(frozen=True, eq=False)
class PartStep:
    """Training of one part with one seed.

    `deadline` is a time of ``time.monotonic()``, which processes share.
    """

    place: Place
    unit: Part
    seed: int
    deadline: float | None = None

    @property
    def title(self) -> str:
        """Role and name."""
        return f"{self.unit.role} {self.unit.name}"

    def __str__(self) -> str:
        return f"seed {self.seed}  {self.title}"

    @property
    def checkpoint(self) -> Path:
        """Where a training leaves its state, so that it goes on after a kill."""
        return self.place.store.checkpoint(self.unit.name, self.unit.digest, self.seed)

    def damage(self) -> list[str]:
        """Return the damage of its stored arrays, file by file."""
        return self.place.store.damage(self.unit.name, self.unit.digest, self.seed)

    def forget(self) -> None:
        """Remove the state of the training."""
        shutil.rmtree(self.checkpoint.parent, ignore_errors=True)

    def is_done(self, alone: bool) -> bool:
        """Return whether its arrays are stored; `alone` says that no other run is at work on it."""
        done = self.place.store.has_arrays(self.unit.name, self.unit.digest, self.seed)
        if done and alone:  # killed between its last two steps
            self.forget()
        return done


@dataclass(frozen=True, eq=False)
class MethodWork:
    """The row of a method with one seed, made of the arrays of its trained parts."""

    place: Place
    method: MethodPart
    seed: int
    resamples: int
    n_rows: int = 1

    @property
    def steps(self) -> Sequence[PartStep]:
        """Its parts, each after what it needs."""
        return [PartStep(self.place, part, self.seed) for part in trained_parts(self.method)]

    def missing(self) -> dict[str, str]:
        """Its name, if it has no row, or if arrays of its parts wait to be made again."""
        name, store = self.method.name, self.place.store
        there = store.has_row(name, self.method.digest, self.seed)
        waiting = (store.is_waiting(s.unit.name, s.unit.digest, self.seed) for s in self.steps)
        return {name: name} if not there or any(waiting) else {}

    def finish(self) -> list[Row]:
        """Write the row, if all parts are trained; gives it if it was not there."""
        if not all(step.is_done(alone=False) for step in self.steps):
            return []
        row = self._row()
        return [row] if self.place.store.append(row) else []

    def _row(self) -> Row:
        method, store = self.method, self.place.store
        receipts = {
            part.role: {
                "name": part.name,
                "config_hash": part.digest,
                **store.receipt(part.name, part.digest, self.seed),
            }
            for part in trained_parts(method)
        }
        own = receipts.pop("method")
        head = {
            "suite": store.suite,
            "profile": store.profile,
            "method": method.name,
            "title": method.spec.title,
            "seed": self.seed,
            "config": method.config,
            "config_hash": method.digest,
        }
        arrays = store.load(method.name, method.digest, self.seed)
        return make_row(head, arrays=arrays, own=own, parts=receipts, n_resamples=self.resamples)


@dataclass(frozen=True, eq=False)
class CellWork:
    """The rows of all methods of a cell; its only step, itself, writes them method by method.

    `rows` holds, by name of a row, its method and the hash of its config. No method is begun after
    the deadline.
    """

    place: Place
    unit: Cell
    methods: tuple[CellMethod, ...]
    rows: Mapping[str, tuple[str, str]]
    deadline: float | None = None

    @property
    def seed(self) -> int:
        """Seed of the cell."""
        return self.unit.seed

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.rows)

    @cached_property
    def wanted(self) -> dict[str, str]:
        """The rows that were missing at first."""
        return self.lacking()

    @property
    def steps(self) -> Sequence[CellWork]:
        """The cell."""
        return [self]

    @property
    def title(self) -> str:
        """Data set and classifier."""
        return self.unit.place

    def __str__(self) -> str:
        return str(self.unit)

    def missing(self) -> dict[str, str]:
        """Place and name of each row that is not there -> those of its method."""
        return {f"{self.title}: {r}": f"{self.title}: {m}" for r, m in self.lacking().items()}

    def damage(self) -> list[str]:
        """Return the damage of the stored weights of its classifier, if a row still needs them."""
        unit = self.unit
        return self.place.store.damage(unit.name, unit.digest, self.seed) if self.lacking() else []

    def is_done(self, alone: bool) -> bool:
        """Return whether every row is there."""
        return not self.wanted or not self.lacking()

    def finish(self) -> list[Row]:
        """The rows that were missing at first and are there now."""
        keys = {(row, self.rows[row][1], self.seed) for row in self.wanted}
        rows = self.place.store.rows()
        return [row for row in rows if (row["method"], row["config_hash"], row["seed"]) in keys]

    def lacking(self) -> dict[str, str]:
        """Name of each row that is not in the store -> name of its method."""
        return {
            row: method
            for row, (method, digest) in self.rows.items()
            if not self.place.store.has_row(row, digest, self.seed)
        }


def rows_of(cell: Cell, methods: Sequence[CellMethod]) -> dict[str, tuple[str, str]]:
    """Name of each row of a cell -> name of its method, and hash of its config."""
    return {
        row: (method.name, digest)
        for method in methods
        if method.runs_in(cell)
        for row, digest in method.digests(cell).items()
    }


#: What runs in a process of its own, one process at a time for each unit and seed.
Step = PartStep | CellWork
#: Rows of one seed, and the steps that lead to them.
Work = MethodWork | CellWork
