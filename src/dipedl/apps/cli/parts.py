"""Options and engines of a fit or an answer in parts: here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import fail

if TYPE_CHECKING:
    from ..large import Engine

Engine_ = Annotated[str | None, typer.Option("--engine", help="local or ray: work in parts.")]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster, host:port or auto; default: Ray runs here.")
]
Workers = Annotated[
    int | None, typer.Option(help="Parts that run at a time; default: one for each core.", min=1)
]
Partitions = Annotated[
    str | None, typer.Option(help="Largest part: rows, as 100000, or memory, as 64MB.")
]
NO_CSV = "is for a CSV file, and parts are Parquet, Arrow or Feather files: leave it out"


@dataclass(frozen=True)
class PartOptions:
    """Options of a fit or an answer in parts."""

    engine: str | None
    address: str | None
    workers: int | None
    partitions: str | None
    resume: bool
    overwrite: bool
    dry_run: bool

    def __bool__(self) -> bool:
        """Return whether any option was given."""
        return any(value not in (None, False) for value in asdict(self).values())


def is_data_set(data: str) -> bool:
    """Return whether a path is a URL, an array, or a folder with Parquet, Arrow or Feather files.

    A folder of texts, such as CSV, is one table, and so is one without a file.
    """
    if "://" in data or data.endswith(".npy"):
        return True
    names = [one.name.lower() for one in Path(data).iterdir()] if Path(data).is_dir() else []
    return bool(names) and not any(n.endswith((".csv", ".csv.gz", ".tsv", ".jsonl")) for n in names)


@contextmanager
def engine_of(options: PartOptions) -> Iterator[Engine]:
    """Yield the engine of the options."""
    from ..large import LocalEngine, RayEngine

    if options.engine not in (None, "local", "ray"):
        fail(f"--engine must be local or ray, got {options.engine!r}")
    if options.engine == "ray":
        with RayEngine(options.address, options.workers) as engine:
            yield engine
    elif options.address is not None:
        fail("--address belongs to --engine ray")
    else:
        yield LocalEngine(options.workers or -1)
