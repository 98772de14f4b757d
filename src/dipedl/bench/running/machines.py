"""On which kinds of machine a training ran, written beside its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..._writing import write_file
from ..results.damage import read_json
from ..results.receipt import machine

_FILE = "machines.json"


def trained_on(folder: Path) -> tuple[bool, list[str]]:
    """Whether a training goes on from a checkpoint in `folder`, and its kinds of machine so far.

    The kind of this machine is the last.
    """
    file = folder / _FILE
    resumed = any(other != file for other in folder.iterdir())
    before: list[str] = read_json(file) if resumed and file.exists() else []
    found = list(dict.fromkeys([*before, machine()]))
    write_file(file, json.dumps(found).encode())
    return resumed, found


def precision(settings: Mapping[str, Any]) -> str | None:
    """In what a network of these settings trains: "bfloat16" or "float32"; None without network."""
    said = set(_amp(settings))
    return ("bfloat16" if True in said else "float32") if said else None


def _amp(value: Any) -> Iterator[bool]:
    """Every setting `amp` of a part, not of the parts below it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "amp":
                yield bool(item)
            elif key != "below":
                yield from _amp(item)
