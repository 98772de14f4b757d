"""``dipedl report`` and ``compare``: models on test rows; ``dipedl demo``: bundled data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...writing.text import printable_name
from . import options
from .terminal import PARTIAL, check_share, echo, echo_json, report_errors

if TYPE_CHECKING:
    from ..table.compare import Comparison, PairedScore
    from ..table.evaluate import Evaluation


def report(
    model: options.Model,
    data: Annotated[
        Path, typer.Argument(help="Rows the fit has not seen, with their classes if known.")
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    ood: Annotated[
        Path | None,
        typer.Option(help="Rows that are of no class, to see whether the model notices."),
    ] = None,
    rows: options.Rows = 20_000,
    coverage: options.Coverage = 0.9,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about a model on your own test rows: one HTML file that loads nothing.

    What the model can be trusted on, reliability, classes, rows, changes since the fit, next steps.
    """
    check_share(coverage, "--coverage", "0.9")
    with report_errors(quiet):
        from ..table.evaluate import evaluate, next_steps
        from ..table.page import render
        from ..table.table_model import read_model
        from ..table.writing import check_page, check_writable, complete_file
        from .terminal import diagnosis_in_shell

        check_writable(out, options.input_files(model, data, ood))
        check_page(out)
        options.check_order(model, data)
        fitted = read_model(model)
        table, *others = (
            options.open_for(fitted, model, path, delimiter) for path in (data, ood) if path
        )
        if not quiet:
            echo("Answering and drawing ...", err=True)
        named = [("other rows", other) for other in others]
        found = evaluate(fitted, table, named, rows or None, coverage)
        found = replace(found, diagnosis=diagnosis_in_shell(found.diagnosis))
        page = render(found, printable_name(data.name), printable_name(model.name))
        with complete_file(out) as file:
            file.write(page.encode())
    if json:
        changed = [drift.usual.name for drift in found.drifts if drift.changed]
        steps = {"next_steps": next_steps(found), "changed_columns": changed}
        echo_json({"report": str(out), "rows": len(found.test), **found.scores, **steps})
    else:
        print_report(found, out)
    if any(side.refused for side in (found.test, *found.others)):
        raise typer.Exit(PARTIAL)


def print_report(found: Evaluation, out: Path) -> None:
    """Print what was found in sentences, and where the page is."""
    from ..table.evaluate import headline, next_steps

    echo(headline(found))
    for advice in next_steps(found):
        echo(f"* {advice}")
    echo(f"Report: {out}")


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("report.html"),
    seed: options.Seed = 0,
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


_TITLES = {
    "accuracy": "accuracy",
    "brier": "Brier score",
    "flagged": "flagged",
    "flagged_at_old_rate": "flagged at the old rate",
    "false_alarms": "false alarms",
    "unknown_flagged": "flagged, of unknown class",
}
_SHOWN = 5


def compare(
    old: Annotated[Path, typer.Argument(help="The model so far, of `dipedl fit`.")],
    new: Annotated[Path, typer.Argument(help="The model that may follow it.")],
    data: Annotated[
        Path, typer.Argument(help="Rows that neither fit has seen, with their classes if known.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Also write both answers to each row, the largest change first."),
    ] = None,
    rows: options.Rows = 20_000,
    delimiter: options.Delimiter = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what changes if a new model takes the place of an old one, on the same rows.

    Labels and flags that change, accuracy and Brier score with 95 % intervals of the difference,
    false alarms, and what becomes of thresholds and of the monitor.
    """
    with report_errors(quiet):
        from ..table.compare import compare as compare_models
        from ..table.table_model import read_model
        from ..table.writing import check_writable, ending_of, table_writer

        if out is not None:
            ending_of(out)
            check_writable(out, [*options.input_files(old, new, data)])
        options.check_order(old, data)
        options.check_order(new, data)
        before, after = read_model(old), read_model(new)
        first, second = (
            options.open_for(model, file, data, delimiter)
            for model, file in ((before, old), (after, new))
        )
        if not quiet:
            echo("Answering with both models ...", err=True)
        found = compare_models(before, after, first, second, rows=rows or None)
        if out is not None:
            with table_writer(out) as write:
                write(found.answers)
    if json:
        echo_json(found.to_dict())
    else:
        _print_comparison(found)
        if out is not None:
            echo(f"Answers:    {out}")
    if any(found.refused):
        raise typer.Exit(PARTIAL)


def _print_comparison(found: Comparison) -> None:
    n, moves = found.rows, ", ".join(f"{a} -> {b} {k:,}" for a, b, k in found.moves)
    old, new = found.refused
    refused = f"; refused: {old:,} by the old model, {new:,} by the new one" if old or new else ""
    echo(f"Rows:       {n:,} answered by both{refused}")
    for name, share in zip(("old", "new"), found.seen, strict=True):
        if share:
            echo(f"            {share:.0%} were in the fit of the {name} model, which favours it")
    share = found.labels_changed / n
    echo(f"Labels:     {found.labels_changed:,} change ({share:.1%}){': ' if moves else ''}{moves}")
    echo(f"Flags:      {found.flags_raised:,} new, {found.flags_dropped:,} gone")
    for title, names in _differences(found):
        echo(f"{title:<12}{names}")
    echo()
    echo(f"{'':<26}{'old':>7}{'new':>8}{'difference':>12}  95 % interval        rows")
    alarms = found.scores.get("false_alarms")
    for name, score in found.scores.items():
        if name == "flagged" and alarms is not None and alarms.rows == n:
            continue  # the same numbers
        echo(f"{_TITLES[name]:<26}{_line(score)}")
    if "accuracy" not in found.scores:
        echo("Without a class of the models in the target column, accuracy cannot be compared.")
    echo()
    echo(f"Thresholds: {_thresholds(found)}")
    goes_on = "goes on: both models have the same held-out rows"
    anew = "begins anew: give dipedl monitor the new model and a --state that is not there"
    echo(f"Monitor:    {goes_on if found.same_reference else anew}")
    changed = found.answers[found.answers["change"] > 0].head(_SHOWN)
    if len(changed):
        echo("Largest changes:")
    for line in changed.to_dict("records"):
        answers = " -> ".join(
            f"{line[f'label_{which}']} {line[f'p_{which}']:.2f}"
            + ", flagged" * line[f"flagged_{which}"]
            for which in ("old", "new")
        )
        truth = line.get("class")
        known = f" (is {truth})" if isinstance(truth, str) else ""
        echo(f"  row {line['row']}: {answers}{known}")


def _line(score: PairedScore) -> str:
    text, d = f"{score.old:>7.3f}{score.new:>8.3f}", score.difference
    if d is None:
        return f"{text}{score.new - score.old:>+12.3f}{score.rows:>25,}"
    interval = f"{d.low:+.3f} to {d.high:+.3f}"
    return f"{text}{d.value:>+12.3f}  {interval:<18}{score.rows:>7,}"


def _differences(found: Comparison) -> list[tuple[str, str]]:
    """Return what the two models do not share, with a title for each line."""
    named = {
        "Classes": (found.only_old_classes, found.only_new_classes),
        "Columns": (found.only_old_columns, found.only_new_columns),
    }
    lines = []
    for title, sides in named.items():
        parts = [
            f"only the {which} model knows {', '.join(names)}"
            for which, names in zip(("old", "new"), sides, strict=True)
            if names
        ]
        if parts:
            lines.append((f"{title}:", "; ".join(parts)))
    if found.kinds_changed:
        lines.append(("Kinds:", f"read as another kind: {', '.join(found.kinds_changed)}"))
    return lines


def _thresholds(found: Comparison) -> str:
    old, new = found.rates
    if found.carried:
        return f"carried over: both flag p-values up to {old:g}, by held-out rows of their own"
    return (
        f"not carried over: the old model flags p-values up to {old:g}, the new one up to {new:g}; "
        f"fit the new one with --false-alarms {old:g}"
    )
