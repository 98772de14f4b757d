"""Parts of a saved model that are not ours, through skops: no pickle, and types are listed."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from ..plugins import optional
from .container import SAVING
from .skops_archive import PLAIN, nodes, unpacked

_EPOCH = (1980, 1, 1, 0, 0, 0)
_OF_TORCH = (
    "it holds a network or tensors of PyTorch; save a network with dipedl.pretrained.DIPModule, or "
    "this whole model with joblib.dump, and load it only from where nobody else can write"
)
_PLAIN_DATA = (
    "use a class or function that can be imported and holds plain data, such as a named function "
    "instead of a lambda, or save this part on its own"
)


def dump_parts(parts: Sequence[Any], paths: Sequence[str]) -> bytes:
    """One skops archive of a list of objects; what several of them share is stored once.

    TypeError with path, cause and remedy if a part does not survive the round trip.
    """
    optional("skops.io", SAVING)
    try:
        return _checked_archive(parts)
    except Exception as error:
        for part, path in zip(parts, paths, strict=True):
            _checked_part(part, path)
        raise TypeError(f"{', '.join(paths)} cannot be saved together: {error}") from error


def untrusted_types(archive: bytes) -> list[str]:
    """Types in the archive other than plain values and arrays; imports and builds nothing.

    What skops trusts by itself is listed too: its types of scikit-learn are rebuilt unchecked.
    """
    schema, _ = unpacked(archive)
    found = {*_named_types(schema), *optional("skops.io", SAVING).get_untrusted_types(data=archive)}
    return sorted(found - PLAIN)


def load_parts(archive: bytes, trusted: Sequence[Any]) -> list[Any]:
    """The objects of an archive; call `untrusted_types` first."""
    return list(optional("skops.io", SAVING).loads(archive, trusted=[*PLAIN, *trusted]))


def _named_types(schema: Any) -> set[str]:
    """The types of a schema, also where skops would not look for them."""
    named = (node for node in nodes(schema) if isinstance(node.get("__class__"), str))
    return {f"{node.get('__module__')}.{node['__class__']}" for node in named}


def _checked_part(part: Any, path: str) -> None:
    try:
        _checked_archive([part])
    except Exception as error:
        cause = _OF_TORCH if _holds_torch(part) else f"{error}; {_PLAIN_DATA}"
        raise TypeError(
            f"{path} ({type(part).__name__}) cannot be saved without pickle: {cause}"
        ) from error


def _holds_torch(part: Any) -> bool:
    try:
        from torch import Tensor
        from torch.nn import Module
    except ImportError:
        return False
    parts = [part, *getattr(part, "__dict__", {}).values()]
    return any(isinstance(value, Module | Tensor) for value in parts)


def _checked_archive(parts: Sequence[Any]) -> bytes:
    """The archive, once loading it was seen to give the same content again."""
    skops = optional("skops.io", SAVING)
    archive = _canonical(skops.dumps(list(parts)))
    everything = skops.get_untrusted_types(data=archive)
    again = skops.dumps(skops.loads(archive, trusted=everything))
    if _fingerprint(archive) != _fingerprint(again):
        raise TypeError("skops would load something else than what was saved")
    return archive


def _normal(name: str, data: bytes) -> bytes:
    """The file, uncompressed, with zeros between the fields of a structured array."""
    if name.endswith(".npz"):
        # A sparse matrix: compressed by scipy.
        with ZipFile(io.BytesIO(data)) as source:
            return _zipped({inner: source.read(inner) for inner in source.namelist()})
    if not name.endswith(".npy"):
        return data
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype.fields is None:
        return data
    clean = np.zeros(array.shape, array.dtype)
    for field in array.dtype.fields:
        clean[field] = array[field]
    return data[: len(data) - array.nbytes] + clean.tobytes()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as target:
        for name, data in files.items():
            target.writestr(ZipInfo(name, _EPOCH), data)
    return buffer.getvalue()


def _canonical(archive: bytes) -> bytes:
    """The same archive without memory addresses and times: equal models give equal bytes."""
    schema, files = unpacked(archive, trusted=True)
    files = {name: _normal(name, data) for name, data in files.items()}
    ids: dict[int, int] = {}
    names: dict[str, str] = {}
    _renumber(schema, ids, names)
    kept = {new: files[old] for old, new in names.items()}
    return _zipped(kept | {"schema.json": json.dumps(schema).encode()})


def _renumber(node: Any, ids: dict[int, int], names: dict[str, str]) -> None:
    """Replace object ids and file names, in place, by their order of appearance."""
    if isinstance(node, dict):
        # A dict that holds a user's key "file" or "__id__" holds a node there, not a plain value.
        if type(node.get("__id__")) is int:
            node["__id__"] = ids.setdefault(node["__id__"], len(ids) + 1)
        if type(node.get("file")) is str:
            name = node["file"]
            node["file"] = names.setdefault(name, f"{len(names)}{PurePath(name).suffix}")
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        _renumber(child, ids, names)


def _fingerprint(archive: bytes) -> Any:
    """Content of an archive, to compare by ``==``."""
    schema, files = unpacked(archive, trusted=True)
    files = {name: _normal(name, data) for name, data in files.items()}
    return _content(schema, {name: sha256(data).hexdigest() for name, data in files.items()})


def _content(node: Any, files: dict[str, str]) -> Any:
    """The schema with hashes for file names, without ids, and sets in a fixed order."""
    if isinstance(node, list):
        return [_content(child, files) for child in node]
    if not isinstance(node, dict):
        return node
    found = {k: _content(v, files) for k, v in node.items() if k != "__id__" or type(v) is not int}
    if type(node.get("file")) is str:
        found["file"] = files[node["file"]]
    if node.get("__loader__") == "SetNode":
        found["content"].sort(key=json.dumps)
    return found
