"""Content of a skops archive, read within its size: no compression, no array beyond its file."""

from __future__ import annotations

import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from .checks import check_hashes
from .container import check_growth

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
_WHOLE = re.compile(r"-?\d{1,4000}")
_SEQUENCES = ("ListNode", "TupleNode")


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
