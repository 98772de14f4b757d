"""Rows of another machine, merged into the results of this one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..names import is_folder_name
from .rows import RowFile
from .store import Store, default_root, make_root


def merge(
    files: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str] | None = None
) -> tuple[int, int]:
    """Append the rows of ``rows.jsonl`` files; returns how many were new, and how many were there.

    Rows without their arrays are enough for every table, but for no sweep. FileNotFoundError if a
    file is missing, ValueError if a line is no row.
    """
    new = present = 0
    for file in map(Path, files):
        if not file.is_file():
            raise FileNotFoundError(f"no file {str(file)!r}; name a rows.jsonl of a run")
        for row in RowFile(file).read()[0]:
            _check_names(row, file)
            store = Store(out or default_root(), row["suite"], row["profile"])
            make_root(store.root)
            store.folder.mkdir(parents=True, exist_ok=True)
            added = store.append(row)
            new, present = new + added, present + (not added)
    return new, present


def _check_names(row: Mapping[str, Any], file: Path) -> None:
    """Refuse a suite or profile that would be a folder elsewhere."""
    for key in ("suite", "profile"):
        name = row.get(key)
        if not isinstance(name, str) or not is_folder_name(name):
            raise ValueError(f"{str(file)!r} has a row whose {key} is no name: {name!r}")
