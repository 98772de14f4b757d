"""``dipedl check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .terminal import PARTIAL, echo, echo_json, names_in, pairs_in, report_errors


def check(
    data: options.Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    test: Annotated[
        Path | None, typer.Option(help="Another table, to find rows that are in both.")
    ] = None,
    drop: options.Drop = "",
    types: options.Types = "",
    gaps: options.Gaps = "",
    delimiter: options.Delimiter = None,
    rows: Annotated[
        int, typer.Option(help="Rows to look at, drawn at random; 0: all.", min=0)
    ] = 100_000,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong with a table before anything is fitted.

    Leaks of the target, ids, duplicates, rare classes, constant columns, gaps, dates, rows that are
    in a test table too. The exit code is 3 if there are warnings.
    """
    with report_errors(quiet):
        from ..table.check import check_table
        from ..table.reading import open_table
        from .terminal import diagnosis_in_shell

        how: dict[str, Any] = {"delimiter": delimiter, "gaps": names_in(gaps)}
        tables = [open_table(path, **how) for path in (data, test) if path]
        if not quiet:
            echo(f"Reading {data} and looking ...", err=True)
        found = check_table(tables, target, names_in(drop), pairs_in(types), rows or None)
    found = diagnosis_in_shell(found)
    if json:
        echo_json(found.to_dict())
    else:
        echo(str(found))
    if found.warnings:
        raise typer.Exit(PARTIAL)
