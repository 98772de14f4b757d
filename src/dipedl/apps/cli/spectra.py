"""``dipedl spectra``: learn classes of spectra, and classify others with a class "unknown"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...writing.files import check_is_no_input, writable_target
from ...writing.text import one_line
from .options import Quiet
from .terminal import check_share, fail, names_in, refuse_options, report_errors

if TYPE_CHECKING:
    from ..spectra import Failure
    from ..spectra.classification import Row

spectra = typer.Typer(
    help="Classify spectra of SDSS and LAMOST, with a class for unknown objects.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_TOY_FIT, _TOY_CLASSIFY, _TOY_LAMPS = 1000, 300, 30
_SHOWN = 5
_FEW = 500

Paths = Annotated[
    list[str] | None,
    typer.Argument(help="FITS files of one spectrum each, folders, or patterns in quotes."),
]
Toy = Annotated[bool, typer.Option("--toy", help="Use made-up spectra, to try the command.")]
Coverage = Annotated[
    float,
    typer.Option(help="Share of 3900-9000 Angstrom that must have been measured.", min=0.01, max=1),
]


@spectra.command()
def fit(
    context: typer.Context,
    paths: Paths = None,
    out: Annotated[Path, typer.Option(help="The model's file.")] = Path("spectra.dipedl"),
    labels: Annotated[
        Path | None,
        typer.Option(help="CSV file with the columns name and class; default: the headers."),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="Classes to learn, such as GALAXY,QSO; default: all.")
    ] = None,
    toy: Toy = False,
    estimator: Annotated[
        str, typer.Option(help="mlp (one layer of 64 units) or logistic.")
    ] = "mlp",
    components: Annotated[
        int | None,
        typer.Option(
            help="Principal components; default: a tenth of the spectra, at most 500.", min=1
        ),
    ] = None,
    min_coverage: Coverage = 0.9,
    seed: Annotated[int, typer.Option(help="Seed of every random part.", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Learn classes from labelled spectra. `classify` can call all other classes unknown.

    Made-up spectra are learned without their stars.
    """
    from ...io.model_file import save
    from ..spectra import classification

    wanted = classes or ("GALAXY,QSO" if toy else "")
    note = _silent if quiet else _note
    # Before reading thousands of files.
    if estimator not in classification.ESTIMATORS:
        fail(f"--estimator must be one of {list(classification.ESTIMATORS)}, got {estimator!r}")
    with report_errors(quiet):
        _check_output(out, paths, labels)
        batches = (
            classification.toy_batches(_TOY_FIT, seed=0)
            if _is_toy(context, toy, paths)
            else classification.file_batches(paths or [], min_coverage, note)
        )
        flux, kinds, failures = classification.select_labelled(batches, labels, names_in(wanted))
        _list_failures(failures)
        classification.check_classes(kinds, names_in(wanted))
        note(f"Learning from {len(kinds)} spectra ...")
        model = classification.fit_model(
            flux, kinds, estimator=estimator, components=components, seed=seed
        )
        save(model, out)
    accuracy, balanced, recall = classification.held_out(model)
    each = ", ".join(f"{name} {share:.3f}" for name, share in recall.items())
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(kinds).items()))
    typer.echo(f"Learned:  {counts}" + " (made-up spectra)" * toy)
    typer.echo(f"Held out: accuracy {accuracy:.3f}, balanced {balanced:.3f}; recall {each}")
    if len(kinds) < _FEW:
        typer.echo(f"Few:      below {_FEW} spectra expect rough probabilities, and little unknown")
    file = one_line(str(out))
    typer.echo(f"Model:    {file}")
    typer.echo(f"Use it:   dipedl spectra classify {file} {'--toy' if toy else 'PATHS'}")


@spectra.command()
def classify(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="File that `dipedl spectra fit` wrote.")],
    paths: Paths = None,
    out: Annotated[Path, typer.Option(help="The table, CSV.")] = Path("classes.csv"),
    false_alarms: Annotated[
        float, typer.Option(help="Share of known objects that may be called unknown, in (0, 1).")
    ] = 0.05,
    toy: Toy = False,
    min_coverage: Coverage = 0.9,
    quiet: Quiet = False,
) -> None:
    """Write one row per spectrum: probabilities, class, vacuity, unknown; or the reason of failure.

    With --toy it classifies made-up galaxies and quasars; stars, which the density does not flag
    at this low S/N; and lamps, which it flags.
    """
    from ..spectra import classification

    check_share(false_alarms, "--false-alarms", "0.05")
    with report_errors(quiet):
        _check_output(out, paths, model)
        fitted = classification.read_model(model)
        batches = (
            classification.toy_batches(_TOY_CLASSIFY, seed=1, lamps=_TOY_LAMPS)
            if _is_toy(context, toy, paths)
            else classification.file_batches(paths or [], min_coverage, _silent if quiet else _note)
        )
        names = [str(name) for name in fitted[-1].classes_]
        with classification.table_file(out, names) as table:
            rows, failures = classification.classify_all(fitted, batches, false_alarms, table)
    _list_failures(failures)
    typer.echo(_summary(rows, names, classification.count_predictions(rows, names)))
    typer.echo(f"Unknown: more unusual than {1 - false_alarms:.0%} of the objects learned from")
    typer.echo(f"Table: {one_line(str(out))}, {len(rows)} spectra and {len(failures)} failures")
    if not rows:
        raise typer.Exit(1)


def _is_toy(context: typer.Context, toy: bool, paths: Sequence[str] | None) -> bool:
    if toy == bool(paths):
        fail("give either paths of FITS files or --toy, which uses made-up spectra")
    if toy:
        refuse_options(context, {"min_coverage": "is for files, and --toy has none: leave it out"})
    return toy


def _summary(
    rows: Sequence[Row], names: Sequence[str], counts: Sequence[tuple[str, list[int]]]
) -> str:
    """Counts of predictions: one line per class in the headers."""
    head = ["in the header", *names, "unknown"]
    lines = [[name or "no class", *map(str, line)] for name, line in counts]
    widths = [max(len(cell) for cell in column) for column in zip(head, *lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in [head, *lines]
    )


def _list_failures(failures: Sequence[Failure]) -> None:
    for failure in failures[:_SHOWN]:
        typer.echo(one_line(f"failed: {failure}"), err=True)
    if len(failures) > _SHOWN:
        typer.echo(f"failed: {len(failures) - _SHOWN} more files", err=True)


def _check_output(out: Path, paths: Sequence[str] | None, other: Path | None) -> None:
    from ..spectra.files import fits_files

    writable_target(out)
    if out.exists():
        check_is_no_input(out, [other, *(fits_files(paths) if paths else [])])


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _silent(text: str) -> None:
    pass
