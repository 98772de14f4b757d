"""Arguments and options that several commands for own data take."""

from __future__ import annotations

from collections.abc import Sequence
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Each step with its seconds.")]
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
    from ..table.formats import is_model

    if is_model(data) and model.is_file() and not is_model(model):
        raise UsageError(f"{data} is a model, and {model} is none: MODEL comes first, then DATA")


def open_file(
    path: Path, delimiter: str | None, gaps: Sequence[str] = (), numbers: bool = False
) -> Table:
    """Open the table in a file, as `open_table`."""
    from ..table.reading import open_table

    return open_table(path, delimiter=delimiter, gaps=gaps, numbers=numbers)


def open_for(model: TableModel, file: Path, path: Path, delimiter: str | None) -> Table:
    """Open the table in a file, or of a folder of images, as the model of `file` was fitted."""
    from ..table.images import network_of, open_images

    network = model.facts.get("images")
    if network is None:
        return open_file(path, delimiter, model.gaps)
    return open_images(path, network_of(network, model.facts.get("images_sha256", ""), file.parent))
