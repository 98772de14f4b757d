"""Malformed requests to a service: each is refused with a reason that names a field."""

from __future__ import annotations

import asyncio
import gzip
import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from dipedl.serve import Models, Settings, create_app
from dipedl.serve.arrow import STREAM
from passengers import keep_model

JSON = "application/json"
BATCH = 500
ROW = {"deck": 1, "sex": "female", "age": 31.5, "fare": 47.1, "port": "S"}
#: No cell of any column, as JSON text.
NO_CELLS = (
    *(
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "9" * 5000,
        "[1]",
        "{}",
        "[[]]",
        '{"a": 1}',
    ),
    *("01", "0x10", "1_000", "tru", "None", "'x'", '"\\ud800"', '"\\x"', "1..2", "--1", "+1", ""),
)
#: Cells that a column of numbers refuses.
NO_NUMBERS = ('"abc"', '"1e999"', '"inf"', '"1,5,5"', '"12 years"', '""', '" "', '"0x1F"', '"∞"')
#: No values of any field of a request.
NO_FIELDS = (
    "5",
    '"x"',
    "{}",
    "[5]",
    "[null]",
    '[["a"]]',
    "true",
    '{"a": []}',
    "[]",
    '[{"a": 1}, 5]',
)
#: No requests at all.
NO_BODIES = (
    *(
        b"",
        b" ",
        b"null",
        b"5",
        b'"rows"',
        b"[]",
        b"[{}]",
        b"{}",
        b"rows=1",
        b"\x00",
        b"\xff\xfe{}",
    ),
    *(b'{"rows": [}', b'{"rows": []}{', b'{"a"}', b"<rows/>", b'{"rows":', b"[" * 100_000),
    *(b'{"rows": ' + b"[" * 50_000, b'{"rows": [' + b'{"a":' * 50_000, b"{" * 100_000),
    *(b'{"rows": []}', b'{"rows": [{}]}', b'{"matrix": []}', b'{"matrix": [[]]}'),
    *(b'{"rows": [], "matrix": []}', b'{"rows": null}', b'{"ROWS": [{}]}'),
    b'{"rows": [' + b",".join([b"{}"] * 300) + b"]}",
    b'{"matrix": [' + b",".join([b"[]"] * 300) + b"]}",
)


@cache
def app():
    """A service of one model of a table, with small limits."""
    with tempfile.TemporaryDirectory() as folder:
        kept = keep_model(Path(folder))
        models = Models({"people": kept / "model.dipedl"})
    return create_app(models, Settings(rows=200, body_bytes=1 << 20))


def object_text(cells):
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in cells.items()) + "}"


def honest():
    return {name: json.dumps(value) for name, value in ROW.items()}


def bad_cell(rng):
    cells = honest()
    cells[str(rng.choice(list(cells)))] = str(rng.choice(NO_CELLS))
    return as_body(rng, cells)


def bad_number(rng):
    cells = honest()
    cells[str(rng.choice(["deck", "age", "fare"]))] = str(rng.choice(NO_NUMBERS))
    return as_body(rng, cells)


def as_body(rng, cells):
    """The row by names or as a matrix."""
    if rng.random() < 0.5:
        return f'{{"rows": [{object_text(cells)}]}}'.encode(), JSON, ""
    return f'{{"matrix": [[{", ".join(cells.values())}]]}}'.encode(), JSON, ""


def wrong_columns(rng):
    cells = honest()
    name = str(rng.choice(list(cells)))
    value = cells.pop(name)
    if rng.random() < 0.5:
        cells[str(rng.choice([name.upper(), name + " ", "\u0430ge", "x" * 5000, ""]))] = value
    if rng.random() < 0.5:
        return f'{{"rows": [{object_text(cells)}]}}'.encode(), JSON, ""
    columns = json.dumps(list(cells) + ["more"] * int(rng.integers(0, 3)))
    text = f'{{"columns": {columns}, "matrix": [[{", ".join(cells.values())}]]}}'
    return text.encode(), JSON, ""


def wrong_width(rng):
    cells = list(honest().values())
    n = int(rng.choice([0, 1, 4, 6, 7, 5000]))
    row = ", ".join((cells * 1001)[:n])
    whole = ", ".join(cells)
    return f'{{"matrix": [[{whole}], [{row}]]}}'.encode(), JSON, ""


def wrong_field(rng):
    name = str(rng.choice(["rows", "matrix", "columns", "fields", "coverage", "model", "top", "x"]))
    value = str(rng.choice(NO_FIELDS))
    if name in ("rows", "matrix"):
        return f'{{"{name}": {value}}}'.encode(), JSON, ""
    if name == "model" and value == '"x"':
        value = '"\\u0000people"'
    return f'{{"rows": [{object_text(honest())}], "{name}": {value}}}'.encode(), JSON, ""


def no_body(rng):
    return NO_BODIES[rng.integers(len(NO_BODIES))], JSON, ""


def cut_json(rng):
    body = f'{{"rows": [{object_text(honest())}]}}'.encode()
    return body[: rng.integers(len(body))], JSON, ""


def bad_text(rng):
    body = bytearray(f'{{"rows": [{object_text(honest())}]}}'.encode())
    at = body.index(b"female") + rng.integers(6)
    body[at] = rng.choice([0x80, 0xFF, 0xC0, 0x00, 0x0A, 0x1F])
    return bytes(body), JSON, ""


def packed(rng):
    body = gzip.compress(b'{"rows": [' + b" " * int(rng.integers(1, 10**6)))
    return body, JSON, "", {"content-encoding": str(rng.choice(["gzip", "br", "deflate", "x"]))}


def wrong_kind(rng):
    kind = str(rng.choice(["text/plain", "", "application/xml", "multipart/form-data", "*/*"]))
    return f'{{"rows": [{object_text(honest())}]}}'.encode(), kind, ""


def too_large(rng):
    return b" " * ((1 << 20) + int(rng.integers(1, 100))), JSON, ""


def arrow(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def arrow_table(n=3):
    return pa.table({name: [value] * n for name, value in ROW.items()})


def bad_arrow(rng):
    table = arrow_table()
    j = int(rng.integers(5))
    name, length = table.column_names[j], len(table)
    odd = {
        "nested": pa.array([[1]] * length),
        "struct": pa.array([{"a": 1}] * length),
        "bytes": pa.array([b"x"] * length),
        "view": pa.array(["x"] * length, pa.string_view()),
        "ends": pa.RunEndEncodedArray.from_arrays(pa.array([length], pa.int32()), pa.array(["x"])),
        "long": pa.array(["x" * 20_000] * length).dictionary_encode(),
    }
    kind = str(rng.choice([*odd, "twice", "gone", "packed", "rows", "none", "nulls", "query"]))
    query = ""
    options = {}
    if kind in odd:
        table = table.set_column(j, name, odd[kind])
    elif kind == "twice":
        table = table.append_column(name, table.column(j))
    elif kind == "gone":
        table = table.remove_column(j)
    elif kind == "packed":
        options, table = {"compression": str(rng.choice(["zstd", "lz4"]))}, arrow_table(150)
    elif kind == "rows":
        table = arrow_table(201)
    elif kind == "none":
        table = table[:0]
    elif kind == "nulls":
        table = pa.table({each: pa.nulls(10**9) for each in ROW})
    else:
        query = str(rng.choice(["fields=x", "coverage=2", "coverage=nan", "coverage=x", "model=x"]))
    return arrow(table, **options), STREAM, query


def cut_arrow(rng):
    body = arrow(arrow_table())
    # What stands for the end of a stream may be left out.
    return body[: rng.integers(len(body) - 100)], STREAM, ""


def flipped(rng):
    """Bytes changed anywhere: still a request, perhaps."""
    sent = STREAM if rng.random() < 0.7 else JSON
    honest_body = arrow(arrow_table()) if sent == STREAM else as_body(rng, honest())[0]
    body = bytearray(honest_body)
    for _ in range(rng.integers(1, 6)):
        body[rng.integers(len(body))] = rng.integers(256)
    return bytes(body), sent, ""


MALFORMED = (
    *(bad_cell, bad_number, wrong_columns, wrong_width, wrong_field, no_body, cut_json, bad_text),
    *(packed, wrong_kind, too_large, bad_arrow, cut_arrow, flipped),
)


async def asked(service, body, kind, query, headers=None, path="/v1/predict"):
    """Status and content of an answer, without a network."""
    given = {"host": "localhost", "content-type": kind, "accept": JSON, **(headers or {})}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
    }
    scope |= {"raw_path": path.encode(), "query_string": query.encode(), "root_path": ""}
    scope |= {"headers": [(n.encode(), v.encode()) for n, v in given.items()]}
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await service(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


def judged(make, status, text):
    """What came of a try."""
    if status == 200 and make is flipped:
        return "answered"
    if not 400 <= status < 500:
        return f"fault: {make.__name__} gave {status}: {text[:200]!r}"
    content = json.loads(text)
    named = all(isinstance(content[name], str) and content[name] for name in ("field", "reason"))
    if not named or "Traceback" in content["reason"] or len(content["reason"]) > 2_000:
        return f"fault: {make.__name__} gave the reason {content}"
    return f"refused with {status}"


async def _run(seed, tries):
    rng, counts = np.random.default_rng(seed), Counter()
    async with app().state.service.running():
        for i in range(tries):
            make = MALFORMED[i % len(MALFORMED)]
            status, text = await asked(app(), *make(rng))
            counts[judged(make, status, text)] += 1
    return counts


def run(seed, tries):
    """Counts of what came of so many malformed requests, and that an honest one is answered."""
    app.cache_clear()
    counts = asyncio.run(_run(seed, tries))
    return counts
