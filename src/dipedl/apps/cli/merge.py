"""``dipedl merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .terminal import echo, fail, report_errors


def merge(
    models: Annotated[
        list[Path],
        typer.Argument(help="Files that `dipedl fit` wrote, all but the first by --like FIRST."),
    ],
    out: Annotated[Path, typer.Option(help="The model's file.")] = Path("merged.dipedl"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No notes.")] = False,
) -> None:
    """Add up models of one classifier that were fitted on different days or sites.

    The result is the model of all their rows, to rounding.
    """
    with report_errors(quiet):
        from functools import reduce

        from ...writing.files import sha256_of
        from ..large.tables import merge as merge_models
        from ..table.table_model import describe_rows_learned, read_model, save_model
        from ..table.writing import check_no_table, check_writable

        if len(models) < 2:
            fail("merge needs two models or more: dipedl merge a.dipedl b.dipedl")
        check_writable(out, models)
        check_no_table(out)
        given = [read_model(path) for path in models]
        if len({sha256_of(path) for path in models}) < len(models):
            fail("a model is given twice, and its rows would count twice: name each once")
        both = reduce(merge_models, given)
        save_model(both, out)
        facts = both.facts
        echo(f"Merged:   {len(models)} models of {describe_rows_learned(facts)} into {out}")
        if both.classifier.prior != given[0].classifier.prior:
            frequencies = both.classifier.prior == "empirical"
            prior = "the frequencies of the classes" if frequencies else "the same for each class"
            echo(f"Prior:    {prior}, by the rows of all (--prior auto of {models[0]})")
