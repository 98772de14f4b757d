"""What lies in a skops archive, read within its size: no compression, no array beyond its file."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from .container import check_growth

#: An array may be shared by this many objects.
_MOST_SHARED = 4


def unpacked(archive: bytes, *, trusted: bool = False) -> tuple[Any, dict[str, bytes]]:
    """Schema and files of an archive; ValueError if reading it would take more than its size.

    An archive that is `trusted` was just written: its sparse matrices may be compressed.
    """
    files = _stored_files(archive)
    text = files.pop("schema.json")
    check_growth(text, len(archive))
    schema = json.loads(text)
    for name, data in () if trusted else files.items():
        _check_array(name, data)
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
