"""What a run has to do: methods with the trained parts below them, and cells of a crossed suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..results.rows import make_row
from ..results.store import Store
from ..spec.cells import Cell, CellMethod
from ..spec.plan import MethodPart, Part, trained_parts
from .cells.cell import missing_rows
from .job import CellJob, PartJob

__all__ = ["CellWork", "MethodWork", "PartStep", "Place", "Step", "Work"]

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where results go, and where the data sets lie."""

    store: Store
    data_dir: str | None

    def of_job(self, deadline: float | None) -> dict[str, Any]:
        """What every job is told."""
        return {
            "root": str(self.store.root),
            "suite": self.store.suite,
            "profile": self.store.profile,
            "data_dir": self.data_dir,
            "deadline": deadline,
        }


@dataclass(frozen=True, eq=False)
class PartStep:
    """Training of one part with one seed."""

    place: Place
    unit: Part
    seed: int

    @property
    def title(self) -> str:
        """Role and name."""
        return f"{self.unit.role} {self.unit.name}"

    def __str__(self) -> str:
        return f"seed {self.seed}  {self.title}"

    def is_done(self, alone: bool) -> bool:
        """Whether its arrays are stored; `alone` says that no other run is at work on it."""
        done = self.place.store.has_arrays(self.unit.name, self.unit.digest, self.seed)
        if done and alone:  # killed between its last two steps
            self.job(None).forget()
        return done

    def job(self, deadline: float | None) -> PartJob:
        """What its process is told."""
        part = self.unit
        spec = part.spec if isinstance(part, MethodPart) else None
        return PartJob(
            **self.place.of_job(deadline),
            role=part.role,
            name=part.name,
            digest=part.digest,
            seed=self.seed,
            table=part.table,
            place=part.where,
            data=part.config["data"],
            below={role: (below.name, below.digest) for role, below in part.below.items()},
            tables={role: below.table for role, below in part.below.items()},
            sees="predictions" if spec is None else spec.sees,
            statistics="train" if spec is None else spec.statistics,
            uncertainty=None if spec is None else spec.uncertainty,
        )


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
        """Its name, if it has no row."""
        name = self.method.name
        there = self.place.store.has_row(name, self.method.digest, self.seed)
        return {} if there else {name: name}

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
        return make_row(
            suite=store.suite,
            profile=store.profile,
            method=method.name,
            title=method.spec.title,
            seed=self.seed,
            config=method.config,
            digest=method.digest,
            arrays=store.load(method.name, method.digest, self.seed),
            own=own,
            parts=receipts,
            n_resamples=self.resamples,
        )


@dataclass(frozen=True, eq=False)
class CellWork:
    """The rows of all methods of a cell; its only step, itself, writes them method by method.

    `rows` holds, by name of a row, its method and the hash of its config.
    """

    place: Place
    unit: Cell
    methods: tuple[CellMethod, ...]
    rows: Mapping[str, tuple[str, str]]

    @property
    def seed(self) -> int:
        """That of the cell."""
        return self.unit.seed

    @property
    def n_rows(self) -> int:
        """How many rows."""
        return len(self.rows)

    @cached_property
    def wanted(self) -> dict[str, str]:
        """The rows that were missing at first."""
        return self._lacking()

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
        at = self.unit.place
        return {f"{at}: {row}": f"{at}: {method}" for row, method in self._lacking().items()}

    def is_done(self, alone: bool) -> bool:
        """Whether every row is there."""
        return not self.wanted or not self._lacking()

    def job(self, deadline: float | None) -> CellJob:
        """What its process is told."""
        return CellJob(**self.place.of_job(deadline), cell=self.unit, methods=self.methods)

    def finish(self) -> list[Row]:
        """The rows that were missing at first and are there now."""
        keys = {(row, self.rows[row][1], self.seed) for row in self.wanted}
        rows = self.place.store.rows()
        return [row for row in rows if (row["method"], row["config_hash"], row["seed"]) in keys]

    def _lacking(self) -> dict[str, str]:
        return missing_rows(self.place.store, self.unit, self.rows)


#: What runs in a process of its own, one process at a time for each unit and seed.
Step = PartStep | CellWork
#: Rows of one seed, and the steps that lead to them.
Work = MethodWork | CellWork
