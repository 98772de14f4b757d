"""What a process is told to do: train one part, or run the methods of one cell."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..results.store import Store
from ..spec.cells import Cell, CellMethod

__all__ = ["CellJob", "DataError", "Job", "PartJob"]


class DataError(Exception):
    """The data of a suite cannot be had: nothing can be trained."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a process needs to know, and nothing that cannot be pickled.

    `where` says file and key of what is trained, for errors; `deadline` is a time of
    ``time.monotonic()``, which processes share.
    """

    root: str
    suite: str
    profile: str
    data_dir: str | None = None
    deadline: float | None = None

    @property
    def store(self) -> Store:
        """Where results go."""
        return Store(self.root, self.suite, self.profile)

    @property
    def where(self) -> str:
        """File and key of what is trained, for errors."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PartJob(Job):
    """One part to train.

    `below` holds name and hash of the trained parts below it by role, `tables` their class and
    arguments.
    """

    role: str
    name: str
    digest: str
    seed: int
    table: dict[str, Any]
    place: str
    data: dict[str, Any]
    below: dict[str, tuple[str, str]]
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    sees: str = "predictions"
    statistics: str = "train"
    uncertainty: str | None = None

    @property
    def where(self) -> str:
        """File and key of the part."""
        return self.place

    @property
    def checkpoint(self) -> Path:
        """Where a training leaves its state, so that it goes on after a kill."""
        return self.store.checkpoint(self.name, self.digest, self.seed)

    def forget(self) -> None:
        """Remove the state of the training."""
        shutil.rmtree(self.checkpoint.parent, ignore_errors=True)


@dataclass(frozen=True, kw_only=True)
class CellJob(Job):
    """A cell and its methods; no method is begun after the deadline."""

    cell: Cell
    methods: tuple[CellMethod, ...]

    @property
    def where(self) -> str:
        """File and key of the classifier."""
        return self.cell.where
