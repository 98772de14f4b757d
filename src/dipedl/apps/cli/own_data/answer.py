"""``dipedl score`` and ``dipedl explain``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import echo, fail, names_in, one_line
from . import answer_parts, options, running

if TYPE_CHECKING:
    from ...table.score import ScoreRequest, ScoreResult

_FIRST = 10


def score(
    context: typer.Context,
    model: Annotated[
        Path | None, typer.Argument(help="A file that `dipedl fit` wrote; none with --proba.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Argument(
            help="The rows to answer: a file in any of the formats; a folder of Parquet, Arrow or "
            "Feather files, an .npy file, or a URL of one of these."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The answers: a file that ends in .csv, .csv.gz, .parquet, .feather, .arrow or "
            ".jsonl; in parts a folder. Default: answers.csv, or answers."
        ),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of the data to copy beside each answer: id,name.")
    ] = "",
    coverage: options.Coverage = 0.9,
    reasons: Annotated[
        str, typer.Option(help="Rows that get a reason: flagged, all or none.")
    ] = "flagged",
    proba: Annotated[
        Path | None,
        typer.Option(help="Class probabilities by any other system, in place of MODEL and DATA."),
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="Features of the same rows; default: the probabilities.")
    ] = None,
    held_out_proba: Annotated[
        Path | None,
        typer.Option(
            help="Its probabilities of rows that it was not fitted on, and a column --target."
        ),
    ] = None,
    held_out_features: Annotated[
        Path | None, typer.Option(help="Features of the held-out rows, if --features are given.")
    ] = None,
    target: Annotated[
        str, typer.Option(help="Column of --held-out-proba with the true class.")
    ] = "target",
    delimiter: options.Delimiter = None,
    engine: answer_parts.Engine_ = None,
    address: answer_parts.Address = None,
    workers: answer_parts.Workers = None,
    partitions: answer_parts.Partitions = None,
    resume: answer_parts.Resume = False,
    overwrite: answer_parts.Overwrite = False,
    dry_run: answer_parts.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Answer each row: label, probabilities, vacuity, p-value, flag, prediction set, reason.

    Reads piece by piece, so the data may be larger than memory. Rows that cannot be read are listed
    with reasons in a second file, and the exit code is then 3. A folder, a URL or one of --engine,
    --workers, --partitions, --resume, --overwrite and --dry-run asks for answers in parts: a folder
    with a file for each part, and a column log_evidence more.
    """
    running.in_range(coverage, "--coverage", "0.9")
    files = (proba, features, held_out_proba, held_out_features)
    _check_inputs(model, data, files)
    with running.mistakes_told(quiet):
        from ...table.other_system import Pair, score_other_system
        from ...table.score import REASONS, ScoreRequest, refused_path, score_table
        from ...table.table_model import read_model
        from ...table.writing import check_writable, ending_of

        if reasons not in REASONS:
            fail(f"--reasons must be one of {', '.join(REASONS)}, got {reasons!r}")
        wanted = ScoreRequest(names_in(columns), coverage, reasons)
        asked = answer_parts.InParts(
            engine, address, workers, partitions, resume, overwrite, dry_run
        )
        if model and data and (asked or answer_parts.is_data_set(data)):
            fitted = read_model(model)
            if not fitted.of_images:
                running.refuse_given(context, {"delimiter": answer_parts.NO_CSV})
                with running.step("rows answered", verbose):
                    _in_parts(model, data, out or Path("answers"), wanted, asked, json, quiet)
                return
        answer_parts.refuse_options(context)
        table_at, out = Path(data) if data else None, out or Path("answers.csv")
        ending_of(out)
        for written in (out, refused_path(out)):
            check_writable(written, [model, table_at, *files])
        with running.step("rows answered", verbose), running.row_progress(quiet) as progress:
            if model and table_at:
                fitted = read_model(model)
                table = running.opened_for(fitted, model, table_at, delimiter)
                count = score_table(fitted, table, out, wanted, progress)
            else:
                new, held_out = (
                    Pair(
                        *(
                            running.opened(path, delimiter, numbers=path is pair[0])
                            for path in pair
                            if path
                        )
                    )
                    for pair in (files[:2], files[2:])
                )
                count = score_other_system(new, held_out, target, out, wanted, progress)
    finish(count, out, refused_path(out), json)


def _in_parts(
    model: Path,
    data: str,
    out: Path,
    wanted: ScoreRequest,
    asked: answer_parts.InParts,
    json: bool,
    quiet: bool,
) -> None:
    wanted = replace(wanted, fields=(*wanted.fields, "log_evidence"))
    count = answer_parts.score_parts(model, data, out, wanted, asked, json=json, quiet=quiet)
    if count is not None:
        more = answer_parts.finish_parts(count, json)
        lists = out / "_refused"
        finish(count, out, lists if any(lists.rglob("*.parquet")) else None, json, more)
        if count.failed:
            raise typer.Exit(running.PARTIAL)


def _check_inputs(model: Path | None, data: str | None, files: Sequence[Path | None]) -> None:
    proba, features, held_out_proba, held_out_features = files
    if proba is None:
        if model is None or data is None:
            fail("give MODEL and DATA, or --proba and --held-out-proba; see dipedl score --help")
        if features or held_out_proba or held_out_features:
            fail("--features and --held-out-... belong to --proba, which is not given")
    elif model is not None or held_out_proba is None:
        fail("--proba needs --held-out-proba, and neither MODEL nor DATA")
    elif (features is None) != (held_out_features is None):
        fail("--features and --held-out-features are given together or not at all")


def finish(
    count: ScoreResult,
    out: Path,
    refused_at: Path | None,
    json: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print what was done, `more` of it as JSON; exit code 3 if rows were refused."""
    if not count.refused:
        refused_at = None
    if json:
        files = {"out": str(out), "refused_out": refused_at and str(refused_at)}
        running.as_json(
            files
            | {n: getattr(count, n) for n in ("rows", "answered", "refused", "flagged", "by_label")}
            | dict(more or {})
        )
    else:
        labels = ", ".join(f"{one_line(c)} {n:,}" for c, n in sorted(count.by_label.items())[:10])
        share = count.flagged / max(count.answered, 1)
        echo(f"Rows:     {count.rows:,} = {count.answered:,} answered + {count.refused:,} refused")
        echo(f"Labels:   {labels}")
        echo(f"Flagged:  {count.flagged:,} rows ({share:.1%}) unlike those learned from")
        echo(f"Answers:  {out}")
    if count.refused:
        running.tell_refused(count.first_refused, count.refused)
        if refused_at:
            echo(f"refused rows: {refused_at}", err=True)
        raise typer.Exit(running.PARTIAL)


def explain(
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
    verbose: options.Verbose = False,
) -> None:
    """Say why rows got their answers: how rare each is, and its columns that are unusual or new.

    Three lines for each row; --details adds the evidence and the parts of the density.
    """
    with running.mistakes_told(quiet):
        from ...table.explain import explain_rows
        from ...table.reading import row_of_json
        from ...table.table_model import read_model

        with running.step(f"{model} read", verbose):
            fitted = read_model(model)
        if data.startswith("{"):
            table = row_of_json(data)
        else:
            table = running.opened_for(fitted, model, Path(data), delimiter)
        with running.step("rows explained", verbose):
            cards, refused = explain_rows(fitted, table, rows, top, row)
    if json:
        named = [{"row": one.row} | ({"file": one.file} if one.file else {}) for one in cards]
        running.as_json([name | one.card.to_dict() for name, one in zip(named, cards, strict=True)])
    else:
        for one in cards:
            said = str(one.card) if details else one.card.summary()
            echo(f"Row {one.row}{', ' * bool(one.file)}{one.file}\n{said}\n")
    if refused:
        running.tell_refused(refused, len(refused))
        raise typer.Exit(running.PARTIAL)
