"""Errors that a user can mend: each says what, where and the remedy."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterable
from difflib import get_close_matches

_MOST_NAMED = 8


class UserError(ValueError):
    """Something in a file or in an option that its owner can mend; the message says how."""


class UsageError(UserError):
    """A mistake in the command line itself, whatever the data are."""


def list_names(names: Iterable[object]) -> str:
    """Names between commas, those after the eighth as a number."""
    named = [str(name) for name in names]
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def suggest_name(name: str, names: Iterable[str]) -> str:
    """The known name that comes nearest, or all of them, for an error."""
    known = list(names)
    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, n=1)
    return f"did you mean {lower[near[0]]!r}?" if near else f"it has {list_names(known)}"


def as_typed(names: Iterable[object]) -> str:
    """Names as they are typed behind an option: between commas, and in quotes where needed."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return shlex.quote(line.getvalue().removesuffix("\r\n"))


def quoting_told(option: str, names: Iterable[str]) -> str:
    """How to type a name that holds a comma, if there is one and it is an option that is typed."""
    held = [name for name in names if "," in name][:1] if option.startswith("--") else []
    return f"; a name with a comma stands in quotes: {option} {as_typed(held)}" if held else ""


def check_columns(option: str, given: Iterable[str], names: Iterable[str], path: object) -> None:
    """UserError for a column that an option names and that the table at `path` has not."""
    known = list(names)
    for name in given:
        if name not in known:
            near, quoted = suggest_name(name, known), quoting_told(option, known)
            raise UserError(f"{option} names {name!r}, which is not in {path}: {near}{quoted}")
