"""The file of a saved model: a safetensors container whose every bit is under a checksum."""

from __future__ import annotations

import json
import platform
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from .._plugins import explain_missing
from .._version import __version__
from .._writing import write_file

FORMAT_VERSION = 2
_KEY = "dipedl"
#: What reading damaged or forged content can raise.
DAMAGE = (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError)


def optional(module: str) -> Any:
    """Import a module of the extra ``save``, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise explain_missing(error, "saving and loading") from error


def versions(*packages: str) -> dict[str, str | None]:
    """Versions of dipedl, Python and `packages`; None for one that is not installed."""
    found: dict[str, str | None] = {"dipedl": __version__, "python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def write(path: Path, manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """Write a file, all of it or nothing; `manifest` gets the format version and the checksums."""
    summaries = {name: _summary(array) for name, array in tensors.items()}
    full = manifest | {"format_version": FORMAT_VERSION, "tensors": summaries}
    # As it will be read: a tuple is a list by then.
    full = json.loads(json.dumps(full, allow_nan=False))
    text = json.dumps(full | {"sha256": _checksum(full)}, sort_keys=True)
    write_file(path, optional("safetensors.numpy").save(tensors, metadata={_KEY: text}))


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Manifest and tensors of a file, every checksum verified."""
    data = path.read_bytes()
    reader, damage = optional("safetensors.numpy"), optional("safetensors").SafetensorError
    try:
        tensors = reader.load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        metadata = header.get("__metadata__") or {}
    except (damage, *DAMAGE) as error:
        raise ValueError(
            f"{path} is not a file that dipedl saved, or it is damaged: {error}"
        ) from error
    if _KEY not in metadata:
        raise ValueError(
            f"{path} is a safetensors file but holds no model of dipedl; "
            "write one with clf.save(path)"
        )
    try:
        manifest = _verified(metadata[_KEY], tensors)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {error}; save or copy it again") from error
    _check_format(path, manifest)
    return manifest, tensors


def _check_format(path: Path, manifest: dict[str, Any]) -> None:
    found = manifest.get("format_version")
    if found == FORMAT_VERSION:
        return
    writer = (manifest.get("versions") or {}).get("dipedl", "of an unknown version")
    remedy = "upgrade: pip install -U dipedl"
    if isinstance(found, int) and found < FORMAT_VERSION:
        remedy = f"fit the model again and save it, or load the file with dipedl {writer}"
    raise ValueError(
        f"{path} has format version {found}, written by dipedl {writer}; this dipedl "
        f"({__version__}) reads format version {FORMAT_VERSION}; {remedy}"
    )


def _verified(text: str, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
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
