"""``dipedl fit``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..terminal import fail, names_in
from . import options, running

if TYPE_CHECKING:
    from ...own_data.learning import Learned

_SHOWN = 60


def fit(
    data: options.Data,
    target: Annotated[
        str | None, typer.Option(help="The column to predict; of images it is their folder.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The model's file.")] = Path("model.dipedl"),
    model: Annotated[
        str,
        typer.Option(help="boosting, forest, linear, mlp, or a .skops file of a classifier."),
    ] = "boosting",
    drop: Annotated[str, typer.Option(help="Columns to leave out: id,name.")] = "",
    time_column: Annotated[
        str | None,
        typer.Option(help="Dates or numbers: later rows test what was learned from earlier ones."),
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
        int, typer.Option(help="Learn from so many rows, drawn at random; 0: from all.", min=0)
    ] = 100_000,
    false_alarms: Annotated[
        float, typer.Option(help="Share of usual rows that may be flagged, in (0, 1).")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Learn to predict a column of a table, and to know which rows are unlike it.

    Kinds of columns are guessed and printed. Accuracy and Brier score are those of held-out rows.
    """
    running.in_range(false_alarms, "--false-alarms", "0.05")
    if target is None and not images:
        fail("--target must be given: the column to predict")
    if extractor is not None and not images:
        fail("--extractor is for --images, which is not given")
    with running.mistakes_told(quiet):
        from ...own_data.learning import Order, learn
        from ...own_data.saved import keep
        from ...own_data.tables.images import CLASS, FILE, image_files
        from ...own_data.tables.reading import open_images
        from ...own_data.tables.writing import check_writable

        read = image_files(data) if images else [data]
        check_writable(out, [*read, extractor, Path(model)])
        order = Order(
            target or CLASS,
            model,
            [*names_in(drop), *([FILE] if images else [])],
            running.pairs_in(types),
            time_column,
            rows or None,
            false_alarms,
            seed,
            verbose,
        )
        if images:
            table = open_images(data, str(extractor or ""))
        else:
            table = running.opened(data, delimiter, names_in(gaps))
        if not quiet:
            typer.echo(f"Reading {data} and fitting, which may take minutes ...", err=True)
        with redirect_stdout(sys.stderr):  # what --verbose says is no result
            learned = learn(table, order)
        with running.step(f"{out} written", verbose):
            keep(learned.model, out)
    _print_json(learned, out) if json else _print(learned, data, out, quiet)
    if learned.refused:
        running.tell_refused(learned.refused, len(learned.refused))
        raise typer.Exit(running.PARTIAL)


def _print_json(learned: Learned, out: Path) -> None:
    from ...own_data.saved import inputs_told

    model = learned.model
    running.as_json(
        {
            "model": str(out),
            "target": model.target,
            "columns": inputs_told({c.name: c.kind for c in model.columns}, model.facts),
            **{k: model.facts[k] for k in ("model_title", "rows", "learned", "classes")},
            **learned.numbers,
            "notes": learned.notes,
            "diagnosis": learned.diagnosis.to_dict(),
            "refused": [one._asdict() for one in learned.refused],
        }
    )


def _print(learned: Learned, data: Path, out: Path, quiet: bool) -> None:
    from ...own_data.saved import inputs_told

    model, numbers = learned.model, learned.numbers
    facts = model.facts
    typer.echo(f"Read:     {data} ({facts['format']}), {facts['rows']:,} rows")
    inputs = inputs_told({column.name: column.told() for column in model.columns}, facts)
    for name, kind in list(inputs.items())[:_SHOWN]:
        typer.echo(f"  {name:<20} {kind}")
    if len(inputs) > _SHOWN:
        typer.echo(f"  and {len(inputs) - _SHOWN} more")
    counts = ", ".join(f"{name} {n:,}" for name, n in list(facts["classes"].items())[:10])
    typer.echo(f"Learned:  {model.target} from {facts['learned']:,} rows: {counts}")
    typer.echo(
        f"Model:    {facts['model_title']} with the default density (--model {facts['model']})"
    )
    typer.echo(_held_out(numbers, facts))
    typer.echo(
        f"Cost:     {numbers['fit_seconds']:.1f} s to fit; here it answers about "
        f"{numbers['rows_per_second']:,.0f} rows per second; {out.stat().st_size / 1e6:.1f} MB"
    )
    for note in [] if quiet else learned.notes:
        typer.echo(f"Note:     {note}")
    for finding in learned.diagnosis.findings:
        if finding.severity == "warning" or (finding.severity == "note" and not quiet):
            typer.echo(f"{finding.severity.capitalize() + ':':<9} {finding.text}")
            if finding.remedy:
                typer.echo(f"          Remedy: {finding.remedy}")
    typer.echo(f"File:     {out}")
    new = "new.csv" if facts["images"] is None else "new_images/"
    typer.echo(f"Use it:   dipedl score {out} {new} --out answers.csv")


def _held_out(numbers: dict[str, float], facts: dict[str, Any]) -> str:
    largest = max(facts["classes"], key=facts["classes"].get)
    how = "of later rows" if facts["time_column"] else "by cross-fitting"
    return (
        f"Held out: accuracy {numbers['accuracy']:.3f} ({numbers['share_of_largest_class']:.3f} by "
        f"always saying {largest!r}), Brier score {numbers['brier']:.3f}; "
        f"{numbers['held_out_rows']:,.0f} rows, {how}"
    )
