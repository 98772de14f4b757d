"""``dipedl inspect``."""

from __future__ import annotations

from typing import Any

from ...writing.text import one_line
from . import options
from .terminal import echo, echo_json, report_errors


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
