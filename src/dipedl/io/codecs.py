"""The closed table of types that a file may name, made from the code, never from a file."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from .compiled import lightgbm, random, search_trees, trees, xgboost
from .homes import class_of, is_type, own_types
from .table import foreign, own_densities, own_features, own_models, own_monitoring


class Codec(Protocol):
    """Parts of the objects of one type, and the objects made of them, every part checked."""

    def take(self, value: Any) -> dict[str, Any]:
        """The parts; ValueError if the object is not one that the codec knows."""
        ...

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        """The object; ValueError unless the parts fit together."""
        ...


class Pool(Protocol):
    """Arrays of all objects of one type: one for each field, one object after another."""

    fields: dict[str, Any]

    def take(self, value: Any) -> dict[str, np.ndarray]:
        """The fields of one object, each (n,)."""
        ...

    def make_all(self, cls: Any, joined: trees.Joined) -> list[Any]:
        """The objects; ValueError unless every one is sound."""
        ...


_FAMILIES = (foreign, own_models, own_densities, own_features, own_monitoring)
_ENTRIES = {name: entry for family in _FAMILIES for name, entry in family.ENTRIES.items()}
#: Name of a type in a file, the full public one for those of others -> its codec.
CODECS: dict[str, Codec] = {
    **_ENTRIES,
    **random.CODECS,
    **search_trees.CODECS,
    **lightgbm.CODECS,
    **xgboost.CODECS,
}
#: Types whose objects lie in a file one after another.
POOLS: dict[str, Pool] = trees.POOLS


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
