"""Files of a kept folder: their checksums, and readers whose errors name a damaged file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.writing import sha256_of, write_file

SUMS = "SHA256SUMS"
_AGAIN = "run the suite again: it makes what is damaged again, and nothing else"


def write_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Record checksums by file name, in the format of ``sha256sum``."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    write_file(folder / SUMS, text.encode("utf-8", "surrogateescape"))


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums by file name that were recorded in a folder; none without a record."""
    path = folder / SUMS
    if not path.is_file():
        return {}
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    lines = (line.split(maxsplit=1) for line in text.split("\n"))
    return {line[1].removeprefix("*"): line[0] for line in lines if len(line) == 2}


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


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    weights: dict[str, np.ndarray] = load_file(path)
    return weights


_READERS: dict[str, Callable[[Path], Any]] = {
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".npy": lambda path: np.load(path, allow_pickle=False),
    ".npz": _read_npz,
    ".safetensors": _read_weights,
}


def read_file(path: Path, remedy: str = _AGAIN) -> Any:
    """Return the content of a JSON file, or the arrays of a .npy, .npz or safetensors file.

    A ValueError names a damaged file and the remedy.
    """
    try:
        return _READERS[path.suffix](path)
    except (FileNotFoundError, PermissionError, MemoryError):
        raise
    except Exception as error:  # libraries raise nearly any on damaged content
        raise ValueError(
            f"{str(path)!r} is damaged ({type(error).__name__}: {error}); {remedy}"
        ) from error
