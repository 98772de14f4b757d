"""``dipedl fit``, in memory or of data in parts, and ``dipedl merge`` of models of parts."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...writing.text import one_line
from . import options
from .terminal import (
    PARTIAL,
    check_share,
    echo,
    echo_json,
    fail,
    list_rejected,
    names_in,
    pairs_in,
    refuse_options,
    report_errors,
    show_classes,
    show_rows,
)

if TYPE_CHECKING:
    from ..table.fit import FitResult
    from ..table.reading import Table

_SHOWN = 60
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
_NOT_IN_PARTS = {
    "rows": "is for a fit in memory; in parts --reservoir says from how many rows is learned",
    "gaps": "is for a fit in memory; in parts a gap is an empty entry (null)",
    "delimiter": options.NO_CSV,
    "time_column": "is for a fit in memory: without --engine",
    "unknown": "is for a fit in memory: without --engine",
    "extractor": "is for --images, which is not given",
}
_NOT_WITH_LIKE = dict.fromkeys(
    ("model", "density", "types", "false_alarms", "caution", "prior", "seed"),
    "cannot be given with --like, whose model decides it; leave one out",
)
_NOT_WITH_IMAGES = dict.fromkeys(
    ("engine", "address", "workers", "partitions", "density", "like", "key", "reservoir",
     "held_out", "resume", "dry_run"),
    "is for tables in parts, and --images are learned in memory; leave one out",
)  # fmt: skip


def fit(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            help="CSV (also .gz), Parquet, Feather, Arrow, JSON lines or NPZ; a folder of Parquet, "
            "Arrow or Feather files, or a URL of one of these."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(help="The column to predict; with --images the folder is the class."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The model's file.")] = Path("model.dipedl"),
    model: Annotated[
        str,
        typer.Option(help="boosting, forest, linear, mlp, or a .skops file of a classifier."),
    ] = "boosting",
    drop: options.Drop = "",
    time_column: Annotated[
        str | None,
        typer.Option(help="Dates or numbers: later rows test a model of the rows before them."),
    ] = None,
    group_column: options.GroupColumn = None,
    images: Annotated[
        bool, typer.Option("--images", help="The data are a folder with a folder per class.")
    ] = False,
    extractor: Annotated[
        Path | None,
        typer.Option(
            help="ONNX network that gives features of images; default: components of pixels."
        ),
    ] = None,
    types: options.Types = "",
    gaps: options.Gaps = "",
    delimiter: options.Delimiter = None,
    rows: options.Rows = 100_000,
    false_alarms: Annotated[
        float, typer.Option(help="Share of usual rows that may be flagged, in (0, 1).")
    ] = 0.05,
    caution: Annotated[
        float,
        typer.Option(
            help="Price of doubt: share of the held-out Brier score that it may cost, 0 to 1."
        ),
    ] = 0.02,
    prior: Annotated[
        str,
        typer.Option(
            help="What is said where nothing is known: even, or the frequencies of the classes "
            "(empirical); auto: empirical where one class has ten times the rows of another."
        ),
    ] = "auto",
    seed: options.Seed = 0,
    unknown: options.Unknown = False,
    engine: options.Engine_ = None,
    address: options.Address = None,
    workers: options.Workers = None,
    partitions: options.Partitions = None,
    density: Density = None,
    like: Like = None,
    key: Key = None,
    reservoir: Reservoir = None,
    held_out: HeldOut = None,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Each step with its seconds.")
    ] = False,
) -> None:
    """Learn to predict a column of a table, and to know which rows are unlike it.

    Kinds of columns are guessed and printed. Accuracy and Brier score are those of held-out rows.
    A folder, a URL or an option from --engine to --dry-run asks for a fit in parts, whose data may
    be larger than memory. Then Gaussians learn from all rows, and all else from --reservoir
    rows, drawn at random.
    """
    check_share(false_alarms, "--false-alarms", "0.05")
    check_share(caution, "--caution", "0.02", ends=True)
    engine_options = options.PartOptions(
        engine, address, workers, partitions, resume, False, dry_run
    )
    only_parts = {"density": density, "key": key, "reservoir": reservoir, "like": like}
    only_parts["calibration"] = held_out
    only_parts = {name: value for name, value in only_parts.items() if value is not None}
    settings: dict[str, Any] = {"model": model, "drop": names_in(drop), "time_column": time_column}
    settings["group_column"] = group_column
    settings |= {"types": pairs_in(types), "false_alarms": false_alarms}
    settings |= {"caution": caution, "prior": prior, "seed": seed, "verbose": verbose}
    if not images and (engine_options or only_parts or options.is_data_set(data)):
        refuse_options(context, _NOT_IN_PARTS)
        if like is not None:
            refuse_options(context, _NOT_WITH_LIKE)
        with report_errors(quiet):
            settings |= only_parts | {"target": target}
            result = _fit_parts(data, out, settings, engine_options, json=json, quiet=quiet)
        if result is not None:
            _print_result(result, Path(data), out, json, quiet)
        return
    path = Path(data)
    if images:
        refuse_options(context, _NOT_WITH_IMAGES)
    elif target is None:
        fail("--target must be given: the column to predict")
    if extractor is not None and not images:
        fail("--extractor is for --images, which is not given")
    with report_errors(quiet):
        from ..table.fit import FitRequest, fit_table
        from ..table.images import CLASS, FILE, image_files, open_images
        from ..table.reading import open_table
        from ..table.table_model import save_model
        from ..table.writing import check_no_table, check_writable

        read = image_files(path) if images else options.input_files(path)
        check_writable(out, [*read, extractor, Path(model)])
        check_no_table(out)
        if images:
            table: Table = open_images(path, str(extractor or ""))
            settings["drop"] += [FILE]
        else:
            table = open_table(path, delimiter=delimiter, gaps=names_in(gaps))
        if not quiet:
            echo(f"Reading {data} and fitting, which may take minutes ...", err=True)
        with redirect_stdout(sys.stderr):  # what --verbose says is no result
            request = FitRequest(target or CLASS, rows=rows or None, unknown=unknown, **settings)
            with show_classes(quiet, model) as show:
                result = fit_table(table, request, show)
        save_model(result.model, out)
    _print_result(result, path, out, json, quiet)


def _print_result(learned: FitResult, data: Path, out: Path, json: bool, quiet: bool) -> None:
    """Print a fitted model; exit code 3 if rows were refused or files cannot be read."""
    from .terminal import diagnosis_in_shell, with_options

    learned = replace(
        learned,
        notes=list(map(with_options, learned.notes)),
        refused=[one._replace(reason=with_options(one.reason)) for one in learned.refused],
        diagnosis=diagnosis_in_shell(
            learned.diagnosis, in_parts="held_out_how" in learned.model.facts
        ),
    )
    _print_json(learned, out) if json else _print(learned, data, out, quiet)
    for trouble in learned.failed:
        echo(f"failed: {trouble}", err=True)
    list_rejected(learned.refused, learned.refused_rows)
    if learned.refused_rows or learned.failed:
        raise typer.Exit(PARTIAL)


def _print_json(learned: FitResult, out: Path) -> None:
    from ..table.table_model import describe_inputs

    model = learned.model
    echo_json(
        {
            "model": str(out),
            "target": model.target,
            "columns": describe_inputs({c.name: c.kind for c in model.columns}, model.facts),
            **{k: model.facts[k] for k in ("model_title", "rows", "learned", "classes")},
            "classifier_rows": model.facts.get("classifier_rows", model.facts["learned"]),
            **learned.numbers,
            "notes": learned.notes,
            "diagnosis": learned.diagnosis.to_dict(),
            "refused": [one._asdict() for one in learned.refused],
            "refused_rows": learned.refused_rows,
            "failed": learned.failed,
        }
    )


def _print(learned: FitResult, data: Path, out: Path, quiet: bool) -> None:
    from ..table.table_model import describe_inputs, describe_rows_learned

    model, numbers = learned.model, learned.numbers
    facts = model.facts
    echo(f"Read:     {data} ({facts['format']}), {facts['rows']:,} rows")
    inputs = describe_inputs({column.name: column.describe() for column in model.columns}, facts)
    for name, kind in list(inputs.items())[:_SHOWN]:
        echo("  " + one_line(f"{name:<20} {kind}"))
    if len(inputs) > _SHOWN:
        echo(f"  and {len(inputs) - _SHOWN} more")
    counts = ", ".join(f"{one_line(c)} {n:,}" for c, n in list(facts["classes"].items())[:10])
    of = "; classes of these and held-out rows" if "held_out_how" in facts else ""
    echo(f"Learned:  {one_line(model.target)} from {describe_rows_learned(facts)}{of}: {counts}")
    echo(
        f"Model:    {facts['model_title']} with {facts.get('density', 'the default density')} "
        f"(--model {facts['model']})"
    )
    if "held_out_how" in facts:
        held_out = facts["rows"] - facts["learned"] - learned.refused_rows
        echo(
            f"Rows:     {facts['rows']:,} = {facts['learned']:,} learned + {held_out:,} held out + "
            f"{learned.refused_rows:,} refused"
        )
    if model.classifier.prior == "empirical":
        times = max(facts["classes"].values()) / min(facts["classes"].values())
        unequal = f", of which one has {times:,.0f} times the rows of another" * (times >= 2)
        echo(
            f"Prior:    the frequencies of the classes{unequal} (--prior even: the same for each "
            "class)"
        )
    echo(_held_out(numbers, facts))
    echo(
        f"Cost:     {numbers['fit_seconds']:.1f} s to fit; here it answers about "
        f"{numbers['rows_per_second']:,.0f} rows per second; {out.stat().st_size / 1e6:.1f} MB"
    )
    for note in [] if quiet else learned.notes:
        echo(f"Note:     {one_line(note)}")
    for finding in learned.diagnosis.findings:
        if finding.severity == "warning" or (finding.severity == "note" and not quiet):
            echo(f"{finding.severity.capitalize() + ':':<9} {one_line(finding.text)}")
            if finding.remedy:
                echo(f"          Remedy: {finding.remedy}")
    echo(f"File:     {out}")
    new = "new.csv" if facts["images"] is None else "new_images/"
    echo(f"Use it:   dipedl score {out} {new} --out answers.csv")


def _held_out(numbers: dict[str, float], facts: dict[str, Any]) -> str:
    largest = max(facts["classes"], key=facts["classes"].get)
    how = "of later rows" if facts["time_column"] else facts.get("held_out_how", "by cross-fitting")
    return (
        f"Held out: accuracy {numbers['accuracy']:.3f} ({numbers['share_of_largest_class']:.3f} by "
        f"always saying {largest!r}), Brier score {numbers['brier']:.3f}; "
        f"{numbers['held_out_rows']:,.0f} rows, {how}"
    )


def _fit_parts(
    data: str,
    out: Path,
    settings: dict[str, Any],
    engine_options: options.PartOptions,
    *,
    json: bool,
    quiet: bool,
) -> FitResult | None:
    """Fit on a data set by the settings of an `OrderInParts`, or print what it would take."""
    from ..large.fitting import OrderInParts, learn_parts
    from ..large.plans import plan_fit
    from ..table.table_model import read_model, save_model
    from ..table.writing import check_no_table, check_writable

    like = settings.get("like")
    if like is not None:
        model = read_model(like)
        settings |= {"like": model, "target": settings["target"] or model.target}
        settings["drop"] = [*settings["drop"], *model.facts["dropped"]]
    if not settings["target"]:
        fail("--target must be given: the column to predict")
    request = OrderInParts(**settings)
    check_writable(out, [like])
    check_no_table(out)
    work = out.with_name(f"{out.name}.parts")
    with options.engine_of(engine_options) as engine:
        if engine_options.dry_run:
            plan = plan_fit(data, request, engine_options.partitions, engine.workers)
            echo_json(asdict(plan)) if json else echo(str(plan))
            return None
        if not engine_options.resume:
            _clear(work)
        # What --verbose says is no result.
        with show_rows(quiet) as progress, redirect_stdout(sys.stderr):
            count = None if progress is None else lambda done, total: progress(done, done / total)
            partitions = engine_options.partitions
            try:
                result = learn_parts(
                    data, request, engine, partitions=partitions, work=work, progress=count
                )
            except (ValueError, KeyboardInterrupt):
                if any(work.glob("*.part")):
                    echo(f"note: what was read is kept in {work}: --resume goes on", err=True)
                raise
    save_model(result.model, out)
    _clear(work)
    return result


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
    with report_errors(quiet):
        from ...writing.files import sha256_of
        from ..large.fitting import merge as merge_models
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
