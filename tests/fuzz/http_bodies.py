"""Malformed requests to a service: each is refused with a reason that names a field.

Columns of Arrow and cells of JSON of every type are answered or refused, never a failure; what is
made to take memory or time takes at most ten times the body and 64 MiB, and health goes on.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from dipedl.apps.serve import Models, Settings, create_app
from dipedl.apps.serve.arrow import STREAM
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.table_model import save_model
from passengers import keep_model

JSON = "application/json"
BATCH = 500
#: Tries to one that is heavy.
HEAVY_EVERY = 100
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
NO_NUMBERS = ('"abc"', '"1e999"', '"inf"', '"1,5,5"', '"12 years"', '"0x1F"', '"∞"')
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


#: A row of a model that has a column of each kind.
TYPED = {"comma": "0,5", "when": "05.01.2024", "ok": "yes", "code": "x", "number": 0.3}


@cache
def typed_app():
    """A service of one model with a column of each kind."""
    rng, n = np.random.default_rng(0), 240
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "y": np.where(x + rng.normal(0, 0.5, n) > 0, "a", "b"),
            "comma": [f"{value:.3f}".replace(".", ",") for value in x],
            "when": pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"),
            "ok": rng.choice(["yes", "no"], n),
            "code": rng.choice(["x", "y", "z"], n),
            "number": rng.normal(size=n).round(3),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        table, path = Path(folder) / "typed.csv", Path(folder) / "typed.dipedl"
        frame.to_csv(table, sep=";", index=False)
        save_model(fit_table(open_table(table), FitRequest("y", model="linear")).model, path)
        models = Models({"typed": path})
    return create_app(models, Settings(body_bytes=1 << 20))


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
        "long": pa.array(["x" * 500_000] * length).dictionary_encode(),
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


_WHOLE = (0, 1, -1, 19_000, 2**31 - 1, -(2**31), 2**40, 10**18, 2**63 - 1, -(2**63))
_FLOATS = (0.0, 1.0, 1.5, np.inf, -np.inf, np.nan, 1e300, 2.0**63, -(2.0**63), 2.0**64, 5e-324)
_ZONES = (None, "UTC", "Europe/Berlin", "Nowhere/Town", "+25:00", "+01:00", "", "\u00e9")
_TEXTS = (
    *("", " 1 ", "x", "yes", "1.0", "1e300", "1e999", "inf", "nan", "NaT", "None", "-0", "0x10"),
    *("0,5", "1.234,5", "05.01.2024", "99.99.9999", "2024-01-05T00:00+25:00", "\0", "a\0b"),
    *("\u00e9", "\U0001f600", "9" * 400, "x" * 9_999, "now", "12:00", "9999-12-31"),
)
_CELLS = (None, True, False, *_WHOLE, *(x for x in _FLOATS if np.isfinite(x)), *_TEXTS)


def odd_column(rng):
    """Two entries of any type that a stream may have."""
    kind, pick = rng.integers(7), lambda values: values[rng.integers(len(values))]
    whole = pa.array([pick(_WHOLE), pick((*_WHOLE, None))], pa.int64())
    if kind == 0:
        unit = pick(("s", "ms", "us", "ns"))
        return whole.view(pa.timestamp(unit, pick(_ZONES)))
    if kind == 1:
        days = pa.array(np.array(pick(_WHOLE[:6])).repeat(2), pa.int32())
        return days.view(pa.date32()) if rng.random() < 0.5 else whole.view(pa.date64())
    if kind == 2:
        dtype = pick((np.float16, np.float32, np.float64))
        with np.errstate(over="ignore"):
            return pa.array(np.array([pick(_FLOATS), pick(_FLOATS)]).astype(dtype))
    if kind == 3:
        dtype = pick((pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.uint64(), pa.bool_()))
        return whole.cast(dtype, safe=False)
    if kind == 4:
        return pick((whole, pa.nulls(2), pa.array([None, None], pa.string())))
    texts = pa.array([pick(_TEXTS), pick((*_TEXTS, None))], pick((pa.string(), pa.large_string())))
    return texts.dictionary_encode() if kind == 5 else texts


def odd_arrow(rng):
    odd = str(rng.choice(list(TYPED)))
    columns = {name: pa.array([value] * 2) for name, value in TYPED.items()}
    return arrow(pa.table(columns | {odd: odd_column(rng)})), STREAM, ""


def odd_json(rng):
    odd = str(rng.choice(list(TYPED)))
    cells = [_CELLS[i] for i in rng.integers(len(_CELLS), size=2)]
    rows = [TYPED | {odd: cell} for cell in cells] + [TYPED] * int(rng.integers(2))
    return json.dumps({"rows": rows}).encode(), JSON, ""


MALFORMED = (
    *(bad_cell, bad_number, wrong_columns, wrong_width, wrong_field, no_body, cut_json, bad_text),
    *(packed, wrong_kind, too_large, bad_arrow, cut_arrow, flipped, odd_arrow, odd_json),
)


def filled(head, piece, tail):
    """A body of JSON of 1 MiB, most of it the same piece."""
    return head + piece * (((1 << 20) - len(head) - len(tail)) // len(piece)) + tail


def numbered(head, piece, tail):
    """A body of JSON of up to 1 MiB, most of it pieces with numbers in them."""
    return head + b",".join(piece % i for i in range((1 << 20) // (len(piece) + 7))) + tail


def stream(columns, batches=1):
    table = pa.table(columns)
    batch = pa.RecordBatch.from_arrays(
        [c.combine_chunks() for c in table.columns], table.schema.names
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def typed_columns(n, **others):
    return {name: pa.array([value] * n) for name, value in TYPED.items()} | others


def packed_as_before_v5(text=b"x" * 10**8):
    """Batches whose compression stands in the metadata of the message alone."""
    table = pa.table(typed_columns(1, code=pa.array([text.decode()])))
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4, compression="zstd")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        named = {"ARROW:experimental_compression": "zstd"}
        writer.write_batch(table.to_batches()[0], custom_metadata=named)
    body = bytearray(sink.getvalue().to_pybytes())

    def followed(at):
        return at + struct.unpack_from("<I", body, at)[0]

    def slot(table, field):
        return table - struct.unpack_from("<i", body, table)[0] + 4 + 2 * field

    # Behind the message of the schema, which has no body, stands that of the batch.
    message = followed(8 + struct.unpack_from("<i", body, 4)[0] + 8)
    batch = followed(message + struct.unpack_from("<H", body, slot(message, 2))[0])
    struct.pack_into("<H", body, slot(batch, 3), 0)
    return bytes(body)


def one_long_text(n=10_000, length=9_999):
    codes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), pa.array(["x" * length]))
    return stream(typed_columns(n, code=codes, ok=codes))


#: Bodies that are small for what they could make of the service, by name.
HEAVY = {
    "lists": lambda: (filled(b'{"matrix": [[', b"[],", b"[]]]}"), JSON, ""),
    "empty rows": lambda: (filled(b'{"matrix": [', b"[],", b"[]]}"), JSON, ""),
    "objects": lambda: (filled(b'{"rows": [{"a": [', b"{},", b"{}]}]}"), JSON, ""),
    "columns": lambda: (filled(b'{"matrix": [], "columns": [', b"1,", b"1]}"), JSON, ""),
    "fields": lambda: (filled(b'{"rows": [], "fields": [', b"1,", b"1]}"), JSON, ""),
    "no fields": lambda: (numbered(b"{", b'"a%d": 1', b"}"), JSON, ""),
    "names": lambda: (numbered(b'{"rows": [{', b'"a%d": 1', b"}]}"), JSON, ""),
    "no numbers": lambda: (numbered(b'{"rows": [{', b'"a%d": 1e400', b"}]}"), JSON, ""),
    "numbers": lambda: (filled(b'{"matrix": [[', b"1e1,", b"1]]}"), JSON, ""),
    "brackets in a text": lambda: (filled(b'{"rows": [{"code": "', b"[", b'"}]}'), JSON, ""),
    "brackets in texts": lambda: (filled(b'{"matrix": [[', b'"[",', b"1]]}"), JSON, ""),
    "a text that does not close": lambda: (filled(b'{"a": "', b'[\\"', b""), JSON, ""),
    "quotes that do not close": lambda: (
        filled(b'{"a": "' + b"[" * 12_000 + b'","', b'\\"', b""),
        JSON,
        "",
    ),
    "a long text": lambda: (
        json.dumps({"rows": [TYPED | {"code": "x" * 10**6}]}).encode(),
        JSON,
        "",
    ),
    "packed": lambda: (packed_as_before_v5(), STREAM, ""),
    "a text for all": lambda: (one_long_text(), STREAM, ""),
    "empty batches": lambda: (stream(typed_columns(0), 2_500), STREAM, ""),
    "batches of a row": lambda: (stream(typed_columns(1), 1_500), STREAM, ""),
    "many columns": lambda: (
        stream(typed_columns(1) | {f"x{i}": pa.nulls(1) for i in range(6_000)}),
        STREAM,
        "",
    ),
    "gaps": lambda: (stream({name: pa.nulls(10_000) for name in TYPED}), STREAM, ""),
}


def memory(name):
    """A value of this process in bytes, by its name in /proc."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


async def weighed(service, body, kind, query):
    """Status of an answer, bytes that the process grew by at most, longest wait of health."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, waits = memory("VmRSS"), [0.0]

    async def ask_health():
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0)
            status, _ = await asked(service, b"", JSON, "", path="/health/live", method="GET")
            waits.append(time.perf_counter() - start if status == 200 else np.inf)
            await asyncio.sleep(0.005)

    health = asyncio.create_task(ask_health())
    await asyncio.sleep(0)
    status, _ = await asked(service, body, kind, query)
    await asyncio.sleep(0.01)
    health.cancel()
    return status, memory("VmHWM") - before, max(waits)


async def judged_heavy(name):
    body, kind, query = HEAVY[name]()
    status, grown, wait = await weighed(typed_app(), body, kind, query)
    if status >= 500:
        return f"fault: {name} gave {status}"
    if grown > 10 * len(body) + (64 << 20):
        return f"memory: {name} took {grown >> 20} MiB"
    if wait > 1:
        return f"slow: health waited {wait:.1f} s for {name}"
    return "heavy and answered" if status == 200 else f"heavy and refused with {status}"


async def asked(service, body, kind, query, headers=None, path="/v1/predict", method="POST"):
    """Status and content of an answer, without a network."""
    given = {"host": "localhost", "content-type": kind, "accept": JSON, **(headers or {})}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
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
    """Return the outcome of a try."""
    if status == 200 and make in (flipped, odd_arrow, odd_json):
        return "answered"
    if status == 200 and make is wrong_width:
        content = json.loads(text)
        alone = [[r["row"] for r in content[name]] for name in ("answers", "refused")] == [[1], [2]]
        return "row refused alone" if alone else f"fault: {content}"
    if not 400 <= status < 500:
        return f"fault: {make.__name__} gave {status}: {text[:200]!r}"
    content = json.loads(text)
    named = all(isinstance(content[name], str) and content[name] for name in ("field", "reason"))
    if not named or "Traceback" in content["reason"] or len(content["reason"]) > 2_000:
        return f"fault: {make.__name__} gave the reason {content}"
    return f"refused with {status}"


async def _run(seed, tries):
    rng, counts = np.random.default_rng(seed), Counter()
    async with app().state.service.running(), typed_app().state.service.running():
        for i in range(tries):
            make = MALFORMED[i % len(MALFORMED)]
            service = typed_app() if make in (odd_arrow, odd_json) else app()
            status, text = await asked(service, *make(rng))
            counts[judged(make, status, text)] += 1
            if i % HEAVY_EVERY == 0:
                name = list(HEAVY)[(seed + i // HEAVY_EVERY) % len(HEAVY)]
                counts[await judged_heavy(name)] += 1
    return counts


def run(seed, tries):
    """Counts of what came of so many malformed requests, and that an honest one is answered."""
    app.cache_clear()
    typed_app.cache_clear()
    counts = asyncio.run(_run(seed, tries))
    return counts
