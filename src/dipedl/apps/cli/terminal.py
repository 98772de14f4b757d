"""Texts, errors and exit codes of all commands."""

from __future__ import annotations

import csv
import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ...plugins import EXTRAS, explain_missing
from ...writing.cells import error_text, one_line
from ...writing.progress import LiveLine
from .wording import in_shell, with_options

if TYPE_CHECKING:
    from ..table.reading import RejectedRow

#: Exit codes: the data or files are to blame; the command line; done in part; an alarm; Ctrl-C.
WRONG_DATA, WRONG_COMMAND, PARTIAL, ALARM, STOPPED = 1, 2, 3, 4, 130


def names_in(typed: str) -> list[str]:
    """Return names between commas; one that holds a comma stands in double quotes."""
    try:
        (names,) = csv.reader([typed], skipinitialspace=True)
    except (csv.Error, ValueError):
        fail(f"names with line breaks must stand in double quotes, got {typed!r}")
    return [name.strip() for name in names if name.strip()]


def pairs_in(typed: str) -> dict[str, str]:
    """Return columns and their kinds out of "zip=category,day=date"."""
    pairs = [pair.rpartition("=") for pair in names_in(typed)]
    for name, _, kind in pairs:
        if not name or not kind:
            fail(f"--types must be written as column=kind,column=kind, got {typed!r}")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def check_share(value: float, option: str, usual: str) -> None:
    """Refuse a share that is not between 0 and 1."""
    if not 0 < value < 1:
        fail(f"{option} must lie between 0 and 1, got {value:g}; {usual} is usual")


def refuse_options(context: typer.Context, reasons: Mapping[str, str]) -> None:
    """Refuse options that were typed, by name, with the reason for each."""
    for name, reason in reasons.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            fail(f"--{name.replace('_', '-')} {reason}")


@contextmanager
def report_errors(quiet: bool, learn: str = "Fit on") -> Iterator[None]:
    """End with one line on stderr and an exit code in place of a traceback.

    `learn` begins the remedies of findings that ask for rows.
    """
    from ..table.errors import UsageError

    try:
        with warnings_as_notes(quiet, learn):
            yield
    except KeyboardInterrupt:
        echo("\ndipedl: stopped; no file was written", err=True)
        raise typer.Exit(STOPPED) from None
    except UsageError as error:
        fail(with_options(str(error)))
    except MemoryError:
        fail("not enough memory; fewer rows by --rows, or fewer columns by --drop", WRONG_DATA)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        fail(str(explain_missing(error, "this command")), WRONG_DATA)
    except PermissionError as error:
        name = error.filename or error_text(error)
        fail(f"{name}: no permission; ask its owner for it", WRONG_DATA)
    except (ValueError, TypeError, OSError) as error:
        text = " ".join([error_text(error), *getattr(error, "__notes__", [])])
        fail(with_options(text), WRONG_DATA)


@contextmanager
def exit_on(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these kinds into one line and exit code 2."""
    try:
        yield
    except kinds as error:
        fail(with_options(error_text(error)))


@contextmanager
def warnings_as_notes(quiet: bool = False, learn: str = "Fit on") -> Iterator[None]:
    """Print a warning of the library without its file and line, and no other."""

    def note(message: Warning | str, *_: object, **__: object) -> None:
        from ...explanation import FindingWarning

        if isinstance(message, FindingWarning):
            message = FindingWarning(in_shell(message.args[0], learn))
        echo(f"note: {with_options(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not quiet:
            warnings.simplefilter("default", UserWarning)
        warnings.showwarning = note
        yield


def fail(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    """Print one line on stderr, and end with an exit code."""
    echo(f"dipedl: {message}", err=True)
    raise typer.Exit(code)


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a text of one line or more, in which names and classes cannot drive a terminal."""
    typer.echo("\n".join(map(one_line, str(text).split("\n"))), err=err)


def echo_json(value: Any) -> None:
    r"""Print a result for machines; what could drive a terminal stands as \u and four digits."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


@contextmanager
def measure_step(name: str, verbose: bool) -> Iterator[None]:
    """Print how long a step took, with --verbose."""
    start = time.perf_counter()
    yield
    if verbose:
        echo(f"{name}: {time.perf_counter() - start:.2f} s", err=True)


@contextmanager
def show_rows(quiet: bool) -> Iterator[Callable[[int, float], None] | None]:
    """Yield a function of the rows so far and the share of the file that shows both on a line."""
    if quiet:
        yield None
        return
    line, start = LiveLine(), time.perf_counter()

    def show(rows: int, done: float) -> None:
        spent = time.perf_counter() - start
        left = f", about {spent * (1 - done) / done:.0f} s left" if 0 < done < 1 else ""
        line.show(f"{rows:,} rows ({done:.0%}), {rows / spent:,.0f} rows/s{left}")

    try:
        yield show
    finally:
        line.close()


def list_rejected(rows: Sequence[RejectedRow], total: int) -> None:
    """Name the first rows that were left out, on stderr."""
    for row in rows[:5]:
        echo(f"refused: {row}", err=True)
    if more := total - len(rows[:5]):
        echo(f"refused: {more:,} more rows", err=True)
