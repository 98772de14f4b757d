"""Exit codes, files and progress of all commands for own data."""

from __future__ import annotations

import json
import re
import time
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ....plugins import EXTRAS, explain_missing
from ....writing.cells import error_text
from ....writing.progress import LiveLine
from ...table.errors import UsageError, as_typed
from ..terminal import echo, fail, names_in, warnings_as_notes

if TYPE_CHECKING:
    from ...table.reading import RejectedRow, Table
    from ...table.table_model import TableModel

#: Exit codes: what the data or files are to blame for; the command line; done in part; Ctrl-C.
WRONG_DATA, WRONG_COMMAND, PARTIAL, STOPPED = 1, 2, 3, 130


#: Arguments in errors of the library -> options of the command line.
_OPTIONS: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"\b(resume|overwrite)=True\b": r"--\1",
    r"\bcall fit again with the same work\b": "go on with --resume",
    r"\bdensity=GDADensity\(\)": "--density gaussians",
    r"\bdrop=(\[.*\])": lambda found: f"--drop {as_typed(literal_eval(found[1]))}",
}


def with_options(error: str) -> str:
    """Return an error of the library with its arguments as the options that give them."""
    for argument, option in _OPTIONS.items():
        error = re.sub(argument, option, error)
    return error


@contextmanager
def mistakes_told(quiet: bool) -> Iterator[None]:
    """End with one line on stderr and an exit code in place of a traceback."""
    try:
        with warnings_as_notes(quiet):
            yield
    except KeyboardInterrupt:
        echo("\ndipedl: stopped; no file was written", err=True)
        raise typer.Exit(STOPPED) from None
    except UsageError as error:
        fail(str(error), WRONG_COMMAND)
    except MemoryError:
        fail("not enough memory; fewer rows by --rows, or fewer columns by --drop", WRONG_DATA)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        fail(str(explain_missing(error, "this command")), WRONG_DATA)
    except PermissionError as error:
        fail(
            f"{error.filename or error_text(error)}: no permission; ask its owner for it",
            WRONG_DATA,
        )
    except (ValueError, TypeError, OSError) as error:
        said = with_options(" ".join([error_text(error), *getattr(error, "__notes__", [])]))
        fail(said, WRONG_DATA)


@contextmanager
def step(name: str, verbose: bool) -> Iterator[None]:
    """Say on stderr how long a step took, if that was asked for."""
    start = time.perf_counter()
    yield
    if verbose:
        echo(f"{name}: {time.perf_counter() - start:.2f} s", err=True)


def as_json(value: Any) -> None:
    r"""Print a result for machines; what could drive a terminal stands as \u and four digits."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def opened(
    path: Path, delimiter: str | None, gaps: Sequence[str] = (), numbers: bool = False
) -> Table:
    """The table in a file, as of `open_table`."""
    from ...table.reading import open_table

    return open_table(path, delimiter=delimiter, gaps=gaps, numbers=numbers)


def opened_for(model: TableModel, file: Path, path: Path, delimiter: str | None) -> Table:
    """The table in a file, or of a folder of images, as the model of a file was fitted on it."""
    from ...table.images import network_of, open_images

    network = model.facts.get("images")
    if network is not None:
        sha256 = model.facts.get("images_sha256", "")
        return open_images(path, network_of(network, sha256, file.parent))
    return opened(path, delimiter, model.gaps)


def pairs_in(typed: str) -> dict[str, str]:
    """Columns and their kinds out of "zip=category,day=date"."""
    pairs = [pair.rpartition("=") for pair in names_in(typed)]
    for name, _, kind in pairs:
        if not name or not kind:
            fail(f"--types must be written as column=kind,column=kind, got {typed!r}")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def refuse_given(context: typer.Context, why: Mapping[str, str]) -> None:
    """Refuse options that were typed, by name, with the reason for each."""
    for name, told in why.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            fail(f"--{name.replace('_', '-')} {told}")


def in_range(value: float, option: str, usual: str) -> None:
    """Refuse a share that is not between 0 and 1."""
    if not 0 < value < 1:
        fail(f"{option} must lie between 0 and 1, got {value:g}; {usual} is usual")


def tell_refused(refused: Sequence[RejectedRow], total: int) -> None:
    """Name the first rows that were left out, on stderr."""
    for one in refused[:5]:
        echo(f"refused: {one}", err=True)
    if more := total - len(refused[:5]):
        echo(f"refused: {more:,} more rows", err=True)


@contextmanager
def row_progress(quiet: bool) -> Iterator[Callable[[int, float], None] | None]:
    """A function of the rows so far and the share of the file that shows both on one line."""
    if quiet:
        yield None
        return
    line, start = LiveLine(), time.perf_counter()
    try:
        yield lambda rows, done: line.show(_pace(rows, done, time.perf_counter() - start))
    finally:
        line.close()


def _pace(rows: int, done: float, spent: float) -> str:
    left = f", about {spent * (1 - done) / done:.0f} s left" if 0 < done < 1 else ""
    return f"{rows:,} rows ({done:.0%}), {rows / spent:,.0f} rows/s{left}"
