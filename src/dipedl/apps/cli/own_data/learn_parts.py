"""``dipedl fit`` of data in parts, and ``dipedl merge``."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import echo, fail
from . import running
from .answer_parts import NO_CSV, InParts, engine_of

if TYPE_CHECKING:
    from ...table.fit import FitResult

Density = Annotated[
    str | None,
    typer.Option(help="In parts: default, or gaussians, whose models can be merged."),
]
Key = Annotated[
    str | None, typer.Option(help="In parts: column that tells rows apart, where rows repeat.")
]
Reservoir = Annotated[
    int | None,
    typer.Option(
        help="In parts: rows that all but Gaussians learn from; default: 100000.", min=100
    ),
]
HeldOut = Annotated[
    int | None, typer.Option(help="In parts: rows that are held out; default: 10000.", min=20)
]
Like = Annotated[
    Path | None,
    typer.Option(help="Take classifier, features and columns of this model, to merge both later."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the parts that a stopped fit has read.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take; write nothing.")]
_NOT_IN_PARTS = {
    "rows": "is for a fit in memory; in parts --reservoir says from how many rows is learned",
    "gaps": "is for a fit in memory; in parts a gap is an empty entry (null)",
    "delimiter": NO_CSV,
    "time_column": "is for a fit in memory: without --engine",
    "extractor": "is for --images, which is not given",
}


def fit_parts(
    data: str,
    out: Path,
    given: dict[str, Any],
    asked: InParts,
    *,
    json: bool,
    quiet: bool,
) -> FitResult | None:
    """Fit on a data set as an `OrderInParts` of what is `given`, or print what it would take."""
    from ...large.plans import plan_fit
    from ...large.tables import OrderInParts, learn_parts
    from ...table.table_model import read_model, save_model
    from ...table.writing import check_writable

    like = given.get("like")
    if like is not None:
        model = read_model(like)
        given |= {"like": model, "target": given["target"] or model.target}
        given["drop"] = [*given["drop"], *model.facts["dropped"]]
    if not given["target"]:
        fail("--target must be given: the column to predict")
    wanted = OrderInParts(**given)
    check_writable(out, [like])
    work = out.with_name(f"{out.name}.parts")
    with engine_of(asked) as engine:
        if asked.dry_run:
            found = plan_fit(data, wanted, asked.partitions, engine.workers)
            running.as_json(asdict(found)) if json else echo(found.told())
            return None
        if not asked.resume:
            _clear(work)
        # What --verbose says is no result.
        with running.row_progress(quiet) as progress, redirect_stdout(sys.stderr):
            told = None if progress is None else lambda done, all_: progress(done, done / all_)
            learned = learn_parts(
                data, wanted, engine, partitions=asked.partitions, work=work, progress=told
            )
    save_model(learned.model, out)
    _clear(work)
    return learned


def refuse_options(context: typer.Context, like: bool) -> None:
    """Refuse options that a fit in parts does not use, or that the model of --like decides."""
    running.refuse_given(context, _NOT_IN_PARTS)
    if like:
        names = ("model", "density", "types", "false_alarms", "seed")
        why = "cannot be given with --like, whose model decides it; leave one out"
        running.refuse_given(context, dict.fromkeys(names, why))


def refuse_with_images(context: typer.Context) -> None:
    """Refuse options of a fit in parts: images are learned in memory."""
    names = ("engine", "address", "workers", "partitions", "density", "like", "key", "reservoir")
    why = "is for tables in parts, and --images are learned in memory; leave one out"
    running.refuse_given(context, dict.fromkeys((*names, "held_out", "resume", "dry_run"), why))


def _clear(work: Path) -> None:
    """Delete the results of parts in a folder, and the folder if it holds nothing else."""
    for file in work.glob("*.part"):
        if re.fullmatch(r"(\.dipedl-)?[0-9a-f]{32}\.part", file.name):
            file.unlink()
    with suppress(OSError):
        work.rmdir()


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
    with running.mistakes_told(quiet):
        from functools import reduce

        from ....writing.files import sha256_of
        from ...large.tables import merged
        from ...table.table_model import describe_rows_learned, read_model, save_model
        from ...table.writing import check_writable

        if len(models) < 2:
            fail("merge needs two models or more: dipedl merge a.dipedl b.dipedl")
        check_writable(out, models)
        given = [read_model(path) for path in models]
        if len({sha256_of(path) for path in models}) < len(models):
            fail("a model is given twice, and its rows would count twice: name each once")
        both = reduce(merged, given)
        save_model(both, out)
        facts = both.facts
        echo(f"Merged:   {len(models)} models of {describe_rows_learned(facts)} into {out}")
