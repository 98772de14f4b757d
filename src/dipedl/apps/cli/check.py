"""``dipedl check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .terminal import (
    PARTIAL,
    echo,
    echo_json,
    names_in,
    pairs_in,
    refuse_options,
    report_errors,
    show_classes,
)


def check(
    context: typer.Context,
    data: options.Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    test: Annotated[
        Path | None, typer.Option(help="Another table, to find rows that are in both.")
    ] = None,
    drop: options.Drop = "",
    types: options.Types = "",
    gaps: options.Gaps = "",
    delimiter: options.Delimiter = None,
    rows: options.Rows = 100_000,
    group_column: options.GroupColumn = None,
    unknown: options.Unknown = False,
    model: Annotated[
        str, typer.Option(help="With --unknown: boosting, forest, linear, mlp or a .skops file.")
    ] = "boosting",
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what is wrong with a table before anything is fitted.

    Leaks of the target, ids, duplicates, rare classes, constant columns, gaps, codes such as -9999,
    dates, rows that are in a test table too. The exit code is 3 if there are warnings. With
    --unknown: how much of each class a model would flag that was fitted without it.
    """
    if not unknown:
        refuse_options(context, {"model": "is for --unknown, which is not given"})
    with report_errors(quiet):
        from ..table.check import check_table
        from ..table.reading import open_table
        from .terminal import diagnosis_in_shell

        how: dict[str, Any] = {"delimiter": delimiter, "gaps": names_in(gaps)}
        tables = [open_table(path, **how) for path in (data, test) if path]
        if not quiet:
            echo(f"Reading {data} and looking ...", err=True)
        dropped, kinds = names_in(drop), pairs_in(types)
        apart = [group_column] if group_column else []
        found = check_table(tables, target, [*dropped, *apart], kinds, rows or None)
        rehearsed = None
        if unknown:
            from ..table.fit import FitRequest, rehearse_table

            request = FitRequest(
                target, model, dropped, kinds, group_column=group_column, rows=rows or None
            )
            with show_classes(quiet, model) as show:
                rehearsed = rehearse_table(tables[0], request, show)
    found = diagnosis_in_shell(found)
    if json:
        also = {} if rehearsed is None else {"unknown": rehearsed.to_dict()}
        echo_json(found.to_dict() | also)
    else:
        echo("\n\n".join(map(str, [found] if rehearsed is None else [found, rehearsed])))
    if found.warnings:
        raise typer.Exit(PARTIAL)
