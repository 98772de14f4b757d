"""On which kinds of machine a training ran, written beside its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._writing import write_file
from ..results.damage import read_json
from ..results.receipt import machine
from ..spec.build import settings_named

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
    own = {key: value for key, value in settings.items() if key != "below"}
    said = set(settings_named("amp", own))
    return ("bfloat16" if True in said else "float32") if said else None
