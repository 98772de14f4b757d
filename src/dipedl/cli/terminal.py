"""What all commands share: names between commas, and errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer


@contextmanager
def exit_on(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these kinds into one line and exit code 2."""
    try:
        yield
    except kinds as error:
        fail(str(error))


def fail(message: str, code: int = 2) -> NoReturn:
    """One line on stderr, and an exit code."""
    typer.echo(f"dipedl: {message}", err=True)
    raise typer.Exit(code)


def names_in(typed: str) -> list[str]:
    """Names between commas."""
    return [name.strip() for name in typed.split(",") if name.strip()]
