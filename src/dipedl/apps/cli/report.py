"""``dipedl report``, and ``dipedl demo``: a report on bundled data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...writing.text import printable_name
from . import options
from .terminal import PARTIAL, check_share, echo, echo_json, report_errors

if TYPE_CHECKING:
    from ..table.evaluate import Evaluation


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
) -> None:
    """Write a page about a model on your own test rows: one HTML file that loads nothing.

    What the model can be trusted on, reliability, classes, rows, changes since the fit, next steps.
    """
    check_share(coverage, "--coverage", "0.9")
    with report_errors(quiet):
        from ..table.evaluate import evaluate, next_steps
        from ..table.page import render
        from ..table.table_model import read_model
        from ..table.writing import check_page, check_writable, complete_file
        from .terminal import diagnosis_in_shell

        check_writable(out, options.input_files(model, data, ood))
        check_page(out)
        options.check_order(model, data)
        fitted = read_model(model)
        table, *others = (
            options.open_for(fitted, model, path, delimiter) for path in (data, ood) if path
        )
        if not quiet:
            echo("Answering and drawing ...", err=True)
        named = [("other rows", other) for other in others]
        found = evaluate(fitted, table, named, rows or None, coverage)
        found = replace(found, diagnosis=diagnosis_in_shell(found.diagnosis))
        page = render(found, printable_name(data.name), printable_name(model.name))
        with complete_file(out) as file:
            file.write(page.encode())
    if json:
        changed = [drift.usual.name for drift in found.drifts if drift.changed]
        steps = {"next_steps": next_steps(found), "changed_columns": changed}
        echo_json({"report": str(out), "rows": len(found.test), **found.scores, **steps})
    else:
        print_report(found, out)
    if any(side.refused for side in (found.test, *found.others)):
        raise typer.Exit(PARTIAL)


def print_report(found: Evaluation, out: Path) -> None:
    """Print what was found in sentences, and where the page is."""
    from ..table.evaluate import headline, next_steps

    echo(headline(found))
    for advice in next_steps(found):
        echo(f"* {advice}")
    echo(f"Report: {out}")


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    model: Annotated[str, typer.Option(help="linear, mlp, boosting or forest.")] = "linear",
    quiet: options.Quiet = False,
) -> None:
    """Fit a classifier of bundled digits and report on images that are no digits. Works offline.

    As `dipedl fit --images` and `dipedl report` do with your own folders of images.
    """
    with report_errors(quiet):
        from ..demo import halved_digits, run_demo
        from ..table.fit import check_model
        from ..table.page import render
        from ..table.writing import check_page, check_writable, complete_file

        check_writable(out, [])
        check_page(out)
        check_model(model)
        if not quiet:
            echo("Fitting a model of 1,500 bundled digits ...", err=True)
        data = halved_digits()
        found = run_demo(data, seed, model)
        page = render(found, "new digits", "a model of bundled digits", data.provenance)
        with complete_file(out) as file:
            file.write(page.encode())
    print_report(found, out)
