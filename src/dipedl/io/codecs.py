"""The closed table of types that a file may name, made from the code, never from a file."""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from . import boosters, compiled, foreign, own
from .names import find, is_type, own_types

#: Name of a type in a file, the full public one for those of others -> how its parts are taken, and
#: how an object is made of them: `take(value)` and `make(cls, state)`, a ValueError if not sound.
CODECS: dict[str, Any] = {
    **foreign.ENTRIES,
    **own.ENTRIES,
    **compiled.CODECS,
    **boosters.CODECS,
}
#: Types whose objects lie in a file one after another: `fields` by name, `take(value)` and
#: `make_all(cls, joined)`.
POOLS: dict[str, Any] = compiled.POOLS


@cache
def paths() -> dict[str, str]:
    """Return the full name of each class, by its name in a file."""
    return {name: own_types().get(name, name) for name in (*CODECS, *POOLS)}


@cache
def _by_class() -> dict[str, list[str]]:
    """Return the names in a file, by the name of the class."""
    found: dict[str, list[str]] = {}
    for name, path in paths().items():
        found.setdefault(path.rpartition(".")[2], []).append(name)
    return found


_NAMES: WeakKeyDictionary[type, str | None] = WeakKeyDictionary()


def type_name(cls: type) -> str | None:
    """Return the name of a type in a file; None for a type that is not in the table."""
    if cls not in _NAMES:
        names = _by_class().get(cls.__name__, ())
        _NAMES[cls] = next((name for name in names if is_type(cls, paths()[name])), None)
    return _NAMES[cls]


def is_ours(name: str) -> bool:
    """Return whether the name of a type in a file is one of this package."""
    return name in own_types()


def lookup(name: Any) -> type:
    """Return the type that a file names; ValueError if the table has no such name."""
    if not isinstance(name, str) or name not in paths():
        raise ValueError(f"the type {name!r} is not one that a model may hold")
    try:
        found: type = find(paths()[name])
    except (ImportError, AttributeError) as error:
        package = paths()[name].partition(".")[0]
        raise ValueError(f"the type {name} needs {package}, as it was saved: {error}") from error
    return found
