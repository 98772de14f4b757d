"""Which files of a kept folder are damaged or gone; and readers whose errors name the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.writing.files import sha256_of

from ..checksums import SUMS, read_sums, write_sums

_AGAIN = "run the suite again: it makes what is damaged again, and nothing else"


def seal(folder: Path) -> None:
    """Record the checksums of all files of a folder, for `damaged_files`."""
    write_sums(folder, {file.name: sha256_of(file) for file in sorted(folder.iterdir())})


def damaged_files(folder: Path) -> list[str]:
    """Return the damage of each file of a folder: gone, or changed since the folder was sealed.

    The files of a folder without checksums, as earlier versions left them, need only be readable.
    """
    if (folder / SUMS).exists():
        return list(_against_sums(folder))
    return [why for file in sorted(folder.iterdir()) if (why := _unreadable(file))]


def _against_sums(folder: Path) -> Iterator[str]:
    sums = read_sums(folder)
    for name in sorted(sums.keys() | {file.name for file in folder.iterdir()} - {SUMS}):
        if name not in sums:
            yield f"{name} is not in {SUMS}"
        elif not (folder / name).is_file():
            yield f"{name} is gone"
        elif sha256_of(folder / name) != sums[name]:
            yield f"{name} is damaged: its checksum is another than when it was written"


def _unreadable(file: Path) -> str:
    if file.suffix not in _READERS:
        return ""
    try:
        _READERS[file.suffix](file)
    except ValueError as error:
        return f"{file.name} is damaged: {error.__cause__}"
    return ""


def read_json(path: Path, remedy: str = _AGAIN) -> Any:
    """Return the content of a JSON file; a ValueError names a damaged file and the remedy."""
    return _read(path, lambda: json.loads(path.read_text(encoding="utf-8")), remedy)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file by name, their checksums verified; errors as of `read_json`."""

    def arrays() -> dict[str, np.ndarray]:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}

    found: dict[str, np.ndarray] = _read(path, arrays)
    return found


def read_npy(path: Path) -> np.ndarray:
    """The array of a file; errors as of `read_json`."""
    found: np.ndarray = _read(path, lambda: np.load(path, allow_pickle=False))
    return found


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Weights of a network by name; errors as of `read_json`."""
    from safetensors.numpy import load_file

    found: dict[str, np.ndarray] = _read(path, lambda: load_file(path))
    return found


def _read(path: Path, read: Callable[[], Any], remedy: str = _AGAIN) -> Any:
    try:
        return read()
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # libraries raise nearly any on damaged content
        raise ValueError(
            f"{str(path)!r} is damaged ({type(error).__name__}: {error}); {remedy}"
        ) from error


_READERS: dict[str, Callable[[Path], Any]] = {
    ".json": read_json,
    ".npz": read_npz,
    ".npy": read_npy,
    ".safetensors": read_weights,
}
