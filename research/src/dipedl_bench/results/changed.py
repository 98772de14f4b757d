"""Settings in which two configurations differ, in the words of a suite file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

#: Keys that lead to settings and are none.
_LEVELS = ("arguments", "settings", "below")
_NOTHING = object()


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Settings that differ, as ``training.amp was true and is false now``; [] if none does.

    The same change in several parts is told once.
    """
    pairs = _pairs(old, new)
    return list(dict.fromkeys(f"`{key}` was {a} and is {b} now" for key, a, b in pairs))


def _pairs(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = old.get(key, _NOTHING), new.get(key, _NOTHING)
            level = key in _LEVELS and all(isinstance(value, Mapping) for value in inner)
            yield from _pairs(*inner, place if level else f"{place}.{key}")
    elif (before := _told(old)) != (now := _told(new)):
        yield ".".join(place.split(".")[-2:]).removeprefix("."), before, now


def _told(value: Any) -> str:
    """A value as TOML has it; of an object its class."""
    if value is _NOTHING:
        return "not there"
    if isinstance(value, Mapping):
        return str(value.get("class", "a table"))
    return json.dumps(value)
