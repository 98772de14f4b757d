"""``dipedl report``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...writing.cells import printable_name
from . import options
from .terminal import PARTIAL, check_share, echo, echo_json, measure_step, report_errors


def report(
    model: options.Model,
    data: Annotated[
        Path, typer.Argument(help="Rows the fit has not seen, with their classes if known.")
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    ood: Annotated[
        Path | None,
        typer.Option(help="Rows that are of no class, to see whether the model notices."),
    ] = None,
    rows: Annotated[
        int, typer.Option(help="Rows of each table to use, drawn at random; 0: all.", min=0)
    ] = 20_000,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write a page about a model on your own test rows: one HTML file that loads nothing.

    What the model can be trusted on, reliability, classes, rows, changes since the fit, next steps.
    """
    check_share(coverage, "--coverage", "0.9")
    with report_errors(quiet):
        from ..table.evaluate import evaluate
        from ..table.report import render
        from ..table.report.advice import headline, next_steps
        from ..table.table_model import read_model
        from ..table.writing import check_page, check_writable, complete_file
        from .wording import diagnosis_in_shell

        check_writable(out, [model, data, ood])
        check_page(out)
        options.check_order(model, data)
        with measure_step(f"{model} read", verbose):
            fitted = read_model(model)
        tables = [options.open_for(fitted, model, path, delimiter) for path in (data, ood) if path]
        if not quiet:
            echo("Answering and drawing ...", err=True)
        with measure_step("rows answered and measured", verbose):
            found = evaluate(fitted, tables[0], tables[1] if ood else None, rows or None, coverage)
        found = replace(found, diagnosis=diagnosis_in_shell(found.diagnosis))
        with measure_step("page drawn", verbose):
            page = render(found, *map(printable_name, (data.name, model.name)))
        with complete_file(out) as file:
            file.write(page.encode())
    if json:
        changed = [drift.name for drift in found.drifts if drift.changed]
        steps = {"next_steps": next_steps(found), "changed_columns": changed}
        echo_json({"report": str(out), "rows": len(found.test), **found.scores, **steps})
    else:
        echo(headline(found))
        for advice in next_steps(found):
            echo(f"* {advice}")
        echo(f"Report: {out}")
    if found.test.refused or (found.ood and found.ood.refused):
        raise typer.Exit(PARTIAL)
