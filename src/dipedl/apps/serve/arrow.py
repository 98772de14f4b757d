"""Streams of Arrow: rows in, answers out. Nothing in a stream may be larger than it looks."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..table.reading import RejectedRow
from .guard import Problem, check_columns, too_many_rows

STREAM = "application/vnd.apache.arrow.stream"
#: Most columns of a stream, each counted once per batch.
_MOST_PIECES = 100_000
#: The first version of the metadata in which a batch says itself that it is compressed.
_V5 = 4


def read_stream(body: bytes, names: Sequence[str], most: int, most_bytes: int) -> Any:
    """Return the columns of these names in a stream: numbers, booleans, dates, texts.

    Problem if it is damaged, packed or nested, has more than `most` rows, or would have more than
    `most_bytes` cells or bytes once each row is written out.
    """
    try:
        batches: list[Any] = []
        schema = pa.ipc.read_schema(pa.py_buffer(body))
        check_columns(schema.names, names, "the table")
        for field in schema:
            if not _is_plain(field.type):
                reason = f"column {field.name!r} is of type {field.type}"
                send = "send numbers, booleans, dates or texts (utf8)"
                raise Problem(422, field.name, f"{reason}; {send}")
        _check_messages(body, max(1, _MOST_PIECES // len(schema)))
        fields = [schema.get_field_index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        rows = 0
        with pa.ipc.open_stream(pa.py_buffer(body), options=options) as reader:
            for batch in reader:
                rows += batch.num_rows
                if rows > most:
                    raise too_many_rows("body", rows, most)
                batch.validate(full=True)
                batches.append(batch)
        table = pa.Table.from_batches(batches, reader.schema).select(names)
        size = max(rows * len(names), sum(map(_size, table.columns)))
        if size > most_bytes:
            reason = f"the columns must have at most {most_bytes:,} cells and bytes, each row "
            raise Problem(413, "body", f"{reason}written out, got {size:,}; send fewer rows")
        return pa.table([_plain(column) for column in table.columns], names=list(names))
    except (pa.ArrowException, struct.error, OSError, ValueError, IndexError) as error:
        first_line = str(error).partition("\n")[0]
        raise Problem(
            400, "body", f"the body must be a stream of Arrow IPC: {first_line}"
        ) from error


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


def _size(column: Any) -> int:
    """Bytes of a column once each row has its own text: one may stand for all, or for columns."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = (pc.binary_length(one.dictionary).take(one.indices) for one in column.chunks)
    return sum(pc.sum(one).as_py() or 0 for one in lengths)


def _plain(column: Any) -> Any:
    """Return a column without dictionaries, with times in UTC, whatever is known of their zone."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_date(column.type):
        # Beyond what `datetime.date` holds too.
        return column.cast(pa.timestamp("s" if pa.types.is_date32(column.type) else "ms"))
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp(column.type.unit))
    return column


def _check_messages(body: bytes, most: int) -> None:
    """Problem for too many batches, and for those of which some bytes could become gigabytes."""
    count = 0
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type in ("dictionary", "record batch"):
            _check_batch(message.metadata.to_pybytes(), message.type == "dictionary")
        count += 1
        if count > most:
            reason = f"a stream of so many columns must have at most {most:,} batches"
            raise Problem(413, "body", f"{reason}; write larger ones")


def _check_batch(header: bytes, is_dictionary: bool) -> None:
    """Problem by the header of a batch (a table of FlatBuffers, Message.fbs)."""
    table = struct.unpack_from("<I", header)[0]
    version_at, batch = _slot(header, table, 0), _follow(header, _slot(header, table, 2))
    if is_dictionary:
        delta_at = _slot(header, batch, 2)
        if delta_at and header[delta_at]:
            reason = "a dictionary is sent in parts (as deltas); write it whole, or as texts"
            raise Problem(415, "body", reason)
        batch = _follow(header, _slot(header, batch, 1))
    version = struct.unpack_from("<h", header, version_at)[0] if version_at else 0
    # Before V5 the compression stood in the metadata of the message.
    if _slot(header, batch, 3) or (version < _V5 and _slot(header, table, 4)):
        raise Problem(415, "body", "the batches are compressed; write them without compression")


def _slot(message: bytes, table: int, field: int) -> int:
    """Return the place of a field of a table; 0 if the table has none."""
    names = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, names)[0]
    slot = 4 + 2 * field
    offset = struct.unpack_from("<H", message, names + slot)[0] if slot < size else 0
    return table + offset if offset else 0


def _follow(message: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", message, at)[0])


def write_stream(
    columns: dict[str, Any], facts: dict[str, str], rejected: Sequence[RejectedRow]
) -> bytes:
    """Return answers as a stream: facts and rejected rows (as JSON) are metadata of its schema."""
    metadata = facts | {"refused": json.dumps([row._asdict() for row in rejected])}
    table = pa.table(columns).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
