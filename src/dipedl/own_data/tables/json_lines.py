"""What is wrong with a file of JSON lines that pandas cannot read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .formats import Format, open_bytes


def only_object(path: Path, kind: Format) -> dict[str, Any] | None:
    """The object that the whole file is, written over several lines."""
    with open_bytes(path, kind.packed) as stream:
        try:
            found = json.loads(stream.read().decode(kind.encoding))
        except ValueError:
            return None
    return found if isinstance(found, dict) else None


def bad_line(path: Path, kind: Format) -> str:
    """Which line is no object."""
    with open_bytes(path, kind.packed) as stream:
        for i, line in enumerate(stream, start=1):
            try:
                fine = not line.strip() or isinstance(json.loads(line), dict)
            except ValueError as error:
                return f", line {i} is no JSON: {error}; write one object per line"
            if not fine:
                return f", line {i} is no object but {line[:30]!r}; write names and values"
    return " cannot be read as JSON lines; write one object per line"
