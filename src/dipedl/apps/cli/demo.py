"""``dipedl demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .terminal import echo, report_errors


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
        from .report import print_report

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
