"""A level or class has one spelling, whatever its type, its file and what stands beside it."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet

from dipedl.apps.table import reading
from dipedl.apps.table.check import check_table
from dipedl.apps.table.columns import as_inputs, infer_columns
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.evaluate import evaluate
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table, sample_rows
from dipedl.apps.table.score import ScoreRequest, score_table, start_monitor, watch
from dipedl.writing.spelling import spelling
from weekly import sample_of, sample_of_rows

LARGE = 2**53 + 1
#: Ways to write one value.
WAYS = {
    "1": [1, 1.0, "1", "1.0", "1.00", " 1 ", Decimal(1), Decimal("1.0"), np.float32(1), np.int8(1)],
    "-2": [-2, -2.0, "-2", "-2.0"],
    "0": [0, 0.0, -0.0, "0", "-0.0"],
    "0.1": [0.1, "0.1", np.float32(0.1), "1e-01", "1.0e-1"],
    "100000": [100000, 1e5, "1e+05", "1.0E5", "100000.0"],
    str(LARGE): [LARGE, str(LARGE), np.int64(LARGE), f"{LARGE}.0", Decimal(LARGE)],
    str(2**70): [2**70, 2.0**70, repr(2.0**70), str(2**70)],
    "1e-07": [1e-7, "1e-07", "1E-07", "0.0000001"],
    "True": [True, np.True_, "True", "TRUE", "true"],
    "2026-11-22": [pd.Timestamp("2026-11-22"), "2026-11-22 00:00:00", "2026-11-22T00:00:00",
        "2026-11-22", "2026-11-22T00:00:00Z", "2026-11-22 00:00:00+00:00", "2026-11-22T00:00Z",
        "2026-11-22 00:00:00.000+0000", pd.Timestamp("2026-11-22", tz="UTC")],
}  # fmt: skip
#: Texts that are no plain numbers: codes, versions, names.
NAMES = [
    "2026-11-22T00:00:00+01:00",
    "2026-11-22 05:00:00",
    "007",
    "1.10",
    "3.50",
    "+1",
    ".5",
    "1.",
    "1e5",
    "1,5",
    "0x10",
    "1_000",
    "1e+999",
    "tRue",
    "inf",
    "١",
]


@pytest.mark.parametrize("text", WAYS)
def test_all_ways_to_write_a_value_are_one_spelling(text):
    assert {spelling(value) for value in WAYS[text]} == {text}


@pytest.mark.parametrize("text", NAMES)
def test_names_and_codes_stay_what_they_are(text):
    assert spelling(text) == text


def test_a_spelling_is_that_of_the_number(rng):
    for x in (10.0 ** rng.uniform(-300, 300, 2000) * rng.choice([-1, 1], 2000)).tolist():
        assert float(spelling(x)) == x and spelling(spelling(x)) == spelling(x) == spelling(repr(x))


#: Entries of a column whose values are 1, 2, 3 or a gap.
SERIES = {
    "int64": pd.Series([3, 1, 2, 1]),
    "float64": pd.Series([3.0, 1.0, 2.0, 1.0]),
    "with a gap": pd.Series([3.0, 1.0, 2.0, 1.0, np.nan]),
    "nullable": pd.Series([3, 1, 2, 1, None], dtype="Int64"),
    "objects": pd.Series([3, 1.0, "2", "1.0", None], dtype=object),
    "texts": pd.Series(["3.0", "1.0", "2.0", "1"]),
    "decimals": pd.Series([Decimal(3), Decimal("1.0"), Decimal("2.00"), Decimal(1)]),
    "category of ints": pd.Series(pd.Categorical([3, 1, 2, 1, None])),
    "category of texts": pd.Series(pd.Categorical(["3.0", "1.0", "2.0", "1"])),
    "uint8": pd.Series([3, 1, 2, 1], dtype="uint8"),
    "float32": pd.Series([3, 1, 2, 1], dtype="float32"),
}


@pytest.mark.parametrize(
    "known", sample_of(SERIES, "float64", "nullable", "objects", "texts", "category of texts")
)
def test_a_level_is_the_same_in_a_column_of_any_type(known):
    (column,) = infer_columns(pd.DataFrame({"zone": SERIES[known]}), {"zone": "category"})
    assert column.levels == ("1", "2", "3")
    for values in SERIES.values():
        X, *_ = as_inputs([column], pd.DataFrame({"zone": values}), np.arange(len(values)))
        assert X["zone"].astype(object).tolist()[:4] == ["3", "1", "2", "1"]
        assert list(X["zone"].cat.categories) == ["1", "2", "3"]
        for i in range(4):
            one = pd.DataFrame({"zone": values.iloc[i : i + 1].reset_index(drop=True)})
            assert as_inputs([column], one, np.array([1]))[0]["zone"][0] == X["zone"][i]


@pytest.mark.parametrize("known", range(5))
def test_a_day_is_one_level_with_and_without_utc(known):
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"])
    series = [
        pd.Series(["2024-01-01", "2024-01-02", "2024-01-01T00:00:00Z"]),
        pd.Series(days),
        pd.Series(days.tz_localize("UTC")),
        pd.Series(days.strftime("%Y-%m-%dT00:00:00Z")),
        pd.Series(days.date, dtype=pd.ArrowDtype(pa.date32())),
    ]
    (column,) = infer_columns(pd.DataFrame({"day": series[known]}), {"day": "category"})
    assert column.levels == ("2024-01-01", "2024-01-02")
    for values in series:
        X, *_ = as_inputs([column], pd.DataFrame({"day": values}), np.arange(3))
        assert X["day"].tolist() == ["2024-01-01", "2024-01-02", "2024-01-01"]


def test_numbers_beside_a_fraction_are_the_same_levels():
    """zone 10 alone, and beside a row with 20.5."""
    (column,) = infer_columns(pd.DataFrame({"zone": [10, 20, 30] * 3}), {"zone": "category"})
    X, *_ = as_inputs([column], pd.DataFrame({"zone": [10.0, 20.5]}), np.array([1, 2]))
    assert X["zone"].astype(object).tolist() == ["10", "20.5"]


def test_versions_stay_apart_beside_texts_that_are_no_numbers():
    frame = pd.DataFrame({"version": ["1", "1.0", "2.0-beta", "1"]})
    (column,) = infer_columns(frame, {"version": "category"})
    assert column.levels == ("1", "1.0", "2.0-beta")
    X, *_ = as_inputs([column], pd.DataFrame({"version": ["1.0", "1"]}), np.array([1, 2]))
    assert X["version"].astype(object).tolist() == ["1.0", "1"]
    (column,) = infer_columns(frame.replace("2.0-beta", "2"), {"version": "category"})
    assert column.levels == ("1", "2")


def rows(n=240, seed=0):
    """Rows of which a column is a level that is a number, and the classes are numbers."""
    rng = np.random.default_rng(seed)
    zone, x = rng.choice([1.0, 2.0, 3.0], n), rng.normal(size=n)
    y = np.where(x + zone > 2.5, 1.0, 2.0)
    return pd.DataFrame({"zone": zone, "x": x, "y": y, "id": LARGE + 2 * np.arange(n)})


def as_lines(path, frame):
    records = [
        {k: None if pd.isna(v) else v for k, v in r.items()} for r in frame.to_dict("records")
    ]
    path.write_text("\n".join(map(json.dumps, records)))


def as_stream(path, frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=37)


def whole(frame):
    """The numbers without a fraction as integers."""
    return frame.astype({"zone": "Int64", "y": "Int64"})


WRITERS = {
    "CSV": lambda path, frame: frame.to_csv(path, index=False),
    "CSV of integers": lambda path, frame: whole(frame).to_csv(path, index=False),
    "Parquet": lambda path, frame: frame.to_parquet(path, index=False),
    "Parquet of integers": lambda path, frame: whole(frame).to_parquet(path, index=False),
    "Parquet of texts": lambda path, frame: frame.astype({"zone": str, "y": str}).to_parquet(path),
    "Feather": lambda path, frame: frame.to_feather(path),
    "Arrow stream": as_stream,
    "JSON lines": as_lines,
    "JSON lines of integers": lambda path, frame: as_lines(path, whole(frame)),
    "NPZ": lambda path, frame: np.savez(path.open("wb"), **{c: frame[c] for c in frame}),
}


#: One writer of each way to keep a type, beside that of the model.
OTHERS = ["CSV of integers", "Parquet of texts", "Arrow stream", "JSON lines", "NPZ"]


def fitted(path, types=None):
    order = FitRequest("y", "linear", drop=["id"], types=types or {"zone": "category"})
    return fit_table(open_table(path), order).model


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "fit.csv"
    WRITERS["CSV"](path, rows())
    return fitted(path)


def answers(model, path, out):
    score_table(model, open_table(path), out, ScoreRequest(columns=["id"], reasons="all"))
    return pd.read_parquet(out)


@pytest.mark.parametrize("writer", sample_of(OTHERS, "Parquet of texts", "JSON lines"))
def test_a_model_is_the_same_whatever_the_file(writer, model, tmp_path):
    WRITERS[writer](tmp_path / "fit", rows())
    found = fitted(tmp_path / "fit")
    assert found.classes == model.classes == ["1", "2"]
    assert found.columns[0].levels == model.columns[0].levels == ("1", "2", "3")
    WRITERS["Parquet"](tmp_path / "new", rows(40, 1))
    one, other = (answers(m, tmp_path / "new", tmp_path / "out.parquet") for m in (found, model))
    pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize(
    ("writer", "size"),
    sample_of_rows([*((writer, 6) for writer in OTHERS), ("Parquet", 1)], 0, 2, 4),
)
def test_answers_are_the_same_whatever_the_file_and_its_pieces(
    writer, size, model, tmp_path, monkeypatch
):
    """The second piece has no 1.5, and the third a gap in the numbers of the rows."""
    new = rows(16, 1)
    new.loc[3, "zone"] = 1.5
    if "integers" in writer:
        new.loc[3, "zone"] = 4
    expected = None
    for at in (20_000, size):
        monkeypatch.setattr(reading, "_ROWS", at)
        WRITERS[writer](tmp_path / "new", new)
        found = answers(model, tmp_path / "new", tmp_path / "out.parquet")
        expected = found if expected is None else expected
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)
    assert found["flagged"].mean() < 0.2 and found["flagged"][3]
    assert found["id"].astype(str).tolist() == new["id"].astype(str).tolist()


@pytest.mark.parametrize("writer", sample_of(OTHERS, 0, 3))
def test_a_report_knows_the_classes_of_any_file(writer, model, tmp_path):
    WRITERS[writer](tmp_path / "test", rows(200, 2))
    found = evaluate(model, open_table(tmp_path / "test"))
    assert found.scores["accuracy"] > 0.85 and found.strange == {}


@pytest.mark.parametrize("writer", sample_of(OTHERS, "CSV of integers", "NPZ"))
def test_a_monitor_measures_the_accuracy_of_any_file_and_piece(
    writer, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(reading, "_ROWS", 400)
    stream = rows(800, 3)
    if "integers" not in writer:
        stream.loc[500, ["zone", "y"]] = 1.5, 7.5
    WRITERS[writer](tmp_path / "new", stream)
    monitor = start_monitor(model, None, 0.01, 400)
    report, _ = watch(monitor, model, open_table(tmp_path / "new"))
    assert report.accuracy.value > 0.85 and report.rows == report.accuracy.rows == 800
    assert report.window.changed == ()


@pytest.mark.parametrize("writer", sample_of(OTHERS, 1, 4))
def test_rows_of_a_test_table_are_known_again_in_any_file(writer, tmp_path):
    WRITERS["CSV"](
        tmp_path / "train", rows(200).assign(x=lambda made: made["x"].mask(made["x"] > 2))
    )
    WRITERS[writer](tmp_path / "test", rows(200).iloc[:80])
    tables = [open_table(tmp_path / name) for name in ("train", "test")]
    found = {one.code: one.numbers for one in check_table(tables, "y").findings}
    assert found["overlap"]["rows"] == (rows(200)["x"][:80] <= 2).sum()


def test_classes_that_the_model_has_not_are_named_still(model, tmp_path):
    WRITERS["Parquet"](tmp_path / "test", rows(50).assign(y=7.0))
    with pytest.raises(UserError, match="holds 7, and the model knows 1, 2"):
        evaluate(model, open_table(tmp_path / "test"))


@pytest.mark.parametrize("ending", ["parquet", "feather", "stream", "jsonl"])
@pytest.mark.parametrize("dtype", ["Int64", "UInt64", "boolean"])
def test_a_gap_changes_no_value_and_no_type(ending, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 3)
    values = [True, False] * 4 if dtype == "boolean" else [LARGE + i for i in range(8)]
    gaps = pd.Series([None if i in (1, 6) else v for i, v in enumerate(values)], dtype=dtype)
    path, frame = tmp_path / f"data.{ending}", pd.DataFrame({"id": gaps})
    writers = {"parquet": "Parquet", "feather": "Feather", "stream": "Arrow stream"}
    WRITERS[writers.get(ending, "JSON lines")](path, frame)
    found = sample_rows(open_table(path)).frame["id"]
    entries = [None if pd.isna(entry) else str(entry).lower() for entry in found]
    assert entries == [None if pd.isna(entry) else str(entry).lower() for entry in gaps]


COPIED = {
    "dates": pa.array([None] * 4 + [datetime.date(2026, 11, 22), None], pa.date32()),
    "decimals": pa.array(
        [Decimal("1.50"), None] * 2 + [Decimal("123.25"), None], pa.decimal128(9, 2)
    ),
    "truths": pa.array([None] * 5 + [True]),
    "whole numbers": pa.array([LARGE, None, 1, None, None, LARGE]),
    "dictionaries": pa.array(["a", None, "b", None, None, "a"]).dictionary_encode(),
}


@pytest.mark.parametrize("name", COPIED)
def test_columns_are_written_back_as_they_were(name, model, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 2)
    table = pa.Table.from_pandas(rows(6, 1).drop(columns="id")).append_column("id", COPIED[name])
    pa.parquet.write_table(table, tmp_path / "new.parquet")
    wanted = ScoreRequest(columns=["id"], reasons="none")
    score_table(model, open_table(tmp_path / "new.parquet"), tmp_path / "out.parquet", wanted)
    found = pa.parquet.read_table(tmp_path / "out.parquet")["id"]
    assert found.to_pylist() == COPIED[name].to_pylist()
    if name != "dictionaries":
        assert found.type == COPIED[name].type


def test_columns_of_json_are_texts_as_they_are_written(model, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 3)
    written = ["1", "1.50", str(LARGE), "null", "true", str(2**70), '"x"', "1e2"]
    lines = [f'{{"zone": 1, "x": 0.5, "id": {value}}}' for value in written]
    (tmp_path / "new").write_text("\n".join(lines))
    for ending in ("parquet", "jsonl"):
        out = tmp_path / f"out.{ending}"
        wanted = ScoreRequest(columns=["id"], reasons="none")
        score_table(model, open_table(tmp_path / "new"), out, wanted)
        found = sample_rows(open_table(out)).frame["id"]
        texts = [None if pd.isna(entry) else entry for entry in found]
        assert texts == [{"null": None, '"x"': "x"}.get(value, value) for value in written]


def test_a_large_number_stays_exact_beside_a_fraction(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 2)
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(f'{{"id": {x}}}' for x in (LARGE, LARGE + 1, 1.5, 2, "null", 2**80)))
    found = sample_rows(open_table(path)).frame["id"]
    assert found.dropna().tolist() == [str(x) for x in (LARGE, LARGE + 1, 1.5, 2, 2**80)]
