"""``dipedl report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options, running


def report(
    model: options.Model,
    data: Annotated[
        Path, typer.Argument(help="Rows the fit has not seen, with their classes if known.")
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    ood: Annotated[
        Path | None, typer.Option(help="Rows that are of no class, to see whether it notices.")
    ] = None,
    rows: Annotated[
        int, typer.Option(help="Use so many rows of each, drawn at random; 0: all.", min=0)
    ] = 20_000,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a page about a model on your own test rows: one HTML file that loads nothing.

    What it can be trusted on, reliability, classes, rows, what changed since the fit, what to do.
    """
    running.in_range(coverage, "--coverage", "0.9")
    with running.mistakes_told(quiet):
        from ...own_data.measuring import measured
        from ...own_data.report import render
        from ...own_data.report.advice import headline, next_steps
        from ...own_data.saved import read_model
        from ...own_data.tables.writing import check_writable, complete_file

        check_writable(out, [model, data, ood])
        with running.step(f"{model} read", verbose):
            fitted = read_model(model)
        tables = [
            running.opened_for(fitted, model, path, delimiter) for path in (data, ood) if path
        ]
        if not quiet:
            typer.echo("Answering and drawing ...", err=True)
        with running.step("rows answered and measured", verbose):
            found = measured(fitted, tables[0], tables[1] if ood else None, rows or None, coverage)
        with running.step("page drawn", verbose):
            page = render(found, data.name, model.name)
        with complete_file(out) as file:
            file.write(page.encode())
    if json:
        changed = [drift.name for drift in found.drifts if drift.changed]
        steps = {"next_steps": next_steps(found), "changed_columns": changed}
        running.as_json({"report": str(out), "rows": len(found.test), **found.scores, **steps})
        return
    typer.echo(headline(found))
    for advice in next_steps(found):
        typer.echo(f"* {advice}")
    typer.echo(f"Report: {out}")
