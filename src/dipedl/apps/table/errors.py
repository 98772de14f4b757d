"""Errors that a user can mend: each says what, where and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

_MOST_NAMED = 8


class UserError(ValueError):
    """Something in a file or an argument that its owner can mend; the message says how.

    An argument stands in backquotes, a value to give it as in Python: drop=['id'].
    """


class UsageError(UserError):
    """A wrong argument, whatever the data are."""


def list_names(names: Iterable[object]) -> str:
    """Return names between commas, those after the eighth as a number."""
    named = [str(name) for name in names]
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def suggest_name(name: str, names: Iterable[str]) -> str:
    """Return the known name that comes nearest, or all of them, for an error."""
    known = list(names)
    lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), lower, n=1)
    return f"did you mean {lower[near[0]]!r}?" if near else f"it has {list_names(known)}"


def check_columns(argument: str, names: Iterable[str], known: Iterable[str], path: object) -> None:
    """Refuse a column that an argument names and that the table at `path` has not."""
    known = list(known)
    for name in names:
        if name not in known:
            entry = ""
            for comma in [one for one in known if "," in one][:1]:
                one = {comma: names[name]} if isinstance(names, Mapping) else [comma]
                entry = f"; a name with a comma is one entry: {argument}={one}"
            near = suggest_name(name, known)
            raise UserError(f"`{argument}` names {name!r}, which is not in {path}: {near}{entry}")
