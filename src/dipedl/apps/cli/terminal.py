"""Texts of all commands: names between commas, errors and warnings in one line."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from ...writing.cells import error_text, printable_name


@contextmanager
def exit_on(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these kinds into one line and exit code 2."""
    try:
        yield
    except kinds as error:
        fail(error_text(error))


@contextmanager
def warnings_as_notes(quiet: bool = False) -> Iterator[None]:
    """Tell a warning of the library without its file and line, and others not at all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not quiet:
            warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _note
        yield


def _note(message: Warning | str, *_: object, **__: object) -> None:
    from ...explanation import FindingWarning
    from ..table.findings import in_shell

    if isinstance(message, FindingWarning):
        message = FindingWarning(in_shell(message.args[0]))
    echo(f"note: {message}", err=True)


def fail(message: str, code: int = 2) -> NoReturn:
    """One line on stderr, and an exit code."""
    echo(f"dipedl: {message}", err=True)
    raise typer.Exit(code)


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a text of one line or more, in which names and classes cannot drive a terminal."""
    typer.echo("\n".join(map(one_line, str(text).split("\n"))), err=err)


def one_line(text: str) -> str:
    r"""A text without what could break a line or drive a terminal: such characters as ``\x1b``.

    So are the bytes of a file's name that are no UTF-8.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in printable_name(text))


def names_in(typed: str) -> list[str]:
    """Names between commas; one that holds a comma stands in double quotes."""
    try:
        (names,) = csv.reader([typed], skipinitialspace=True)
    except (csv.Error, ValueError):
        fail(f"names with line breaks must stand in double quotes, got {typed!r}")
    return [name.strip() for name in names if name.strip()]
