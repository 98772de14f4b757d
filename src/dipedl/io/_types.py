"""The closed table of types that a file may name, made from the code, never from a file."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from .codecs import CODECS, POOLS
from .homes import class_of, is_type, own_types


@cache
def _all_homes() -> dict[str, str]:
    """Return the full name of the module that defines each type, by its name in a file."""
    foreign = {name: name.rpartition(".")[0] for name in (*CODECS, *POOLS)}
    return foreign | {name: home for name, home in own_types().items() if name in CODECS}


@cache
def _by_class() -> dict[str, list[str]]:
    """Return the names in a file that end in the name of a class, by that name."""
    found: dict[str, list[str]] = {}
    for name in _all_homes():
        found.setdefault(class_of(name), []).append(name)
    return found


def type_name(cls: type) -> str | None:
    """Return the name of a type in a file; None for a type that is not in the table."""
    for name in _by_class().get(cls.__name__, ()):
        if is_type(cls, _all_homes()[name], cls.__name__):
            return name
    return None


def is_ours(name: str) -> bool:
    """Return whether the name of a type in a file is one of this package."""
    return name in own_types()


def lookup(name: Any) -> type:
    """Return the type that a file names; ValueError if the table has no such name."""
    if not isinstance(name, str) or name not in _all_homes():
        raise ValueError(f"the type {name!r} is not one that a model may hold")
    home = _all_homes()[name]
    try:
        found: type = getattr(import_module(home), class_of(name))
    except (ImportError, AttributeError) as error:
        package = home.partition(".")[0]
        raise ValueError(f"the type {name} needs {package}, as it was saved: {error}") from error
    return found
