"""``dipedl fit``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import echo, fail, names_in, one_line
from . import answer_parts, learn_parts, options, running

if TYPE_CHECKING:
    from ...table.fit import FitResult
    from ...table.reading import Table

_SHOWN = 60


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
    rows: Annotated[
        int, typer.Option(help="Rows to learn from, drawn at random; 0: all.", min=0)
    ] = 100_000,
    false_alarms: Annotated[
        float, typer.Option(help="Share of usual rows that may be flagged, in (0, 1).")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    engine: answer_parts.Engine_ = None,
    address: answer_parts.Address = None,
    workers: answer_parts.Workers = None,
    partitions: answer_parts.Partitions = None,
    density: learn_parts.Density = None,
    like: learn_parts.Like = None,
    key: learn_parts.Key = None,
    reservoir: learn_parts.Reservoir = None,
    held_out: learn_parts.HeldOut = None,
    resume: learn_parts.Resume = False,
    dry_run: learn_parts.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Learn to predict a column of a table, and to know which rows are unlike it.

    Kinds of columns are guessed and printed. Accuracy and Brier score are those of held-out rows.
    A folder, a URL or an option from --engine to --dry-run asks for a fit in parts, whose data may
    be larger than memory. Then Gaussians learn from all rows, and all else from --reservoir
    rows, drawn at random.
    """
    running.in_range(false_alarms, "--false-alarms", "0.05")
    asked = answer_parts.InParts(engine, address, workers, partitions, resume, False, dry_run)
    more: dict[str, Any] = {"density": density, "key": key, "reservoir": reservoir, "like": like}
    more["calibration"] = held_out
    more = {name: value for name, value in more.items() if value is not None}
    order: dict[str, Any] = {"model": model, "drop": names_in(drop), "time_column": time_column}
    order |= {"types": running.pairs_in(types), "false_alarms": false_alarms}
    order |= {"seed": seed, "verbose": verbose}
    if not images and (asked or more or answer_parts.is_data_set(data)):
        learn_parts.refuse_options(context, like is not None)
        with running.mistakes_told(quiet):
            given = order | more | {"target": target}
            found = learn_parts.fit_parts(data, out, given, asked, json=json, quiet=quiet)
        if found is not None:
            _tell(found, Path(data), out, json, quiet)
        return
    path = Path(data)
    if images:
        learn_parts.refuse_with_images(context)
    if target is None and not images:
        fail("--target must be given: the column to predict")
    if extractor is not None and not images:
        fail("--extractor is for --images, which is not given")
    with running.mistakes_told(quiet):
        from ...table.fit import FitRequest, fit_table
        from ...table.images import CLASS, FILE, image_files, open_images
        from ...table.table_model import save_model
        from ...table.writing import check_writable

        read = image_files(path) if images else [path]
        check_writable(out, [*read, extractor, Path(model)])
        if images:
            table: Table = open_images(path, str(extractor or ""))
            order["drop"] += [FILE]
        else:
            table = running.opened(path, delimiter, names_in(gaps))
        if not quiet:
            echo(f"Reading {data} and fitting, which may take minutes ...", err=True)
        with redirect_stdout(sys.stderr):  # what --verbose says is no result
            learned = fit_table(table, FitRequest(target or CLASS, rows=rows or None, **order))
        with running.step(f"{out} written", verbose):
            save_model(learned.model, out)
    _tell(learned, path, out, json, quiet)


def _tell(learned: FitResult, data: Path, out: Path, json: bool, quiet: bool) -> None:
    """Print what was learned; exit code 3 if rows were refused or files cannot be read."""
    _print_json(learned, out) if json else _print(learned, data, out, quiet)
    for trouble in learned.failed:
        echo(f"failed: {trouble}", err=True)
    running.tell_refused(learned.refused, learned.refused_rows)
    if learned.refused_rows or learned.failed:
        raise typer.Exit(running.PARTIAL)


def _print_json(learned: FitResult, out: Path) -> None:
    from ...table.table_model import describe_inputs

    model = learned.model
    running.as_json(
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
    from ...table.table_model import describe_inputs, describe_rows_learned

    model, numbers = learned.model, learned.numbers
    facts = model.facts
    echo(f"Read:     {data} ({facts['format']}), {facts['rows']:,} rows")
    inputs = describe_inputs({column.name: column.describe() for column in model.columns}, facts)
    for name, kind in list(inputs.items())[:_SHOWN]:
        echo(f"  {one_line(name):<20} {one_line(kind)}")
    if len(inputs) > _SHOWN:
        echo(f"  and {len(inputs) - _SHOWN} more")
    counts = ", ".join(f"{one_line(c)} {n:,}" for c, n in list(facts["classes"].items())[:10])
    echo(f"Learned:  {one_line(model.target)} from {describe_rows_learned(facts)}: {counts}")
    echo(
        f"Model:    {facts['model_title']} with {facts.get('density', 'the default density')} "
        f"(--model {facts['model']})"
    )
    if "held_out_how" in facts:
        held = facts["rows"] - facts["learned"] - learned.refused_rows
        echo(
            f"Rows:     {facts['rows']:,} = {facts['learned']:,} learned + {held:,} held out + "
            f"{learned.refused_rows:,} refused"
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
