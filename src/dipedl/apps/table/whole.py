"""Files that are read as a whole: arrays of NPZ, and JSON that is no lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .errors import UserError, list_names
from .formats import Format, open_bytes


def npz_frame(path: Path) -> pd.DataFrame:
    """A column for each array (n,) and for each column of an array (n, d), named "X0", "X1", ..."""
    with np.load(path, allow_pickle=False) as arrays:
        columns = [c for name in arrays.files for c in _columns(name, arrays[name], path)]
    n = {len(values) for _, values in columns}
    if len(n) > 1:
        raise UserError(
            f"{path} holds arrays of {list_names(sorted(n))} rows: all must have as many"
        )
    return pd.DataFrame(dict(columns))


def _columns(name: str, array: np.ndarray, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    if array.ndim not in (1, 2):
        raise UserError(
            f"{path} holds the array {name!r} of shape {array.shape}: give rows by columns, (n, d)"
        )
    if array.ndim == 1:
        yield name, array
    else:
        yield from ((f"{name}{j}", array[:, j]) for j in range(array.shape[1]))


def json_value(text: str | bytes) -> Any:
    """Return the value of a text of JSON; ValueError if it is none, or lists lie too deep in it."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("lists or objects are nested too deeply") from error


def only_object(path: Path, kind: Format) -> dict[str, Any] | None:
    """The object that the whole file is, written over several lines."""
    with open_bytes(path, kind.packed) as stream:
        try:
            found = json_value(stream.read().decode(kind.encoding))
        except ValueError:
            return None
    return found if isinstance(found, dict) else None


def bad_line(path: Path, kind: Format) -> str:
    """Which line is no object."""
    with open_bytes(path, kind.packed) as stream:
        for i, line in enumerate(stream, start=1):
            try:
                fine = not line.strip() or isinstance(json_value(line), dict)
            except ValueError as error:
                return f", line {i} is no JSON: {error}; write one object per line"
            if not fine:
                return f", line {i} is no object but {line[:30]!r}; write names and values"
    return " cannot be read as JSON lines; write one object per line"
