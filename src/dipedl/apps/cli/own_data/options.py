"""Arguments and options that several commands for own data take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
