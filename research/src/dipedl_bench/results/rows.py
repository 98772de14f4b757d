"""A row: what one method did with one seed, what it cost, the receipt; and the file of rows.

A file holds a JSON line for each row, written at once to the end, so that a kill can tear the last
line only; that is left out on reading, and cut off before the next write. Rows of a crossed suite
say "dataset" and "classifier" too.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from ..writing import plain, write_file
from .receipt import receipt
from .scores import score

_KEY = ("suite", "profile", "method", "config_hash", "seed")
#: What readers of a row rely on; those that follow only where it has metrics.
_HELD = {"title": str, "seed": int, "config": dict, "versions": dict}
_OF_METRICS = {"n": dict, "seconds": dict, "cpu_seconds": dict}


class RowFile:
    """The rows of one suite and profile; the file need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._keys: tuple[tuple[int, ...], frozenset[tuple[Any, ...]]] | None = None

    def keys(self) -> frozenset[tuple[Any, ...]]:
        """Keys of all whole rows; the file is read again only when it has changed."""
        if not self.path.exists():
            return frozenset()
        stat = self.path.stat()
        state = stat.st_ino, stat.st_size, stat.st_mtime_ns
        if self._keys is None or self._keys[0] != state:
            self._keys = state, frozenset(map(key_of, self.read()[0]))
        return self._keys[1]

    def read(self) -> tuple[list[dict[str, Any]], int]:
        """Whole rows, and the number of bytes of a torn last line."""
        if not self.path.exists():
            return [], 0
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        return list(_parsed(whole, self.path)), len(data) - len(whole)

    def append(self, row: Mapping[str, Any]) -> bool:
        """Write one row to the end; False if a row of its key is there already."""
        line = as_line(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self._lock):
            rows, torn = self.read()
            if any(key_of(old) == key_of(row) for old in rows):
                return False
            if torn:
                os.truncate(self.path, self.path.stat().st_size - torn)
            _append(self.path, line)
        return True

    def change(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> int:
        """Write all rows anew, changed, at once or not at all; gives how many there are."""
        with FileLock(self._lock):
            rows = [change(row) for row in self.read()[0]]
            write_file(self.path, b"".join(as_line(row) for row in rows))
        return len(rows)

    @property
    def _lock(self) -> Path:
        return self.path.with_suffix(".lock")


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that no two rows share."""
    return tuple(row[name] for name in _KEY)


def line_of(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return data set, classifier and method; "" where a suite has one data set."""
    return row.get("dataset", ""), row.get("classifier", ""), row["method"]


def as_line(row: Mapping[str, Any]) -> bytes:
    """A row as one line of JSON; numbers that are not finite, which JSON lacks, as text."""
    return json.dumps(plain(row), ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(descriptor, line) < len(line):  # the disk filled up in the middle of the line
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parsed(data: bytes, path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = _with_numbers(json.loads(line))
            key_of(row)
            _check(row)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(
                f"{str(path)!r} must hold one JSON object a line, got line {number}: "
                f"{line[:60]!r} ({type(error).__name__}: {error}); if it is the rows.jsonl of a "
                "run, delete that line: the next run computes its row again from the arrays"
            ) from error
        yield row


def _with_numbers(row: dict[str, Any]) -> dict[str, Any]:
    metrics = {name: float(value) for name, value in row["metrics"].items()}
    intervals = {name: [float(a), float(b)] for name, (a, b) in row["intervals"].items()}
    return {**row, "metrics": metrics, "intervals": intervals}


def _check(row: Mapping[str, Any]) -> None:
    for name, kind in (_HELD | (_OF_METRICS if row["metrics"] else {})).items():
        if not isinstance(row[name], kind):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {row[name]!r}")


def make_row(
    head: Mapping[str, Any],
    *,
    arrays: Mapping[str, Mapping[str, np.ndarray]],
    own: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    n_resamples: int,
) -> dict[str, Any]:
    """The row of a method and a seed; `head` says which, with the config and its hash.

    `own` is what the method itself cost: "seconds" and "cpu_seconds" ({"train", "score"}),
    "peak_memory_mb", "forward_passes", "n_parameters", and "n", the rows of each split; `parts`
    holds by role the name, hash and cost of each trained part below it.
    """
    return {
        **head,
        **score(arrays, n_resamples),
        "n": dict(own["n"]),
        **_total_cost(own, parts),
        "own": dict(own),
        "parts": {role: dict(part) for role, part in parts.items()},
        **receipt(),
    }


def _total_cost(own: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Costs of a method with all its parts, as if nothing had been shared with other methods."""
    costs = [own, *parts.values()]
    added: dict[str, Any] = {
        kind: {step: round(sum(c[kind][step] for c in costs), 3) for step in ("train", "score")}
        for kind in ("seconds", "cpu_seconds")
    }
    return {
        **added,
        "peak_memory_mb": max(c["peak_memory_mb"] for c in costs),
        "forward_passes": own["forward_passes"],
        "n_parameters": sum(c["n_parameters"] or 0 for c in costs) or None,
    }


def was_resumed(row: Mapping[str, Any]) -> bool:
    """Return whether a part of a row was trained by more than one process."""
    parts = [row.get("own", {}), *row.get("parts", {}).values()]
    return any(part.get("resumed") for part in parts)
