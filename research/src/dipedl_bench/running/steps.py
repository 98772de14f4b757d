"""Work of one process: a part of a cell that is trained, or the methods of a cell that are run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..results.store import Store
from ..spec.plan import Cell, Part

#: Takes a line of progress.
Say = Callable[[str], None]


class DataError(Exception):
    """The data of a suite cannot be had: nothing can be trained."""


@dataclass(frozen=True, eq=False)
class Step:
    """Training of a `part` of a cell; without one, a run of the methods of a crossed suite.

    `deadline` is a time of ``time.monotonic()``, which processes share.
    """

    store: Store
    data_dir: str | None
    cell: Cell
    part: Part | None = None
    deadline: float | None = None

    @property
    def unit(self) -> Part:
        """The part; without one, the classifier of the methods."""
        unit = self.part or self.cell.classifier
        assert unit is not None
        return unit

    @property
    def key(self) -> tuple[str, str, int]:
        """Name, hash and seed, by which the store knows it."""
        return self.unit.name, self.unit.digest, self.cell.seed

    @property
    def title(self) -> str:
        """Data set and classifier of a crossed suite; role and name in any other."""
        return self.cell.place or f"{self.unit.role} {self.unit.name}"

    def __str__(self) -> str:
        seed = f"seed {self.cell.seed}"
        return f"{self.title}, {seed}" if self.cell.place else f"{seed}  {self.title}"

    @property
    def checkpoint(self) -> Path:
        """Where a training leaves its state, so that it goes on after a kill."""
        return self.store.checkpoint(*self.key)


def steps_of(cell: Cell, store: Store, data_dir: str | None = None) -> list[Step]:
    """Steps of a cell, each after what it needs."""
    parts = [Step(store, data_dir, cell, part) for part in cell.parts]
    return parts + ([Step(store, data_dir, cell)] if cell.methods else [])
