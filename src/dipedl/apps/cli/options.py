"""Arguments and options that several commands take: of own data, and of work in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .terminal import fail

if TYPE_CHECKING:
    from ..large import Engine
    from ..table.reading import Table
    from ..table.table_model import TableModel

Data = Annotated[
    Path, typer.Argument(help="CSV (also .gz), Parquet, Feather, Arrow, JSON lines or NPZ.")
]
Model = Annotated[Path, typer.Argument(help="A file that `dipedl fit` wrote.")]
Delimiter = Annotated[
    str | None,
    typer.Option(help="Character between the fields of a CSV file; default: found by itself."),
]
Drop = Annotated[
    str, typer.Option(help='Columns to leave out: id,name; one with a comma in quotes: id,"a, b".')
]
Gaps = Annotated[
    str, typer.Option(help="Words that stand for a gap in every column, the target too: 'NA,?'.")
]
Types = Annotated[
    str,
    typer.Option(help="Kinds in place of guessed ones: zip=category,day=date. Kinds: numeric, "
    "category, boolean, text, date."),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress and no notes, only the result.")
]
Rows = Annotated[
    int, typer.Option(help="Rows of each table to use, drawn at random; 0: all.", min=0)
]
Seed = Annotated[int, typer.Option(help="Seed of every random part.", min=0)]
Coverage = Annotated[
    float, typer.Option(help="How often prediction sets must hold the true class, in (0, 1).")
]


def input_files(*paths: Path | None) -> list[Path]:
    """Return the files that are read: those in a folder or of a pattern, too."""
    found: list[Path] = []
    for path in filter(None, paths):
        if path.is_dir():
            found += path.iterdir()
        else:
            found += path.parent.glob(path.name) if has_magic(path.name) else [path]
    return found


def check_order(model: Path, data: Path) -> None:
    """Refuse a table in place of the model where the model stands in place of the data."""
    from ..table.errors import UsageError
    from ..table.reading import is_model

    if is_model(data) and model.is_file() and not is_model(model):
        raise UsageError(f"{data} is a model, and {model} is none: MODEL comes first, then DATA")


def open_for(model: TableModel, file: Path, path: Path, delimiter: str | None) -> Table:
    """Open the table in a file, or of a folder of images, as the model of `file` was fitted."""
    from ..table.images import network_of, open_images
    from ..table.reading import open_table

    network = model.facts.get("images")
    if network is None:
        return open_table(path, delimiter=delimiter, gaps=model.gaps)
    return open_images(path, network_of(network, model.facts.get("images_sha256", ""), file.parent))


# Classes left out in turn

Unknown = Annotated[
    bool,
    typer.Option(
        "--unknown", help="Leave each class out of a fit in turn: how much of it would be flagged?"
    ),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(help="Persons, devices or sites: rows of others test a model. It is no input."),
]


# Fits and answers in parts: here or on a Ray cluster

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
    bool, typer.Option("--resume", help="Go on with the parts that a stopped run has finished.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take; write nothing.")]
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
