"""The file of a saved model: a safetensors container whose every bit is under a checksum."""

from __future__ import annotations

import json
import platform
import stat
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..protocols import optional
from ..writing.files import write_file

FORMAT_VERSION = 4
#: Names the work in the error of a package that is missing.
SAVING = "saving and loading"
_KEY = "dipedl"
#: Bytes that one list or dict of the manifest takes in memory, and one value in it, at most.
_PER_CONTAINER, _PER_VALUE = 200, 40
#: The manifest may take this many times the size of the file.
_MOST_GROWTH, _ALWAYS = 7, 1 << 20


class ModelFileError(ValueError):
    """A file that is not one of ours, or is damaged, forged, too new or of another version."""


def versions(*packages: str) -> dict[str, str | None]:
    """Versions of dipedl, Python and `packages`; None for one that is not installed."""
    found: dict[str, str | None] = {"dipedl": __version__, "python": platform.python_version()}
    return found | {package: _installed_version(package) for package in packages}


@cache  # reading metadata takes milliseconds
def _installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def write(path: Path, manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a file, all of it or nothing; `manifest` gets the format version and the checksums."""
    summaries = {name: _summary(array) for name, array in tensors.items()}
    full = manifest | {"format_version": FORMAT_VERSION, "tensors": summaries}
    text = json.dumps(full | {"sha256": _checksum(full)}, sort_keys=True, allow_nan=False)
    write_file(path, optional("safetensors.numpy", SAVING).save(tensors, metadata={_KEY: text}))


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Manifest and tensors of a file, every checksum verified; ModelFileError if one is wrong."""
    data = _regular_bytes(path)
    reader = optional("safetensors.numpy", SAVING)
    try:
        header = _header(data)
        tensors = reader.load(data)
        metadata = header.get("__metadata__") or {}
    # Whatever a parser makes of foreign bytes, it is the file.
    except Exception as error:
        raise ModelFileError(
            f"{path} is not a file that dipedl saved, or it is damaged: {error}; "
            "name another, or copy it again"
        ) from None
    if _KEY not in metadata:
        raise ModelFileError(
            f"{path} is a safetensors file but holds no model of dipedl; "
            "write one with clf.save(path)"
        )
    try:
        manifest = _verify(metadata[_KEY], tensors)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: {error}; save or copy it again") from None
    _check_format(path, manifest)
    return manifest, tensors


def _regular_bytes(path: Path) -> bytes:
    """All bytes of a file; a device or a pipe could go on for ever."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}; check the spelling") from None
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{path} is a folder; name the file in it that holds the model")
    if not stat.S_ISREG(kind):
        raise ModelFileError(f"{path} is not a regular file; copy what it gives to one first")
    return path.read_bytes()


def _header(data: bytes) -> dict[str, Any]:
    """The JSON before the arrays, once it is seen that reading it takes little memory."""
    size = int.from_bytes(data[:8], "little")
    if size > len(data) - 8:
        raise ValueError("it is shorter than its header says")
    text = data[8 : 8 + size]
    containers = text.count(b"[") + text.count(b"{")
    taken = _PER_CONTAINER * containers + _PER_VALUE * text.count(b",")
    if taken > _ALWAYS + _MOST_GROWTH * len(data):
        raise ValueError("its manifest would take many times the memory of the file")
    return dict(json.loads(text))


def _check_format(path: Path, manifest: dict[str, Any]) -> None:
    found = manifest.get("format_version")
    if found == FORMAT_VERSION:
        return
    written = manifest.get("versions")
    writer = written.get("dipedl") if isinstance(written, dict) else "of an unknown version"
    remedy = "upgrade: pip install -U dipedl"
    if isinstance(found, int) and found < FORMAT_VERSION:
        then = f"{writer}, as it was then" if writer == __version__ else writer
        remedy = f"fit the model again and save it, or load the file with dipedl {then}"
    raise ModelFileError(
        f"{path} has format version {found}, written by dipedl {writer}; this dipedl "
        f"({__version__}) reads format version {FORMAT_VERSION}; {remedy}"
    )


def _verify(text: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    manifest = dict(json.loads(text))
    if manifest.pop("sha256") != _checksum(manifest):
        raise ValueError("the manifest does not match its checksum")
    found = {name: _summary(array) for name, array in tensors.items()}
    expected = manifest["tensors"]
    wrong = sorted(
        name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)
    )
    if wrong:
        raise ValueError(f"the array {wrong[0]!r} does not match its checksum")
    return manifest


def _summary(array: np.ndarray) -> dict[str, Any]:
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "sha256": sha256(data.data).hexdigest(),
    }


def _checksum(manifest: dict[str, Any]) -> str:
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
