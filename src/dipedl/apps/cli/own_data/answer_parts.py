"""``dipedl score`` of a data set in parts: into a folder, here or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import echo, fail
from . import running

if TYPE_CHECKING:
    from ...large import Accounting, Engine, Plan
    from ...table.score import ScoreRequest

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
Resume = Annotated[
    bool, typer.Option("--resume", help="Answer the parts that are not in the folder yet.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin again, in a folder that has answers.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Say what it would take, by a sample; write nothing.")
]
NO_CSV = "is for a CSV file, and parts are Parquet, Arrow or Feather files: leave it out"
_ENDINGS = (".csv", ".gz", ".feather", ".arrow", ".jsonl")


@dataclass(frozen=True)
class InParts:
    """Options of an answer in parts."""

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
    """Return whether a path is no single table: a folder, a URL, or an array."""
    return "://" in data or data.endswith(".npy") or Path(data).is_dir()


def refuse_options(context: typer.Context) -> None:
    """Refuse options of parts where there are none: for --proba, and for a model of images."""
    names = ("engine", "address", "workers", "partitions", "resume", "overwrite", "dry_run")
    why = "is for tables in parts: images, and --proba, are answered by one process; leave it out"
    running.refuse_given(context, dict.fromkeys(names, why))


def score_parts(
    model: Path,
    data: str,
    out: Path,
    wanted: ScoreRequest,
    asked: InParts,
    *,
    json: bool,
    quiet: bool,
) -> Accounting | None:
    """Answer a data set, or print what it would take."""
    from ...large import plan, score

    if asked.resume and asked.overwrite:
        fail("--resume and --overwrite exclude each other")
    if out.name.endswith(_ENDINGS):
        fail(f"--out {out}: parts are answered into a folder of Parquet files; name a folder")
    with engine_of(asked) as engine, _stopped(out):
        if asked.dry_run:
            workers = engine.workers
            found = plan(model, data, partitions=asked.partitions, wanted=wanted, workers=workers)
            _tell_plan(found, workers, json)
            return None
        with running.row_progress(quiet) as progress:
            return score(
                model,
                data,
                out,
                engine=engine,
                partitions=asked.partitions,
                wanted=wanted,
                resume=asked.resume,
                overwrite=asked.overwrite,
                progress=progress,
            )


def finish_parts(count: Accounting, json: bool) -> dict[str, Any]:
    """Tell what became of the parts; the same for JSON."""
    if not json:
        earlier = f", {count.resumed:,} of them by an earlier run" if count.resumed else ""
        echo(f"Parts:    {count.parts:,}{earlier}")
    for name, rows in list(count.smaller_batches.items())[:5]:
        echo(f"note: {name}: memory ran out; {rows:,} rows at once were answered", err=True)
    for name, reason in list(count.failed.items())[:5]:
        echo(f"failed: {name}: {reason}", err=True)
    if len(count.failed) > 5:
        echo(f"failed: {len(count.failed) - 5:,} more parts", err=True)
    names = ("parts", "resumed", "failed", "smaller_batches")
    return {name: getattr(count, name) for name in names}


@contextmanager
def engine_of(asked: InParts) -> Iterator[Engine]:
    """The engine that was asked for."""
    from ...large import LocalEngine, RayEngine

    if asked.engine not in (None, "local", "ray"):
        fail(f"--engine must be local or ray, got {asked.engine!r}")
    if asked.engine == "ray":
        with RayEngine(asked.address, asked.workers) as engine:
            yield engine
    elif asked.address is not None:
        fail("--address belongs to --engine ray")
    else:
        yield LocalEngine(asked.workers or -1)


@contextmanager
def _stopped(out: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        echo(f"\ndipedl: stopped; finished parts are in {out}, see --resume", err=True)
        raise typer.Exit(running.STOPPED) from None


def _tell_plan(found: Plan, workers: int, json: bool) -> None:
    workers = min(workers, found.parts)
    seconds = found.rows / (found.rows_per_second * workers)
    if json:
        running.as_json(asdict(found) | {"workers": workers, "seconds": seconds})
        return
    bad = f"; {found.unreadable:,} files cannot be read" if found.unreadable else ""
    echo(f"Parts:    {found.parts:,}, with {found.rows:,} rows{bad}")
    echo(f"Memory:   about {found.memory / 1e6:,.0f} MB for each of {workers} workers")
    echo(
        f"Time:     about {seconds:,.0f} s: {found.rows_per_second:,.0f} rows/s by each worker, "
        f"measured on {found.sample:,} rows"
    )
