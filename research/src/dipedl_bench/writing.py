"""Files that are written whole or not at all, their checksums; values and errors as text."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at `path` once the block has ended, on the disk, or not at all."""
    beside = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file as `whole_file` does; text in UTF-8."""
    with whole_file(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def sha256_of(path: Path) -> str:
    """Return the hex digits of the SHA-256 of a file."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def plain(value: Any) -> Any:
    """Return a value that ``json.dump`` takes: lists for tuples, text for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def error_text(error: BaseException) -> str:
    """Return the message of an error, without quotes of a KeyError or the number of an OSError."""
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return error.strerror
    return str(error.args[0] if isinstance(error, LookupError) and error.args else error)
