"""Streams of Arrow: rows in, answers out. Nothing in a stream may be larger than it looks."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..own_data.tables.reading import Refused
from .problems import Problem, too_many_rows

STREAM = "application/vnd.apache.arrow.stream"
_MOST_TEXT = 10_000
_DICTIONARY, _BATCH = 2, 3


def arrow_table(body: bytes, most: int) -> Any:
    """The table in a stream; Problem if it is damaged, packed, nested or has too many rows."""
    try:
        _check_plain(body)
        batches: list[Any] = []
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            schema = reader.schema
            _check_schema(schema)
            for batch in reader:
                batch.validate(full=True)
                batches.append(batch)
                rows = sum(one.num_rows for one in batches)
                if rows > most:
                    raise too_many_rows("body", rows, most)
        table = pa.Table.from_batches(batches, schema)
        return _without_dictionaries(table)
    except (pa.ArrowException, struct.error, OSError, ValueError, IndexError) as error:
        said = str(error).partition("\n")[0]
        raise Problem(400, "body", f"the body must be a stream of Arrow IPC: {said}") from error


def _check_schema(schema: Any) -> None:
    names = schema.names
    twice = sorted(name for name, n in Counter(names).items() if n > 1)
    if twice:
        raise Problem(422, twice[0], f"two columns are named {twice[0]!r}")
    for field in schema:
        if not _is_plain(field.type):
            told = f"column {field.name!r} is of type {field.type}"
            reason = f"{told}; send numbers, booleans, dates or texts (utf8)"
            raise Problem(422, field.name, reason)


def _is_plain(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return bool(
            pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
        )
    tests = (
        *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp),
    )
    return any(test(kind) for test in tests)


def _without_dictionaries(table: Any) -> Any:
    """Texts in place of dictionaries: one long text could stand for every row."""
    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            for chunk in table.column(j).chunks:
                longest = pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0
                if longest > _MOST_TEXT:
                    reason = f"a text of a dictionary has at most {_MOST_TEXT:,} bytes"
                    raise Problem(422, field.name, f"{reason}, got {longest:,}")
            texts = table.column(j).cast(field.type.value_type)
            table = table.set_column(j, field.name, texts)
    return table


def _check_plain(body: bytes) -> None:
    """Problem for packed batches: some bytes could become gigabytes."""
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if _is_packed(message.metadata.to_pybytes()):
            raise Problem(415, "body", "the batches are compressed; write them without compression")


def _is_packed(message: bytes) -> bool:
    """Whether the header of a message (a table of FlatBuffers, Message.fbs) names a compression."""
    table = struct.unpack_from("<I", message)[0]
    kind_at, header_at = _slot(message, table, 1), _slot(message, table, 2)
    kind = message[kind_at] if kind_at else 0
    if kind not in (_DICTIONARY, _BATCH):
        return False
    batch = _followed(message, header_at)
    if kind == _DICTIONARY:
        batch = _followed(message, _slot(message, batch, 1))
    return bool(_slot(message, batch, 3))


def _slot(message: bytes, table: int, field: int) -> int:
    """Where a field of a table lies; 0 if the table has none."""
    names = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, names)[0]
    slot = 4 + 2 * field
    offset = struct.unpack_from("<H", message, names + slot)[0] if slot < size else 0
    return table + offset if offset else 0


def _followed(message: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", message, at)[0])


def arrow_bytes(
    columns: dict[str, Any], facts: dict[str, str], refused: Sequence[Refused]
) -> bytes:
    """Answers as a stream: facts and refused rows (as JSON) are metadata of its schema."""
    told = facts | {"refused": json.dumps([one._asdict() for one in refused])}
    table = pa.table(columns).replace_schema_metadata(told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
