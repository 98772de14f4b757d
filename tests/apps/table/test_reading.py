"""Tables in every format and dress give the same rows; kinds of columns are guessed rightly."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from dipedl.apps.table import reading, writing
from dipedl.apps.table.columns import as_inputs, infer_columns
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.reading import open_table, sample_rows
from passengers import passengers

PLAIN = passengers(50).assign(name=[f'{i}; "a,\nb"' for i in range(50)], port="ö")
TEXT = PLAIN.to_csv(index=False)


def german(frame):
    return frame.to_csv(index=False, sep=";", decimal=",").encode()


def stream(path):
    table = pa.Table.from_pandas(PLAIN)
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def lines(path):
    PLAIN.to_json(path, orient="records", lines=True)


#: How a file is written, by what is special about it.
DRESSES = {
    "plain": TEXT.encode(),
    "byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16 without a mark": TEXT.encode("utf-16-le"),
    "Western": TEXT.encode("cp1252"),
    "gz": gzip.compress(TEXT.encode()),
    "lines of Windows": TEXT.replace("\n", "\r\n").encode(),
    "tabs": PLAIN.to_csv(index=False, sep="\t").encode(),
    "bars": PLAIN.to_csv(index=False, sep="|").encode(),
    "semicolons and decimal commas": german(PLAIN),
    "Parquet": PLAIN.to_parquet,
    "Feather": PLAIN.to_feather,
    "Arrow stream": stream,
    "JSON lines": lines,
}


def as_frame(path, **forced):
    some = sample_rows(open_table(path))
    columns = infer_columns(some.frame, {"name": "category", **forced})
    X, _, refused = as_inputs(columns, some.frame, some.rows)
    assert refused == []
    return X, columns


@pytest.mark.parametrize("dress", DRESSES)
def test_every_dress_gives_the_same_rows(dress, tmp_path):
    # A wrong ending, on purpose: the content tells.
    path, made = tmp_path / "data.png", DRESSES[dress]
    path.write_bytes(made) if isinstance(made, bytes) else made(path)
    X, columns = as_frame(path)
    kinds = {c.name: c.kind for c in columns}
    assert kinds == {
        "passenger": "numeric",
        "survived": "boolean",
        "deck": "numeric",
        "name": "category",
        "sex": "category",
        "age": "numeric",
        "fare": "numeric",
        "port": "category",
    }
    for name in ("passenger", "deck", "age", "fare"):
        np.testing.assert_array_equal(X[name], PLAIN[name].astype(float))
    np.testing.assert_array_equal(X["survived"], PLAIN["survived"] == "yes")
    for name in ("name", "sex", "port"):
        said = X[name].astype(object).str.replace("\r", "")
        np.testing.assert_array_equal(said, PLAIN[name].astype(object))


def test_an_npz_file_gives_a_column_for_each_of_an_array(tmp_path):
    X, y = np.arange(12.0).reshape(6, 2), np.array(list("aababb"))
    np.savez(tmp_path / "data.npz", X=X, y=y)
    frame = sample_rows(open_table(tmp_path / "data.npz")).frame
    assert list(frame) == ["X0", "X1", "y"]
    np.testing.assert_array_equal(frame[["X0", "X1"]], X)
    assert list(frame["y"]) == list(y)


def test_files_of_a_folder_or_a_pattern_are_one_table(tmp_path):
    for i, rows in enumerate((PLAIN[:20], PLAIN[20:][PLAIN.columns[::-1]])):
        rows.to_csv(tmp_path / f"{i}.csv", index=False)
    with open(tmp_path / "0.csv", "a") as file:
        file.write("too,few\n")
    for path in (tmp_path, tmp_path / "*.csv"):
        some = sample_rows(open_table(path))
        assert some.rows.tolist() == [*range(1, 21), *range(22, 52)] and some.total == 51
        assert some.frame["passenger"].astype(int).tolist() == PLAIN["passenger"].tolist()
        (refused,) = some.refused
        assert refused.row == 21 and "row 21 of 0.csv" in refused.reason
    PLAIN.drop(columns="sex").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(UserError, match=r"2\.parquet and .*0\.csv differ in the columns 'sex'"):
        open_table(tmp_path)
    with pytest.raises(UserError, match="there is no file"):
        open_table(tmp_path / "*.tsv")


def test_one_object_over_several_lines_is_a_row(tmp_path):
    (tmp_path / "row.json").write_text(json.dumps({"a": 1, "b": "x"}, indent=2))
    frame = sample_rows(open_table(tmp_path / "row.json")).frame
    assert frame.to_dict("records") == [{"a": "1", "b": "x"}]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", "-3e4", None], "numeric"),
        (["1,5", "2,25", "3"], "numeric"),
        (["007", "010", "123"] * 5, "category"),
        (["TRUE", "false", "False"], "boolean"),
        (["Yes", "no"], "boolean"),
        (["2020-01-31", "2021-12-01"], "date"),
        (["2020-01-31T12:30:00", "2021-12-01T00:00:00"], "date"),
        (["2020-01-31T12:30:00+01:00", "2020-07-31T12:30:00+02:00"], "date"),  # summer time
        (["31.01.2020", "01.12.2021"], "date"),
        (["12/31/2020", "01/02/2021"], "date"),
        (["red", "blue", "red", "blue"], "category"),
        ([f"t{i}" for i in range(20)], "text"),
        ([f"t{i}" for i in range(300)] * 5, "text"),
        ([None, None], "text"),
    ],
)
def test_kinds_are_guessed(values, kind):
    (column,) = infer_columns(pd.DataFrame({"x": pd.Series(values, dtype=object)}), {})
    assert column.kind == kind


@pytest.mark.parametrize(
    ("values", "signed"),
    [
        (["1,234.50", "12.00", "7.5"], "1,234.50"),
        (["£7.25", "£12", "£7.25"], "£7.25"),
        (["5%", "10%"] * 4, "5%"),
        (["007", "010"] * 4, ""),
        (pd.Categorical([1, 2] * 4), ""),
        (["5%", "none"] * 4, ""),
    ],
)
def test_numbers_with_signs_are_told_and_codes_are_not(values, signed):
    (column,) = infer_columns(pd.DataFrame({"x": pd.Series(values)}), {})
    assert (repr(signed) in column.why and "1234.5" in column.why) if signed else not column.why


@pytest.mark.parametrize(
    ("values", "new", "reason"),
    [
        (["1.5", "2"], "30,5", "has a decimal comma: numbers of this column need a decimal point"),
        (["1,5", "2"], "30.5", "has a decimal point: numbers of this column need a decimal comma"),
        (["1.5", "2"], "1,234.5", "is no finite number"),
        (["1.5", "2"], "inf", "is no finite number"),
        (["1,5", "2"], "old", "is no finite number"),
    ],
)
def test_a_number_with_another_decimal_mark_is_refused_with_that_reason(values, new, reason):
    columns = infer_columns(pd.DataFrame({"x": values}), {})
    _, _, (refused,) = as_inputs(columns, pd.DataFrame({"x": [new, "3"]}), np.array([1, 2]))
    assert refused[:2] == (1, "x") and refused.reason.startswith(f"{new!r} {reason}")


def test_dates_become_month_weekday_and_hour():
    days = ["2026-11-22 13:00", "2026-01-01 00:00"]
    frame = pd.DataFrame({"day": days})
    columns = infer_columns(frame, {})
    X, _, _ = as_inputs(columns, frame, np.array([1, 2]))
    assert X.to_dict("list") == {
        "day.month": [11, 1],
        "day.weekday": [6, 3],
        "day.hour": [13, 0],
    }


def test_a_column_told_to_be_a_category_keeps_its_texts():
    frame = pd.DataFrame({"zip": ["1", "2", "1"], "n": [1.0, np.nan, 3.0]})
    zips, n = infer_columns(frame, {"zip": "category", "n": "category"})
    assert (zips.levels, n.levels) == (("1", "2"), ("1", "3"))


@pytest.fixture
def four_threads():
    """As on a machine of four cores, whatever OMP_NUM_THREADS says."""
    before = pa.cpu_count()
    pa.set_cpu_count(4)
    yield
    pa.set_cpu_count(before)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("above", ["", "\n\n", "\r\n\n"])
@pytest.mark.parametrize("names", [["a", "b"], ["a", "b\n(cm)"]])
def test_numbers_of_rows_count_those_that_are_left_out(
    encoding, above, names, four_threads, tmp_path, monkeypatch
):
    monkeypatch.setattr(reading, "_BLOCK", 200)
    body = [f"{i},x" for i in range(300)]
    for i in (3, 150, 299):
        body[i] = "one,two,three"
    header = f'{above}"{names[0]}","{names[1]}"\n\n'
    (tmp_path / "data.csv").write_bytes((header + "\n".join(body)).encode(encoding))
    some = sample_rows(open_table(tmp_path / "data.csv"))
    assert list(some.frame) == names
    assert [one.row for one in some.refused] == [4, 151, 300]
    assert (some.frame["a"].astype(int) + 1 == some.rows).all()
    assert len(some.rows) == 297 and some.total == 300


def test_rows_are_drawn_without_favour(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 10)
    pd.DataFrame({"a": range(100)}).to_parquet(tmp_path / "data.parquet")
    table = open_table(tmp_path / "data.parquet")
    draws = [sample_rows(table, 20, seed).rows for seed in range(60)]
    assert all(len(set(rows)) == 20 and (np.diff(rows) > 0).all() for rows in draws)
    counts = np.bincount(np.concatenate(draws), minlength=101)[1:]
    # 60 draws at 20 %: 12 of each row, and six standard deviations of the sum over half of them
    assert abs(counts[:50].sum() - 600) < 6 * np.sqrt(60 * 20 * 0.25)
    np.testing.assert_array_equal(draws[0], sample_rows(table, 20, 0).rows)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".feather", ".arrow", ".jsonl"])
def test_what_is_written_is_read_again(ending, tmp_path):
    made = pd.DataFrame({"n": [0.1, 1 / 3], "text": ["a\nb", 'ö"'], "on": [True, False]})
    path = tmp_path / f"a{ending}"
    with writing.table_writer(path) as write:
        write(made)
        write(made)
    again = sample_rows(open_table(path)).frame
    assert again["n"].astype(float).tolist() == [0.1, 1 / 3] * 2
    assert again["text"].tolist() == ["a\nb", 'ö"'] * 2
    assert again["on"].astype(str).str.lower().tolist() == ["true", "false"] * 2
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_lists_and_infinite_numbers_beside_answers_are_written(tmp_path):
    made = pd.DataFrame({"n": [np.inf, np.nan], "tags": [["a", 1], {"b": "2"}]})
    for ending in (".csv", ".jsonl"):
        with writing.table_writer(tmp_path / f"a{ending}") as write:
            write(made)
    again = sample_rows(open_table(tmp_path / "a.csv")).frame
    assert again["tags"].tolist() == ["['a', 1]", "{'b': '2'}"]
    written = (tmp_path / "a.jsonl").read_text().splitlines()
    strict = [json.loads(line, parse_constant=pytest.fail) for line in written]
    assert strict == [{"n": "inf", "tags": ["a", 1]}, {"n": None, "tags": {"b": "2"}}]


@pytest.mark.parametrize("dress", ["plain", "gz", "UTF-16", "lines"])
def test_progress_is_of_the_rows_that_were_given(dress, tmp_path, monkeypatch):
    made, path = passengers(3000), tmp_path / "data"
    text = made.to_csv(index=False)
    if dress == "lines":
        made.to_json(path, orient="records", lines=True)
    else:
        kinds = {"gz": gzip.compress, "UTF-16": lambda b: b.decode().encode("utf-16")}
        path.write_bytes(kinds.get(dress, bytes)(text.encode()))
    monkeypatch.setattr(reading, "_BLOCK", 10_000)
    monkeypatch.setattr(reading, "_ROWS", 100)
    pieces = list(open_table(path).pieces())
    said = np.array([piece.done for piece in pieces])
    true = np.cumsum([len(piece.frame) for piece in pieces]) / 3000
    assert len(said) > 10 and np.abs(said - true).max() < 0.01


def with_a_quote(line, packed=bytes, encoding="utf-8"):
    """A file of ten rows, with `line` as the sixth."""
    body = [f"{i},{i},x" for i in range(10)]
    body[5] = line
    return packed(("a,b,c\n" + "\n".join(body) + "\n").encode(encoding))


PACKED = {"plain": bytes, "gzip": gzip.compress}


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_quote_that_is_never_closed_is_told_with_the_lines_it_takes(encoding, packed, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(with_a_quote('"5,5,x', PACKED[packed], encoding))
    some = sample_rows(open_table(path))
    assert len(some.rows) == 5 and [one.row for one in some.refused] == [6]
    assert "never closed: the next 4 lines were read as part of it" in some.refused[0].reason
    path.write_bytes(with_a_quote('5,5,"x', PACKED[packed], encoding))
    with pytest.raises(
        UserError, match="last field of row 6 and is never closed: the next 4 lines"
    ):
        sample_rows(open_table(path))


def test_a_text_of_two_lines_at_the_end_is_no_open_quote(tmp_path):
    (tmp_path / "data.csv").write_bytes(with_a_quote("5,5,x") + b'1,2,"two\nlines"\n')
    assert sample_rows(open_table(tmp_path / "data.csv")).frame["c"].iloc[-1] == "two\nlines"


@pytest.mark.parametrize("mark", ["\u2028", "\x85", "\x0b", "\x0c"])
def test_what_ends_a_line_elsewhere_is_text_in_a_csv_file(mark, tmp_path):
    """U+2028 and others end lines of `str.splitlines`, but none of a file."""
    path = tmp_path / "data.csv"
    path.write_bytes(with_a_quote("5,5,x,") + f"1,2,two{mark}lines".encode())
    some = sample_rows(open_table(path))
    assert some.frame["c"].iloc[-1] == f"two{mark}lines" and len(some.rows) == 10
    path.write_bytes(with_a_quote(f'5,5"{mark},x,y'))
    assert "4 fields, where" in sample_rows(open_table(path)).refused[0].reason


def test_a_quote_that_is_never_closed_in_a_large_file(tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_bytes(with_a_quote('"5,5,x') + b"1,2,x\n" * 1000)
    monkeypatch.setattr(reading, "_BLOCK", 1000)
    with pytest.raises(UserError, match="as where a quote is never closed"):
        sample_rows(open_table(tmp_path / "data.csv"))
