"""One table cut at random into pieces, files, parts and requests: the answers of the whole."""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from fastapi.testclient import TestClient

from dipedl.apps.large import LocalEngine, score
from dipedl.apps.serve import Models, create_app
from dipedl.apps.serve.arrow import STREAM
from dipedl.apps.table import reading
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import FIELDS, ScoreRequest, score_table
from dipedl.apps.table.table_model import save_model

BATCH = 10
#: Rows that are answered, and the smallest block of a CSV file that holds one.
ROWS, BLOCK = 60, 400
WANTED = ScoreRequest(columns=["id"], reasons="all", fields=FIELDS)
#: Numbers that two sums of the same terms in another order give.
CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def table(n, seed):
    """Levels and classes that are numbers, truths, codes, numbers with gaps, ids beyond 2**53."""
    rng = np.random.default_rng(seed)
    zone, on = rng.choice([1.0, 2.0, 10.0, 20.5], n, p=[0.4, 0.3, 0.2, 0.1]), rng.random(n) < 0.5
    x, k = rng.normal(size=n).round(3), rng.integers(0, 5, n)
    y = np.where(x + on + zone / 10 > 1, 1.0, np.where(k > 2, 2.0, 2.5))
    code = rng.choice(["007", "1.10", "1.1", "a"], n)
    made = pd.DataFrame({"zone": zone, "on": on, "x": x, "k": k, "code": code, "y": y})
    made = made.astype({"k": "Int64", "on": "boolean"})
    for name in ("zone", "on", "x", "k"):
        made.loc[rng.random(n) < 0.1, name] = None
    ids = pd.Series(2**53 + 1 + 2 * np.arange(n), dtype="Int64").mask(rng.random(n) < 0.1)
    return made.assign(id=ids)


@cache
def known():
    """A folder, the model of a file of CSV in it, a service, and the answers to all rows."""
    kept = tempfile.TemporaryDirectory()
    folder = Path(kept.name)
    table(500, 0).to_csv(folder / "fit.csv", index=False)
    order = FitRequest("y", "linear", drop=["id"], types={"zone": "category", "code": "category"})
    model = fit_table(open_table(folder / "fit.csv"), order).model
    save_model(model, folder / "model.dipedl")
    new = table(ROWS, 1)
    new.loc[7, "zone"] = 1.5
    new.to_parquet(folder / "new.parquet")
    score_table(model, open_table(folder / "new.parquet"), folder / "whole.parquet", WANTED)
    models = Models({"model": folder / "model.dipedl"})
    whole = read([folder / "whole.parquet"]).drop(columns="row")
    return SimpleNamespace(kept=kept, model=model, new=new, whole=whole, models=models)


def read(files):
    """Answers, with the types that the files have."""
    whole = pa.concat_tables([pa.parquet.read_table(file) for file in files])
    return whole.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def cuts(rng):
    """Cuts of the rows, as pairs of the first row and the end."""
    inner = np.unique(rng.integers(1, ROWS, rng.integers(1, 12))).tolist()
    return list(zip([0, *inner], [*inner, ROWS], strict=True))


def retyped(rng, frame):
    """Return the values in the types that another program would guess of these rows."""
    kinds = [
        lambda f: f,
        lambda f: f.convert_dtypes(),
        lambda f: f.astype({"zone": object}),
        lambda f: f.assign(zone=f["zone"].map(str).where(f["zone"].notna(), None)),
        lambda f: f.astype({"zone": "category", "code": "category"}),
        lambda f: f.astype({"k": "Float64"}),
    ]
    return kinds[rng.integers(len(kinds))](frame)


def cell(rng, value):
    """A value as one of the ways in which JSON writes it."""
    if value is None or value is pd.NA or value != value:
        return None
    if isinstance(value, str | bool | np.bool_):
        return value if isinstance(value, str) else bool(value)
    ways = [float(value), str(float(value)), int(value) if value == int(value) else float(value)]
    return ways[rng.integers(len(ways))]


def lines(rng, frame):
    """Rows as JSON has them."""
    names = [name for name in frame if name != "id"]
    records = zip(*(frame[name].tolist() for name in names), strict=True)
    made = [{n: cell(rng, v) for n, v in zip(names, r, strict=True)} for r in records]
    ids = frame["id"].tolist()
    return [{**one, "id": None if i is pd.NA else int(i)} for one, i in zip(made, ids, strict=True)]


def stream(frame):
    sink, made = pa.BufferOutputStream(), pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=11)
    return sink.getvalue().to_pybytes()


def in_pieces(rng, folder):
    """One file of any format, read in pieces."""
    new, path = retyped(rng, known().new), folder / "new"
    writers = [
        lambda: path.write_text(new.to_csv(index=False)),
        lambda: new.to_parquet(path, row_group_size=int(rng.integers(1, ROWS))),
        lambda: new.to_feather(path),
        lambda: path.write_bytes(stream(new)),
        lambda: path.write_text("\n".join(map(json.dumps, lines(rng, new)))),
    ]
    writers[rng.integers(len(writers))]()
    size = int(rng.integers(1, ROWS))
    with (
        patch.object(reading, "_ROWS", size),
        patch.object(reading, "_BLOCK", BLOCK + 9 * size),
    ):
        out = folder / "answers.parquet"
        score_table(known().model, open_table(path), out, WANTED)
    found = read([out])
    return found.astype({"id": "Int64"}) if found["id"].dtype == "str" else found  # of CSV


def in_files(rng, folder):
    """Files of a folder, each with types of its own, read in parts."""
    (folder / "new").mkdir()
    for i, (first, end) in enumerate(cuts(rng)):
        some = retyped(rng, known().new.iloc[first:end].reset_index(drop=True))
        write = some.to_parquet if rng.random() < 0.5 else some.to_feather
        write(folder / "new" / f"{i:03d}.{write.__name__[3:]}")
    data, out = str(folder / "new"), folder / "out"
    score(known().model, data, out, engine=LocalEngine(), partitions=int(rng.integers(1, ROWS)),
          wanted=WANTED)  # fmt: skip
    return read(sorted(out.glob("[0-9]*.parquet")))


def asked(rng, client, some):
    """Answers of a service to some rows: as rows or a matrix of JSON, or as a stream of Arrow."""
    names, kind = [name for name in some if name not in ("id", "y")], rng.integers(3)
    if kind == 0:
        typed = retyped(rng, some)
        if typed["zone"].dtype == "category":  # a stream has dictionaries of texts alone
            typed = typed.astype({"zone": object})
        options = {"params": {"fields": ",".join(FIELDS)}, "headers": {"content-type": STREAM}}
        reply = client.post("/v1/predict", content=stream(typed[names]), **options)
        content = io.BytesIO(reply.raise_for_status().content)
        return pa.ipc.open_stream(content).read_all().to_pandas()
    rows = [{name: row[name] for name in names} for row in lines(rng, some)]
    matrix = {"columns": names, "matrix": [list(row.values()) for row in rows]}
    content = {"rows": rows} if kind == 1 else matrix
    reply = client.post("/v1/predict", json={**content, "fields": FIELDS}).raise_for_status()
    made = pd.DataFrame(reply.json()["answers"])
    P = pd.DataFrame(made.pop("probabilities").tolist()).add_prefix("p_")
    return pd.concat([made, P], axis=1).assign(set=made["set"].map("|".join))


def in_requests(rng, folder):
    """Requests to the service."""
    new, whole = known().new, known().whole
    with TestClient(create_app(known().models)) as client:
        parts = [
            asked(rng, client, new[first:end].reset_index(drop=True)) for first, end in cuts(rng)
        ]
    # A service gives reasons of flagged rows alone, and no columns of the input.
    return pd.concat(parts, ignore_index=True).assign(id=whole["id"], reason=whole["reason"])


def run(seed, tries):
    """Cut so often; answers that differ from those of the whole are wrong."""
    rng, counts = np.random.default_rng(seed), Counter()
    ways = (in_pieces, in_files, in_requests)
    for _ in range(tries):
        way = ways[rng.integers(len(ways))]
        try:
            with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = way(rng, Path(folder))[known().whole.columns]
            pd.testing.assert_frame_equal(found, known().whole, **CLOSE)
            assert found["p_value"].equals(known().whole["p_value"]), "p-values in the last digits"
            counts[f"equal {way.__name__}"] += 1
        except (AssertionError, pa.ArrowInvalid, KeyError) as error:
            counts[f"wrong {way.__name__}: {str(error)[:300]}"] += 1
    return counts
