"""``dipedl score``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...writing.text import one_line
from . import options
from .terminal import (
    PARTIAL,
    STOPPED,
    check_share,
    echo,
    echo_json,
    fail,
    list_first,
    list_rejected,
    names_in,
    refuse_options,
    report_errors,
    show_rows,
)

if TYPE_CHECKING:
    from ..table.score import ScoreRequest, ScoreResult

_ONLY_IN_PARTS = dict.fromkeys(
    ("engine", "address", "workers", "partitions", "resume", "overwrite", "dry_run"),
    "is for tables in parts: images, and --proba, are answered by one process; leave it out",
)
_ENDINGS = (".csv", ".gz", ".feather", ".arrow", ".jsonl")
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin again, in a folder that has answers.")
]


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
    by_class: Annotated[
        bool,
        typer.Option("--by-class", help="Hold the coverage within each class, a rare one too."),
    ] = False,
    reasons: Annotated[
        str, typer.Option(help="Rows that get a reason: flagged, all or none.")
    ] = "flagged",
    cost_error: Annotated[
        float | None, typer.Option(help="Decide by costs: of a wrong answer, in any unit.")
    ] = None,
    cost_reject: Annotated[
        float | None, typer.Option(help="Of no answer, such as a look by a person.")
    ] = None,
    cost_unknown: Annotated[
        float | None,
        typer.Option(help="Of an answer to a row of no class; default: the dearest mistake."),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            help="A table in place of --cost-error: a line for each true class, named in the first "
            "column, and a column for each answer."
        ),
    ] = None,
    unknown_share: Annotated[
        float, typer.Option(help="With costs: share of rows of no class that is expected.")
    ] = 0.0,
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
    engine: options.Engine_ = None,
    address: options.Address = None,
    workers: options.Workers = None,
    partitions: options.Partitions = None,
    resume: options.Resume = False,
    overwrite: Overwrite = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Answer each row: label, probabilities, vacuity, p-value, flag, prediction set, reason.

    Reads piece by piece, so the data may be larger than memory. Rows that cannot be read are listed
    with reasons in a second file, and the exit code is then 3. A folder, a URL or one of --engine,
    --workers, --partitions, --resume, --overwrite and --dry-run asks for answers in parts: a folder
    with a file for each part, and a column log_evidence more.
    """
    check_share(coverage, "--coverage", "0.9")
    if cost_reject is None:
        asked = ("cost_error", "cost_unknown", "costs", "unknown_share")
        refuse_options(context, dict.fromkeys(asked, "needs --cost-reject, the cost of no answer"))
    elif (cost_error is None) == (costs is None):
        fail("--cost-reject needs one of --cost-error and --costs")
    elif proba is not None:
        fail("--cost-reject is for MODEL and DATA, not for --proba: leave it out")
    files = (proba, features, held_out_proba, held_out_features)
    _check_inputs(model, data, files)
    if proba is None:
        refuse_options(context, {"target": "is for --held-out-proba, which is not given"})
    with report_errors(quiet, "Fit on" if proba is None else "Hold out"):
        from ..table.errors import UsageError
        from ..table.other_system import Pair, score_other_system
        from ..table.reading import open_table
        from ..table.score import (
            REASONS,
            CostRequest,
            ScoreRequest,
            read_costs,
            refused_path,
            score_table,
        )
        from ..table.table_model import read_model
        from ..table.writing import check_writable, ending_of

        if reasons not in REASONS:
            fail(f"--reasons must be one of {', '.join(REASONS)}, got {reasons!r}")
        request = ScoreRequest(names_in(columns), coverage, by_class, reasons)
        engine_options = options.PartOptions(
            engine, address, workers, partitions, resume, overwrite, dry_run
        )
        fitted, held_out = None, dict[str, float]()
        if model and data:
            options.check_order(model, Path(data))
            fitted = read_model(model)
        if fitted and cost_reject is not None:
            matrix = None if costs is None else read_costs(open_table(costs), fitted.classes)
            prices = CostRequest(cost_reject, cost_error, matrix, cost_unknown, unknown_share)
            request = replace(request, costs=prices)
            try:
                decision = fitted.classifier.held_out_decision(**vars(prices))
            except ValueError as error:
                raise UsageError(str(error)) from error
            held_out = {
                "held_out_cost": decision.held_out_cost,
                "held_out_decided": decision.held_out_accepted,
            }
        in_parts = data and (engine_options or options.is_data_set(data))
        if model and data and fitted and in_parts and not fitted.of_images:
            refuse_options(context, {"delimiter": options.NO_CSV})
            out = out or Path("answers")
            _score_parts(model, data, out, request, engine_options, json, quiet, held_out)
            return
        refuse_options(context, _ONLY_IN_PARTS)
        table_at, out = Path(data) if data else None, out or Path("answers.csv")
        ending_of(out)
        for written in (out, refused_path(out)):
            check_writable(written, options.input_files(model, table_at, *files))
        with show_rows(quiet) as progress:
            if model and table_at and fitted:
                table = options.open_for(fitted, model, table_at, delimiter)
                result = score_table(fitted, table, out, request, progress)
            else:
                new, known = (
                    Pair(
                        open_table(of_proba, delimiter=delimiter, numbers=True),
                        open_table(of_features, delimiter=delimiter) if of_features else None,
                    )
                    for of_proba, of_features in (files[:2], files[2:])
                    if of_proba
                )
                result = score_other_system(new, known, target, out, request, progress)
    _print_result(result, out, refused_path(out), json, held_out)


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


def _print_result(
    result: ScoreResult,
    out: Path,
    refused_at: Path | None,
    json: bool,
    held_out: Mapping[str, float],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Print what was done, `more` of it as JSON; exit code 3 if rows were refused.

    `held_out` is what decisions by cost come to on held-out rows, if there are such decisions.
    """
    if not result.refused:
        refused_at = None
    if json:
        files = {"out": str(out), "refused_out": refused_at and str(refused_at)}
        names = ("rows", "answered", "refused", "flagged", "by_label")
        decided = {"decided": result.decided, **held_out} if held_out else {}
        counts = {name: getattr(result, name) for name in names}
        echo_json(files | counts | decided | dict(more or {}))
    else:
        labels = ", ".join(f"{one_line(c)} {n:,}" for c, n in sorted(result.by_label.items())[:10])
        share = result.flagged / max(result.answered, 1)
        echo(
            f"Rows:     {result.rows:,} = {result.answered:,} answered + {result.refused:,} refused"
        )
        echo(f"Labels:   {labels}")
        echo(f"Flagged:  {result.flagged:,} rows ({share:.1%}) unlike those learned from")
        if held_out:
            share = result.decided / max(result.answered, 1)
            echo(
                f"Decided:  {result.decided:,} rows ({share:.1%}) for a label, the others for no "
                f"answer; of held-out rows {held_out['held_out_decided']:.1%}, at a mean cost of "
                f"{held_out['held_out_cost']:.4g}"
            )
        echo(f"Answers:  {out}")
    if result.refused:
        list_rejected(result.first_refused, result.refused)
        if refused_at:
            echo(f"refused rows: {refused_at}", err=True)
        raise typer.Exit(PARTIAL)


def _score_parts(
    model: Path,
    data: str,
    out: Path,
    request: ScoreRequest,
    engine_options: options.PartOptions,
    json: bool,
    quiet: bool,
    held_out: Mapping[str, float],
) -> None:
    """Answer a data set into a folder, or print what it would take."""
    from ..large import plan, score

    if engine_options.resume and engine_options.overwrite:
        fail("--resume and --overwrite exclude each other")
    if out.name.endswith(_ENDINGS):
        fail(f"--out {out}: parts are answered into a folder of Parquet files; name a folder")
    request = replace(request, fields=(*request.fields, "log_evidence"))
    how: dict[str, Any] = {"partitions": engine_options.partitions, "wanted": request}
    try:
        with options.engine_of(engine_options) as engine:
            if engine_options.dry_run:
                found = plan(model, data, workers=engine.workers, **how)
                echo_json(asdict(found)) if json else echo(str(found))
                return
            with show_rows(quiet) as progress:
                count = score(
                    model,
                    data,
                    out,
                    engine=engine,
                    resume=engine_options.resume,
                    overwrite=engine_options.overwrite,
                    progress=progress,
                    **how,
                )
    except KeyboardInterrupt:
        echo(f"\ndipedl: stopped; finished parts are in {out}, see --resume", err=True)
        raise typer.Exit(STOPPED) from None
    if not json:
        earlier = f", {count.resumed:,} of them by an earlier run" if count.resumed else ""
        echo(f"Parts:    {count.parts:,}{earlier}")
    failed = [f"{name}: {reason}" for name, reason in count.failed.items()]
    list_first("failed", failed, len(failed), "parts")
    names = ("parts", "resumed", "failed")
    lists = out / "_refused"
    refused_at = lists if any(lists.rglob("*.parquet")) else None
    _print_result(
        count, out, refused_at, json, held_out, {name: getattr(count, name) for name in names}
    )
    if count.failed:
        raise typer.Exit(PARTIAL)
