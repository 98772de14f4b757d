"""``dipedl explain`` of rows, and ``dipedl inspect`` of a model's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...writing.text import one_line
from . import options
from .terminal import PARTIAL, echo, echo_json, list_rejected, refuse_options, report_errors

_FIRST = 10


def explain(
    context: typer.Context,
    model: options.Model,
    data: Annotated[
        str, typer.Argument(help='A row as JSON, {"age": 40, ...}, or a table in any format.')
    ],
    top: Annotated[int, typer.Option(help="Columns to name for each density.", min=1)] = 5,
    rows: Annotated[int, typer.Option(help="Most rows to explain.", min=1)] = _FIRST,
    row: Annotated[
        int | None, typer.Option(help="Only this row, by its number as in the answers.", min=1)
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="What each part of the density saw, too.")
    ] = False,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say why rows got their answers: how rare each is, and its columns that are unusual or new.

    Three lines for each row; --details adds the evidence and the parts of the density.
    """
    if row is not None:
        refuse_options(
            context, {"rows": "is for the first rows, and --row names one: leave it out"}
        )
    with report_errors(quiet):
        from ..table.reading import row_of_json
        from ..table.score import explain_rows
        from ..table.table_model import read_model

        if not data.startswith("{"):
            options.check_order(model, Path(data))
        fitted = read_model(model)
        if data.startswith("{"):
            table = row_of_json(data)
        else:
            table = options.open_for(fitted, model, Path(data), delimiter)
        cards, refused = explain_rows(fitted, table, rows, top, row)
    if json:
        named = [{"row": one.row} | ({"file": one.file} if one.file else {}) for one in cards]
        echo_json([name | one.card.to_dict() for name, one in zip(named, cards, strict=True)])
    else:
        for one in cards:
            text = str(one.card) if details else one.card.summary()
            echo(f"Row {one.row}{', ' * bool(one.file)}{one.file}\n{text}\n")
    if refused:
        list_rejected(refused, len(refused))
        raise typer.Exit(PARTIAL)


def inspect(
    model: options.Model,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what a model's file holds: versions, columns, what it was fitted on.

    Nothing in the file is built or executed.
    """
    with report_errors(quiet):
        from ..table.table_model import inspect_model

        found = inspect_model(model)
        if json:
            echo_json(found)
            return
    versions = ", ".join(f"{name} {v}" for name, v in found["versions"].items() if v)
    lines = {
        "File": f"{model}, {found['megabytes']:.1f} MB, format {found['format']}",
        "Type": f"{found['type']}, {found['arrays']} arrays, all checksums right",
        "Versions": versions,
        "Classes": ", ".join(map(one_line, map(str, found["classes"] or []))) or "none",
        "Samples": f"{found['n']:,.0f}" if found["n"] else "none",
        "Untrusted": ", ".join(found["untrusted_types"]) or "no types",
    }
    for name, text in lines.items():
        echo(f"{name + ':':<11}{text}")
    if found["type"].endswith("DriftMonitor"):
        echo("Table:     none; the file holds a monitor, which dipedl monitor takes as --state")
        return
    _print_table(found["table"])


def _print_table(table: dict[str, Any] | None) -> None:
    if table is None:
        echo("Table:     none; the model was made in Python")
        return
    from ..table.table_model import describe_inputs, describe_rows_learned

    facts = table["facts"]
    held_out = facts["held_out"]
    echo(f"Target:    {one_line(table['target'])}")
    echo(f"Fitted on: {facts['file']} ({facts['format']}), {describe_rows_learned(facts)}")
    echo(f"Model:     {facts['model_title']}")
    echo(f"Held out:  accuracy {held_out['accuracy']:.3f}, Brier score {held_out['brier']:.3f}")
    kinds = {column["name"]: column["kind"] for column in table["columns"]}
    for name, kind in describe_inputs(kinds, facts).items():
        echo(f"  {one_line(name):<20} {kind}")
