"""Checkpoints: written completely or not at all, and refused if they belong to another run."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from ...writing import writable_target, write_file

_FORMAT = 1
#: A file of more bytes is written at most once per so many seconds: WRN-28-10 has 290 MB and,
#: on a GPU, epochs of 7 s, of which a write would take a tenth.
_LARGE = 100_000_000
_PERIOD = 30.0


class Checkpoints:
    """Checkpoint of one run: a small one is written every epoch, a large one less often."""

    def __init__(self, path: Path | None, identity: dict[str, str]) -> None:
        if path is not None:
            writable_target(path)  # now, and not after the first epoch
        self.path, self.identity = path, identity
        self.size, self.written, self.is_newest = 0, 0.0, True

    def load(self) -> dict[str, Any] | None:
        """The state in the file, if there is one; it must not be damaged or of another run."""
        path = self.path
        if path is None or not path.exists():
            return None
        with path.open("rb") as file:
            try:
                content = torch.load(file, map_location="cpu", weights_only=True)
                version, found, state = content["format"], content["fingerprint"], content["state"]
            except Exception as error:
                what = type(error).__name__
                raise ValueError(
                    f"checkpoint {path} cannot be read ({what}); delete it to start again"
                ) from error
        if version != _FORMAT:
            raise ValueError(
                f"checkpoint {path} has format {version}, this version reads {_FORMAT}; delete it"
            )
        _check_same(path, found, self.identity)
        return dict(state)

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state, unless the file is large and was just written."""
        recent = time.monotonic() - self.written < _PERIOD
        self.is_newest = False
        if not (self.size > _LARGE and recent):
            self.flush(state)

    def flush(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state unless the file has it."""
        if self.path is not None and not self.is_newest:
            self.size = save_checkpoint(self.path, state(), self.identity)
            self.written, self.is_newest = time.monotonic(), True


def save_checkpoint(path: Path, state: dict[str, Any], fingerprint: dict[str, str]) -> int:
    """Replace the file at `path` at once, and return its size in bytes.

    After a failure the old file remains.
    """
    # Through memory: torch.save to a full disk raises an unclear RuntimeError.
    buffer = io.BytesIO()
    torch.save({"format": _FORMAT, "fingerprint": fingerprint, "state": state}, buffer)
    try:
        write_file(path, buffer.getbuffer())
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}. The checkpoint needs {max(buffer.tell() / 1e6, 0.1):.1f} MB: free "
            "some space or pass another path. The module holds the last epoch",
        ) from error
    return buffer.tell()


def _check_same(path: Path, found: dict[str, str], expected: dict[str, str]) -> None:
    for name in [*expected, *found]:
        there, here = found.get(name, "absent"), expected.get(name, "absent")
        if there != here:
            there, here = _first_difference(there, here)
            raise ValueError(
                f"checkpoint {path} is of another run: {name} was {there} there and is {here} "
                "here; pass another checkpoint path, or delete the file to start again"
            )


def _first_difference(there: str, here: str) -> tuple[str, str]:
    """The first line in which two texts differ."""
    pairs = zip_longest(there.splitlines(), here.splitlines(), fillvalue="nothing")
    return next(((x.strip(), y.strip()) for x, y in pairs if x != y), (there, here))
