"""Which files of a kept folder are damaged or gone; and readers whose errors name the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..checksums import SUMS, read_sums, write_sums
from ..writing import sha256_of

_AGAIN = "run the suite again: it makes what is damaged again, and nothing else"


def seal(folder: Path) -> None:
    """Record the checksums of all files of a folder, for `damaged_files`."""
    write_sums(folder, {file.name: sha256_of(file) for file in sorted(folder.iterdir())})


def damaged_files(folder: Path) -> list[str]:
    """Return the damage of each file of a folder: gone, or changed since the folder was sealed."""
    if not (folder / SUMS).exists():
        return [f"{SUMS} is gone"]
    sums, found = read_sums(folder), []
    for name in sorted(sums.keys() | {file.name for file in folder.iterdir()} - {SUMS}):
        if name not in sums:
            found.append(f"{name} is not in {SUMS}")
        elif not (folder / name).is_file():
            found.append(f"{name} is gone")
        elif sha256_of(folder / name) != sums[name]:
            found.append(f"{name} is damaged: its checksum is another than when it was written")
    return found


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
