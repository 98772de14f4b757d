"""Where a training ran and what it took, written beside its checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dipedl.writing.files import write_file

from ..results.damage import read_json
from ..results.receipt import machine
from ..spec.build import settings_named
from .memo import Spent

_FILE = "so-far.json"


class SoFar:
    """A training that may go on in another process, from `checkpoint` (an ensemble: from several).

    `resumed` says whether it does; `machines` are its kinds of machine, this one the last, and
    `earlier` is what its processes before this one took, up to their last call of `keep`.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._file = checkpoint.parent / _FILE
        self.resumed = any(checkpoint.parent.glob(f"{checkpoint.name}*"))
        known = _read(self._file) if self.resumed else {}
        self.machines = list(dict.fromkeys([*known.get("machines", ()), machine()]))
        self.earlier = Spent(*known.get("spent", ()))
        self._start = Spent.until_now()
        self.keep()

    def keep(self) -> None:
        """Write down what all processes have taken until now."""
        spent = self.earlier + Spent.until_now() - self._start
        told = {"machines": self.machines, "spent": [spent.wall, spent.processor]}
        write_file(self._file, json.dumps(told).encode())


def _read(file: Path) -> dict[str, Any]:
    """Return the records of earlier processes: none where the file is damaged or not there."""
    with suppress(OSError, ValueError):
        return dict(read_json(file))
    return {}


def precision(settings: Mapping[str, Any]) -> str | None:
    """In what a network of these settings trains: "bfloat16" or "float32"; None without network."""
    own = {key: value for key, value in settings.items() if key != "below"}
    said = set(settings_named("amp", own))
    return ("bfloat16" if True in said else "float32") if said else None
