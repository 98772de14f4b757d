"""Configurations of older rows in today's words, so that equal settings are seen to be equal.

A row keeps the configuration and the hash that it was made with. A class that has since gained a
setting gives another hash for the same training; that of `settled` is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .receipt import config_hash

Table = dict[str, Any]

#: Settings younger than some rows, by class, and the value at which nothing is changed.
_YOUNG: dict[str, Table] = {
    "TorchClassifier": {"label_smoothing": 0.0},
    # before it had a calibrator, the probabilities were those of the classifier
    "DIPClassifier": {"calibrator": "passthrough"},
    "WhitenedCNN": {"residual": False, "mirrored": False, "shifted": False},
    "CropFlip": {"cutout": 0},
}
#: Keys that lead to settings and are none.
_LEVELS = ("arguments", "settings", "below")
_Z_SCORE = {"class": "ZScore", "settings": {}}


def standing(row: Mapping[str, Any]) -> str:
    """Hash of the settings that a row stands for; its own unless an older version wrote it."""
    config = row.get("config", {})
    found = settled(config)
    return str(row["config_hash"]) if found == config else config_hash(found)


def settled(config: Mapping[str, Any]) -> Table:
    """The configuration of a part as today's version would write it, without what changes nothing.

    Settings that an older version did not have are filled in. `verbose` is left out, and `cv` where
    the log-densities are stored ones: it is not used then. Where a DIPClassifier leaves density,
    normaliser or calibrator to the library, `library_defaults` says whose: they have changed. A
    configuration that is not of a suite's part is returned as it is.
    """
    below = {role: settled(part) for role, part in config.get("below", {}).items()}
    name, arguments = config.get("estimator"), config.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        return dict(config)
    found = {**config, "arguments": _arguments(name, arguments, "density" in below)}
    return {**found, "below": below} if below else found


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Settings that differ, as ``training.amp was true and is false now``; [] if none does.

    The same change in several parts is told once.
    """
    pairs = _pairs(settled(old), settled(new))
    return list(dict.fromkeys(f"`{key}` was {a} and is {b} now" for key, a, b in pairs))


def _arguments(name: str, given: Mapping[str, Any], stored: bool) -> Table:
    found = {key: _nested(value) for key, value in given.items()}
    if name == "DIPClassifier":
        if "calibrator" not in found and found.get("normalizer") is None:
            found["normalizer"] = _Z_SCORE  # the default of the versions without a calibrator
        return _without_defaults({**_YOUNG[name], **found}, stored)
    return {**_YOUNG.get(name, {}), **found}


def _without_defaults(found: Table, stored: bool) -> Table:
    """Arguments of a DIPClassifier without those that change nothing."""
    settled_by_hand = stored and None not in (found.get("normalizer"), found["calibrator"])
    version = (
        {} if settled_by_hand else {"library_defaults": "0.2" if "verbose" in found else "0.1"}
    )
    unused = ("verbose", "cv") if stored else ("verbose",)
    return {key: value for key, value in found.items() if key not in unused} | version


def _nested(value: Any) -> Any:
    """An argument that is an object, or holds some."""
    if isinstance(value, Mapping) and set(value) == {"class", "settings"}:
        return {**value, "settings": _arguments(value["class"], value["settings"], stored=False)}
    return value


def _pairs(old: Any, new: Any, place: str = "") -> Iterator[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            name = place if key in _LEVELS else f"{place}.{key}"
            yield from _pairs(old.get(key), new.get(key), name)
    elif old != new:
        yield ".".join(place.split(".")[-2:]).removeprefix("."), _told(old), _told(new)


def _told(value: Any) -> str:
    """A value as TOML has it; of an object its class."""
    return str(value["class"]) if isinstance(value, Mapping) else json.dumps(value)
