"""``dipedl inspect`` and ``dipedl check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..terminal import names_in
from . import options, running


def inspect(
    model: options.Model,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what a model's file holds: versions, columns, what it was fitted on.

    Nothing in the file is built or executed.
    """
    with running.mistakes_told(quiet):
        from ...own_data.saved import inspected

        with running.step(f"{model} read", verbose):
            found = inspected(model)
    if json:
        running.as_json(found)
        return
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items() if v)
    lines = {
        "File": f"{model}, {found['megabytes']:.1f} MB, format {found['format']}",
        "Type": f"{found['type']}, {found['arrays']} arrays, all checksums right",
        "Versions": versions,
        "Classes": ", ".join(map(str, found["classes"] or [])) or "none",
        "Samples": f"{found['n']:,.0f}" if found["n"] else "none",
        "Untrusted": ", ".join(found["untrusted_types"]) or "no types",
    }
    for name, text in lines.items():
        typer.echo(f"{name + ':':<11}{text}")
    _print_table(found["table"])


def _print_table(table: dict[str, Any] | None) -> None:
    if table is None:
        typer.echo("Table:     none; the model was made in Python")
        return
    from ...own_data.saved import inputs_told

    facts = table["facts"]
    held = facts["held_out"]
    typer.echo(f"Target:    {table['target']}")
    typer.echo(f"Fitted on: {facts['file']} ({facts['format']}), {facts['learned']:,} rows")
    typer.echo(f"Model:     {facts['model_title']}")
    typer.echo(f"Held out:  accuracy {held['accuracy']:.3f}, Brier score {held['brier']:.3f}")
    kinds = {column["name"]: column["kind"] for column in table["columns"]}
    for name, kind in inputs_told(kinds, facts).items():
        typer.echo(f"  {name:<20} {kind}")


def check(
    data: options.Data,
    target: Annotated[str, typer.Option(help="The column to predict.")],
    test: Annotated[
        Path | None, typer.Option(help="Another table, to find rows that are in both.")
    ] = None,
    drop: Annotated[str, typer.Option(help="Columns to leave out: id,name.")] = "",
    types: options.Types = "",
    gaps: options.Gaps = "",
    delimiter: options.Delimiter = None,
    rows: Annotated[
        int, typer.Option(help="Look at so many rows, drawn at random; 0: at all.", min=0)
    ] = 100_000,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Say what is wrong with a table before anything is fitted.

    Leaks of the target, ids, duplicates, rare classes, constant columns, gaps, dates, rows that are
    in a test table too. The exit code is 3 if there are warnings.
    """
    with running.mistakes_told(quiet):
        from ...own_data.checking import checked

        tables = [running.opened(path, delimiter, names_in(gaps)) for path in (data, test) if path]
        if not quiet:
            typer.echo(f"Reading {data} and looking ...", err=True)
        with running.step("rows read and checked", verbose):
            found = checked(tables, target, names_in(drop), running.pairs_in(types), rows or None)
    if json:
        running.as_json(found.to_dict())
    else:
        typer.echo(str(found))
    if found.warnings:
        raise typer.Exit(running.PARTIAL)
