"""``dipedl spectra``: learn classes of spectra, and classify others with a class "unknown"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...writing.files import whole_file
from .options import Quiet, Seed
from .terminal import check_share, echo, fail, list_first, names_in, report_errors

if TYPE_CHECKING:
    import pandas as pd

    from ..spectra import Failure

spectra = typer.Typer(
    help="Classify spectra of SDSS and LAMOST, with a class for unknown objects.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_TOY_FIT, _TOY_CLASSIFY, _TOY_LAMPS = 1000, 300, 30
_FEW = 500

Paths = Annotated[
    list[str] | None,
    typer.Argument(help="FITS files of one spectrum each, folders, or patterns in quotes."),
]
Toy = Annotated[bool, typer.Option("--toy", help="Use made-up spectra, to try the command.")]


@spectra.command()
def fit(
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
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Learn classes from labelled spectra. `classify` can call all other classes unknown.

    Made-up spectra are learned without their stars.
    """
    wanted = classes or ("GALAXY,QSO" if toy else "")
    with report_errors(quiet):
        from ...io.model_file import save
        from ..spectra import classification

        _check_output(out, paths, labels)
        batches = (
            classification.toy_batches(_TOY_FIT, seed=0)
            if _is_toy(toy, paths)
            else classification.file_batches(paths or [], _note(quiet))
        )
        found = classification.select_labelled(batches, labels, names_in(wanted))
        list_first("failed", found.failures, len(found.failures), "files")
        _note(quiet)(f"Learning from {len(found.classes)} spectra ...")
        model = classification.fit_model(found, seed)
        save(model, out)
    accuracy, balanced, recall = classification.held_out(model)
    each = ", ".join(f"{name} {share:.3f}" for name, share in recall.items())
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(found.classes).items()))
    echo(f"Learned:  {counts}" + " (made-up spectra)" * toy)
    echo(f"Held out: accuracy {accuracy:.3f}, balanced {balanced:.3f}; recall {each}")
    if len(found.classes) < _FEW:
        echo(f"Few:      below {_FEW} spectra expect rough probabilities, and little unknown")
    echo(f"Model:    {out}")
    echo(f"Use it:   dipedl spectra classify {out} {'--toy' if toy else 'PATHS'}")


@spectra.command()
def classify(
    model: Annotated[Path, typer.Argument(help="File that `dipedl spectra fit` wrote.")],
    paths: Paths = None,
    out: Annotated[Path, typer.Option(help="The table, CSV.")] = Path("classes.csv"),
    false_alarms: Annotated[
        float, typer.Option(help="Share of known objects that may be called unknown, in (0, 1).")
    ] = 0.05,
    toy: Toy = False,
    quiet: Quiet = False,
) -> None:
    """Write one row per spectrum: probabilities, class, vacuity, unknown; or the reason of failure.

    With --toy it classifies made-up galaxies and quasars; stars, which the density does not flag
    at this low S/N; and lamps, which it flags.
    """
    check_share(false_alarms, "--false-alarms", "0.05")
    tables: list[pd.DataFrame] = []
    failures: list[Failure] = []
    with report_errors(quiet):
        import pandas as pd

        from ..spectra import classification

        _check_output(out, paths, model)
        fitted = classification.read_model(model)
        batches = (
            classification.toy_batches(_TOY_CLASSIFY, seed=1, lamps=_TOY_LAMPS)
            if _is_toy(toy, paths)
            else classification.file_batches(paths or [], _note(quiet))
        )
        with whole_file(out) as file:
            for batch in batches:
                table, failed = classification.classify(fitted, batch, false_alarms)
                classification.write_lines(table, file, header=not tables)
                tables.append(table)
                failures += failed
    list_first("failed", failures, len(failures), "files")
    answered = pd.concat(tables).dropna(subset="predicted")
    if len(answered):
        names = [str(name) for name in fitted[-1].classes_]
        echo(classification.count_predictions(answered, names).to_string())
    echo(f"Unknown: more unusual than {1 - false_alarms:.0%} of the objects learned from")
    echo(f"Table: {out}, {len(answered)} spectra and {len(failures)} failures")
    if not len(answered):
        raise typer.Exit(1)


def _is_toy(toy: bool, paths: Sequence[str] | None) -> bool:
    if toy == bool(paths):
        fail("give either paths of FITS files or --toy, which uses made-up spectra")
    return toy


def _note(quiet: bool) -> Callable[[str], None]:
    """Return the function that prints a note on stderr, or does not."""
    return (lambda text: None) if quiet else partial(echo, err=True)


def _check_output(out: Path, paths: Sequence[str] | None, other: Path | None) -> None:
    from ..spectra.files import fits_files
    from ..table.writing import check_writable

    check_writable(out, [other, *(fits_files(paths) if paths and out.exists() else [])])
