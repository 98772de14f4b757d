"""Files of a kept folder: their checksums, and a reader whose errors name a damaged file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

from dipedl.writing import sha256_of, write_file

SUMS = "SHA256SUMS"


def seal(folder: Path) -> None:
    """Record the checksums of all files of a folder, in the format of ``sha256sum``."""
    lines = [f"{sha256_of(file)}  {file.name}\n" for file in sorted(folder.iterdir())]
    write_file(folder / SUMS, "".join(lines))


def damaged_files(folder: Path) -> list[str]:
    """Return the damage of each file of a folder: gone, or changed since the folder was sealed."""
    if not (folder / SUMS).exists():
        return [f"{SUMS} is gone"]
    lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    damage = []
    for name in sorted(sums.keys() | {file.name for file in folder.iterdir()} - {SUMS}):
        if name not in sums:
            damage.append(f"{name} is not in {SUMS}")
        elif not (folder / name).is_file():
            damage.append(f"{name} is gone")
        elif sha256_of(folder / name) != sums[name]:
            damage.append(f"{name} is damaged: its checksum is another than when it was written")
    return damage


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    if path.is_file() and not is_zipfile(path):  # numpy would advise to load it unsafely
        raise ValueError("it is no zip archive, as numpy.savez writes it")
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


def _read_weights(path: Path) -> Any:
    from safetensors.numpy import load_file

    return load_file(path)


_READERS: dict[str, Callable[[Path], Any]] = {
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".npz": _read_npz,
    ".safetensors": _read_weights,
}


_AGAIN = "run the suite again: it makes what is damaged again, and nothing else"


def read_file(path: Path, remedy: str = _AGAIN) -> Any:
    """Return the content of a JSON file, or the arrays of a .npz or safetensors file.

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
