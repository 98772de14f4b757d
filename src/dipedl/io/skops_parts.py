"""Parts of a saved model that are not ours, through skops: no pickle, and types are listed.

An archive is read within its size: no compression, no array beyond its file.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from ..plugins import optional
from .checks import check_hashes
from .container import SAVING, check_growth

#: An array may be shared by this many objects.
_MOST_SHARED = 4
#: Types whose values cannot hurt, by the loaders of skops that build them from JSON and from arrays
#: of checked size. `numpy.void` is missing: of a number it makes as many bytes.
_PLAIN_LOADERS = {
    "BytearrayNode": {"builtins.bytearray"},
    "BytesNode": {"builtins.bytes"},
    "DTypeNode": {"numpy.dtype"},
    "DictNode": {"builtins.dict", "collections.OrderedDict"},
    "JsonNode": {f"builtins.{name}" for name in ("NoneType", "bool", "float", "int", "str")},
    "ListNode": {"builtins.list"},
    "NdArrayNode": {
        "numpy.ndarray",
        *(
            f"numpy.{kind.__name__}"
            for kind in np.sctypeDict.values()
            if kind not in (np.object_, np.void)
        ),
    },
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "TupleNode": {"builtins.tuple"},
}
PLAIN = frozenset().union(*_PLAIN_LOADERS.values(), {"builtins.complex"})
_ID = re.compile(r'"__id__": \d+')
_WHOLE = re.compile(r"-?\d{1,4000}")
_SEQUENCES = ("ListNode", "TupleNode")
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
    again = _canonical(skops.dumps(skops.loads(archive, trusted=everything)))
    if _without_ids(archive) != _without_ids(again):
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
    """Return the archive without memory addresses and times: equal models give equal bytes."""
    schema, files = unpacked(archive, trusted=True)
    files = {name: _normal(name, data) for name, data in files.items()}
    ids: dict[int, int] = {}
    names: dict[str, str] = {}
    _renumber(schema, ids, names)
    kept = {new: files[old] for old, new in names.items()}
    return _zipped(kept | {"schema.json": json.dumps(schema).encode()})


def _renumber(node: Any, ids: dict[int, int], names: dict[str, str]) -> None:
    """Replace object ids and file names, in place, by their order of appearance; sort sets."""
    if isinstance(node, dict):
        # A dict that holds a user's key "file" or "__id__" holds a node there, not a plain value.
        if type(node.get("__id__")) is int:
            node["__id__"] = ids.setdefault(node["__id__"], len(ids) + 1)
        if type(node.get("file")) is str:
            name = node["file"]
            node["file"] = names.setdefault(name, f"{len(names)}{PurePath(name).suffix}")
        if node.get("__loader__") == "SetNode":
            node["content"].sort(key=lambda entry: _ID.sub("", json.dumps(entry)))
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        _renumber(child, ids, names)


def _without_ids(archive: bytes) -> tuple[str, dict[str, bytes]]:
    """Content of a canonical archive, to compare by ``==``."""
    schema, files = unpacked(archive, trusted=True)
    return _ID.sub("", json.dumps(schema)), files


def unpacked(archive: bytes, *, trusted: bool = False) -> tuple[Any, dict[str, bytes]]:
    """Schema and files of an archive; ValueError if reading it would take more than its size.

    An archive that is `trusted` was just written: its sparse matrices may be compressed.
    """
    files = _stored_files(archive)
    text = files.pop("schema.json")
    check_growth(text, len(archive))
    schema = json.loads(text)
    if not trusted:
        for name, data in files.items():
            _check_array(name, data)
        _check_nodes(schema)
    uses = {(str(node.get("__id__")), str(node.get("file"))) for node in nodes(schema)}
    if sum(len(files.get(name, b"")) for _, name in uses) > _MOST_SHARED * len(archive):
        raise ValueError("it names its arrays more often than it holds them")
    return schema, files


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node of a schema, the outer before the inner."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    for child in schema if isinstance(schema, list) else ():
        yield from nodes(child)


def _check_nodes(schema: Any) -> None:
    """Raise ValueError if a plain value would take more memory or time than its text."""
    ids: dict[Any, tuple[str, str]] = {}
    lists: Counter[Any] = Counter()
    for node in nodes(schema):
        loader = node.get("__loader__")
        if not isinstance(loader, str):
            continue
        name = f"{node.get('__module__')}.{node.get('__class__')}"
        if name in PLAIN and loader != "TypeNode" and name not in _PLAIN_LOADERS.get(loader, ()):
            raise ValueError(f"it makes a {name} by {loader}")
        if number := node.get("__id__"):
            # skops takes two nodes of one id for one object, whatever the second says.
            if ids.setdefault(number, (loader, name)) != (loader, name):
                raise ValueError("one of its ids is that of two objects")
            lists[number] += loader == "ListNode"
        if loader == "SetNode":
            check_hashes(map(_key, node["content"]))
        elif loader == "DictNode":
            check_hashes(int(key) for key in node["content"] if _WHOLE.fullmatch(key))
    for node in nodes(schema):
        if node.get("__loader__") == "NdArrayNode" and node.get("type") == "json":
            _check_object_array(node, lists)


def _key(node: Any) -> Any:
    """The entry of a set, if it is a plain value."""
    if node["__loader__"] == "TupleNode":
        return tuple(map(_key, node["content"]))
    return json.loads(node["content"]) if node["__loader__"] == "JsonNode" else None


def _check_object_array(node: dict[str, Any], lists: Mapping[Any, int]) -> None:
    """Raise ValueError if an array of several axes repeats lists: NumPy would write each out."""
    inner = node["content"]
    for _ in node["shape"]["content"][1:]:
        if any(part["__loader__"] != "ListNode" or lists[part.get("__id__")] > 1 for part in inner):
            raise ValueError("an array of objects repeats its rows")
        inner = [entry for part in inner for entry in part["content"]]
    if len(node["shape"]["content"]) != 1 and any(_is_sequence(entry) for entry in inner):
        raise ValueError("an array of objects has more axes than its shape")


def _is_sequence(node: dict[str, Any]) -> bool:
    return node["__loader__"] in _SEQUENCES or node["__class__"] == "ndarray"


def _stored_files(archive: bytes) -> dict[str, bytes]:
    """The files of a ZIP, none of them compressed: a megabyte could become gigabytes."""
    with ZipFile(io.BytesIO(archive)) as source:
        entries = source.infolist()
        if any(e.compress_type != ZIP_STORED or e.file_size != e.compress_size for e in entries):
            raise ValueError("it is compressed")
        if len({e.filename for e in entries}) < len(entries):
            raise ValueError("it holds two files of one name")
        # Entries may lie on top of each other.
        if sum(e.file_size for e in entries) > len(archive):
            raise ValueError("it holds more than its size")
        return {e.filename: source.read(e) for e in entries}


def _check_array(name: str, data: bytes) -> None:
    """Raise ValueError if an array is not as long as its header says."""
    if name.endswith(".npz"):
        for inner, content in _stored_files(data).items():
            _check_array(inner, content)
    elif name.endswith(".npy"):
        file = io.BytesIO(data)
        version = np.lib.format.read_magic(file)
        first = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if math.prod(shape) * max(dtype.itemsize, 1) != len(data) - file.tell() or dtype.hasobject:
            raise ValueError(f"its array {name} has another size than its shape")
