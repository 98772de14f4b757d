"""Words such as NA, marks in numbers, bytes and encodings: read rightly, or asked about."""

import gzip
import json
import uuid

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")


import pyarrow as pa
import pyarrow.parquet as pq

from dipedl.apps.table.columns import GAP_WORDS, as_inputs, infer_columns
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table, sample_rows
from dipedl.apps.table.table_model import read_model, save_model
from weekly import sample_of, sample_of_rows

N = 120
X = np.random.default_rng(0).normal(size=N).round(3)


def as_csv(path, frame):
    frame.to_csv(path, index=False)


def as_quoted_csv(path, frame):
    frame.to_csv(path, index=False, quoting=2)


def as_parquet(path, frame):
    frame.to_parquet(path)


def as_lines(path, frame):
    frame.to_json(path, orient="records", lines=True)


WRITERS = [as_csv, as_quoted_csv, as_parquet, as_lines]


def fitted(path, **options):
    return fit_table(
        open_table(path, gaps=options.pop("gaps", ())), FitRequest("y", model="linear", **options)
    )


@pytest.mark.parametrize(
    ("write", "word"),
    sample_of_rows([*zip(WRITERS, ["None", *GAP_WORDS[:3]], strict=True)], 0, 2),
)
def test_a_class_and_a_level_of_a_word_for_a_gap_are_kept(write, word, tmp_path):
    y, port = np.where(X > 0, "EU", word), np.resize(["S", word, "Q"], N)
    write(tmp_path / "data", pd.DataFrame({"x": X, "port": port, "y": y}))
    learned = fitted(tmp_path / "data")
    assert learned.model.facts["classes"] == {"EU": (X > 0).sum(), word: (X <= 0).sum()}
    (port,) = (c for c in learned.model.columns if c.name == "port")
    assert sorted(port.levels) == sorted(["S", word, "Q"]) and "gaps" not in port.why
    assert learned.refused_rows == 0
    told = [note for note in learned.notes if "gaps=" in note and note.startswith(repr(word))]
    assert len(told) == (write in (as_csv, as_quoted_csv))


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_a_word_that_is_said_to_be_a_gap_is_one_in_every_format(write, tmp_path):
    y = np.where(X > 0, "EU", "AS").astype(object)
    y[:5] = "NA"
    write(tmp_path / "data", pd.DataFrame({"x": X, "port": np.resize(["S", " ?"], N), "y": y}))
    learned = fitted(tmp_path / "data", gaps=("NA", "? "))
    assert sorted(learned.model.facts["classes"]) == ["AS", "EU"]
    assert learned.model.columns[1].levels == ("S",)
    assert [one.row for one in learned.refused] == [1, 2, 3, 4, 5]
    assert all("gaps=" in one.reason and "NA" in one.reason for one in learned.refused)
    save_model(learned.model, tmp_path / "m.dipedl")
    assert read_model(tmp_path / "m.dipedl").gaps == ("NA", "? ")


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_a_model_takes_the_words_of_its_fit_for_gaps_wherever_rows_come_from(write, tmp_path):
    x = np.where(np.arange(N) % 9 == 0, -9999.0, X)
    port = pd.Categorical(np.resize(["S", "Q", "?"], N))
    frame = pd.DataFrame({"x": x, "port": port, "y": np.where(X > 0, "EU", "AS")})
    write(tmp_path / "data", frame)
    model = fitted(tmp_path / "data", gaps=("-9999.0", "?")).model
    gaps = frame.assign(x=frame.x.mask(x < -99), port=port.remove_categories("?"))
    gaps = gaps[["x", "port"]].astype(object).where(lambda f: f.notna(), None)
    save_model(model, tmp_path / "m.dipedl")
    expected = model.classifier.predict_proba(gaps)
    for rows in (frame, frame.astype(object), frame[["x", "port"]].to_numpy(dtype=object)):
        np.testing.assert_array_equal(model.classifier.predict_proba(rows), expected)
    inputs, _, _ = model.inputs(frame.astype(object), np.arange(N))
    pd.testing.assert_frame_equal(model.inputs(gaps, np.arange(N))[0], inputs)
    assert np.isnan(inputs["x"]).sum() == (x < -99).sum()


def test_a_number_for_a_gap_is_none_among_truths_that_are_encoded(tmp_path):
    owns = np.where(np.arange(N) % 2, "yes", "no")
    frame = pd.DataFrame({"x": np.where(X > 1, 0.0, X), "owns": owns, "y": X > 0})
    as_csv(tmp_path / "data", frame)
    model = fitted(tmp_path / "data", gaps=("0.0", "0")).model
    inputs, _, _ = model.inputs(frame.astype(object), np.arange(N))
    assert inputs["owns"].tolist() == [0.0, 1.0] * (N // 2) and inputs["x"].isna().any()
    expected = model.classifier.predict_proba(frame)
    np.testing.assert_array_equal(model.classifier.predict_proba(inputs), expected)


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        (["1.5", "2", "3"], "numeric"),
        (["1,5", "2,25", "3"], "numeric"),
        (["yes", "no"], "boolean"),
        (["2020-01-31", "2021-12-01"], "date"),
    ],
)
@pytest.mark.parametrize("word", [*GAP_WORDS, " NA "])
def test_a_word_among_numbers_truths_and_dates_is_a_gap(entries, kind, word):
    frame = pd.DataFrame({"x": [*entries, word, None]})
    (column,) = infer_columns(frame, {})
    assert column.kind == kind and column.why.endswith(f"{2 / len(frame):.0%} gaps")
    rows = np.arange(len(frame))
    made, fine, refused = as_inputs([column], frame, rows)
    assert fine.all() and not refused
    assert made.isna().all(axis=1).tolist() == [False] * len(entries) + [True, True]
    with_null, *_ = as_inputs([column], frame.replace(word, None), rows)
    pd.testing.assert_frame_equal(made, with_null)


def test_a_word_in_a_column_said_to_be_a_category_is_a_level():
    frame = pd.DataFrame({"x": ["yes", "no", "None", None], "code": ["1", "2", "NA", ""]})
    columns = infer_columns(frame, dict.fromkeys(frame, "category"))
    assert columns[0].levels == ("None", "no", "yes") and "NA" in columns[1].levels


def test_a_word_beside_classes_that_are_numbers_is_asked_about(tmp_path):
    y = np.where(X > 0, "1", "0").astype(object)
    y[::3] = "NA"
    as_csv(tmp_path / "data", pd.DataFrame({"x": X, "y": y}))
    with pytest.raises(
        UserError, match=r"'y'.*'NA' in 40 rows.*gaps=\['NA'\].*types={'y': 'category'}"
    ):
        fitted(tmp_path / "data")
    assert sorted(fitted(tmp_path / "data", gaps=["NA"]).model.facts["classes"]) == ["0", "1"]
    named = fitted(tmp_path / "data", types={"y": "category"})
    assert sorted(named.model.facts["classes"]) == ["0", "1", "NA"]


def test_a_rare_class_that_may_be_a_gap_is_told_with_the_option(tmp_path):
    y = np.where(X > 0, "EU", "AS").astype(object)
    y[:3] = "null"
    as_csv(tmp_path / "data", pd.DataFrame({"x": X, "y": y}))
    with pytest.raises(UserError, match=r"'null' \(3\).*gaps=\['null'\]"):
        fitted(tmp_path / "data")


def test_one_class_beside_rows_that_gaps_left_out_is_told_with_the_option(tmp_path):
    y = np.where(X > 0, "EU", "NA")
    as_csv(tmp_path / "data", pd.DataFrame({"x": X, "y": y}))
    with pytest.raises(UserError, match=rf"'EU'.*{(X <= 0).sum()} rows.*gaps=\['NA'\]"):
        fitted(tmp_path / "data", gaps=["NA"])


def test_unlabelled_rows_of_a_report_are_no_unknown_class(run, tmp_path):
    y = np.where(X > 0, "EU", "AS")
    as_csv(tmp_path / "data.csv", pd.DataFrame({"x": X, "y": y}))
    save_model(fitted(tmp_path / "data.csv").model, tmp_path / "m.dipedl")
    as_csv(tmp_path / "new.csv", pd.DataFrame({"x": X, "y": ["NA", *y[1:]]}))
    model = read_model(tmp_path / "m.dipedl")
    from dipedl.apps.table.evaluate import evaluate

    assert evaluate(model, open_table(tmp_path / "new.csv")).strange == {}
    assert run("monitor", tmp_path / "m.dipedl", tmp_path / "new.csv", "-q").exit_code == 0


@pytest.mark.parametrize("entries", [["3,466", "900"], ["1,000", "-2,500"], ["12,345", "7"]])
def test_a_comma_that_may_mean_either_is_asked_about(entries, run, tmp_path):
    frame = pd.DataFrame({"price": entries})
    with pytest.raises(UserError, match=f"'price': '{entries[0]}' may be"):
        infer_columns(frame, {})
    with pytest.raises(UserError, match="'price'"):
        infer_columns(frame, {"price": "numeric"})
    as_csv(tmp_path / "a.csv", pd.DataFrame({"price": np.resize(entries, N), "y": ["a", "b"] * 60}))
    for command in ("fit", "check"):
        done = run(command, tmp_path / "a.csv", "--target", "y")
        assert done.exit_code != 0 and f"'{entries[0]}' may be" in done.output


@pytest.mark.parametrize(
    ("entries", "numbers"),
    [
        (["3,466", "0,5"], [3.466, 0.5]),
        (["3,466", "1234,5"], [3.466, 1234.5]),
        (["3,466", "0,125"], [3.466, 0.125]),
        (["3,466", ",5"], [3.466, 0.5]),
    ],
)
def test_other_entries_prove_a_decimal_comma(entries, numbers):
    frame = pd.DataFrame({"x": entries})
    made, _, refused = as_inputs(infer_columns(frame, {}), frame, np.arange(2))
    assert made["x"].tolist() == numbers and not refused


def test_numbers_of_json_have_points_whatever_the_mark_of_the_table(run, tmp_path):
    """A table of decimal commas, and its rows as JSON lines: 0.5 can be read in one way only."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=60).round(3), "b": rng.normal(size=60).round(3)})
    rows = rows.assign(y=np.where(rows.a > 0, "p", "q"))
    rows.to_csv(tmp_path / "rows.csv", sep=";", decimal=",", index=False)
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    model = tmp_path / "m"
    run("fit", tmp_path / "rows.csv", "--target", "y", "--model", "linear", "--out", model)
    answers = []
    for name in ("rows.csv", "rows.jsonl"):
        done = run("score", model, tmp_path / name, "--out", tmp_path / "answers.csv")
        assert done.exit_code == 0, done.output
        answers.append((tmp_path / "answers.csv").read_text())
    assert answers[0] == answers[1]
    assert run("explain", model, '{"a": 0.5, "b": null}').exit_code == 0
    text = run("explain", model, '{"a": "0.5", "b": null}')
    assert text.exit_code == 3 and "has a decimal point" in text.stderr


def test_another_column_proves_a_decimal_comma(run, tmp_path):
    frame = pd.DataFrame({"lat": np.resize(["48,137", "52,520"], N), "x": X, "y": ["a", "b"] * 60})
    frame.to_csv(tmp_path / "a.csv", sep=";", decimal=",", index=False)
    some = sample_rows(open_table(tmp_path / "a.csv"))
    columns = infer_columns(some.frame[["lat", "x"]], {})
    made, *_ = as_inputs(columns, some.frame, some.rows)
    assert made["lat"][:2].tolist() == [48.137, 52.52]
    assert "mixed" not in run("check", tmp_path / "a.csv", "--target", "y").stdout
    with pytest.raises(UserError, match="'lat'"):
        infer_columns(some.frame[["lat"]], {})


@pytest.mark.parametrize(
    "entries",
    [
        ["1.234,56", "7,5"],
        ["1.234.567", "900"],
        ["3,466", "3.5"],
        ["1,234,567", "900"],
        ["1\u00a0234", "900"],
        ["1\u202f234,5", "2,5"],
        ["\u22123", "4"],
        ["1’234", "5"],
        ["(12)", "3"],
    ],
)
def test_numbers_written_for_a_reader_are_told_with_a_remedy(entries):
    (column,) = infer_columns(pd.DataFrame({"x": entries * 4 + [None, "NA"]}), {})
    assert column.kind != "numeric" and "such as -1234.5" in column.why
    # Once among many plain numbers, and in a new row of a numeric column.
    odd = next(text for text in entries if repr(text) in column.why)
    with pytest.raises(UserError, match=r"plain numbers|without commas") as told:
        infer_columns(pd.DataFrame({"x": [*map(str, range(100, 120)), odd]}), {})
    assert "gaps=" not in str(told.value)
    (plain,) = infer_columns(pd.DataFrame({"x": ["1.5", "2"]}), {})
    *_, (refused,) = as_inputs([plain], pd.DataFrame({"x": [odd]}), np.array([1]))
    assert refused.column == "x" and repr(odd) in refused.reason


def names_of_towns(n=6000):
    """Lines of a table of some 100 kB, a third of them with letters beyond ASCII."""
    towns = ("Köln", "Bonn", "Ulm")
    return ["x,town,y", *(f"{i},{towns[i % 3]},{'ab'[i % 2]}" for i in range(n))]


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
@pytest.mark.parametrize("at", [10, 3000, 5998])
@pytest.mark.parametrize("rest", ["UTF-8", "ASCII"])
def test_one_western_byte_in_a_file_of_utf8_is_told_with_its_line(at, rest, packed, tmp_path):
    lines = [line.encode() for line in names_of_towns()]
    if rest == "ASCII" and at < 5000:
        # Such a file is Western text until its last line: a line of UTF-8 tells.
        lines = [line.replace("ö".encode(), b"o") for line in lines[:-1]] + [lines[1]]
    elif rest == "ASCII":
        lines = [line.replace("ö".encode(), b"o") for line in lines]
    lines[at] = b"7,K\xf6ln,a"
    (tmp_path / "data.csv").write_bytes(packed(b"\n".join(lines) + b"\n"))
    with pytest.raises(UserError, match=f"line {at + 1:,} holds bytes that are no UTF-8"):
        sample_rows(open_table(tmp_path / "data.csv"))


def test_western_text_is_read_though_some_letters_look_like_utf8(tmp_path):
    lines = [*names_of_towns(), *["7,Spaß”,a"] * 20]
    (tmp_path / "data.csv").write_bytes("\n".join(lines).encode("cp1252"))
    towns = set(sample_rows(open_table(tmp_path / "data.csv")).frame["town"])
    assert towns == {"Köln", "Bonn", "Ulm", "Spaß”"}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_delimiter_at_the_end_of_each_row_is_told_with_a_remedy_that_works(delimiter, tmp_path):
    rows = [delimiter.join([str(i), "ab"[i % 2]]) for i in range(50)]
    names = delimiter.join(["x", "y"])
    path = tmp_path / "data.csv"
    path.write_text("\n".join([names, *(row + delimiter for row in rows)]))
    with pytest.raises(UserError, match="ends in a delimiter") as told:
        open_table(path, delimiter=delimiter)
    assert "title" not in str(told.value)
    path.write_text("\n".join([names + delimiter, *rows]))
    with pytest.raises(UserError, match="line of names ends in a delimiter: delete it"):
        open_table(path, delimiter=delimiter)
    # Both remedies, and a single such row.
    path.write_text("\n".join([names + delimiter + "z", *(row + delimiter for row in rows)]))
    assert len(sample_rows(open_table(path, delimiter=delimiter)).frame) == 50
    path.write_text("\n".join([names, *rows[:30], rows[30] + delimiter, *rows[31:]]))
    some = sample_rows(open_table(path, delimiter=delimiter))
    assert len(some.frame) == 49
    assert [one.row for one in some.refused] == [31] and "delimiter" in some.refused[0].reason


BINARY = {
    "bytes": (pa.binary(), [bytes([200, i]) for i in [*range(250)] * 2]),
    "fixed": (pa.binary(16), [bytes([200] * 15 + [i]) for i in [*range(250)] * 2]),
    "large": (pa.large_binary(), [bytes([255, i]) for i in [*range(250)] * 2]),
}


COMMANDS = ["fit", "check", "fit parts"]


@pytest.mark.parametrize(("command", "kind"), list(zip(COMMANDS, BINARY, strict=True)))
def test_a_column_of_bytes_is_named_with_a_remedy_that_works(command, kind, run, tmp_path):
    x = np.random.default_rng(0).normal(size=500)
    y = np.where(x > 0, "a", "b")
    type_, values = BINARY[kind]
    made = {"x": x, "id": pa.array(values, type_), "y": y}
    pq.write_table(pa.table(made), tmp_path / "data.parquet")
    words = [command.split()[0], tmp_path / "data.parquet", "--target", "y", "-q"]
    words += ["--out", tmp_path / "m.dipedl"] if "fit" in command else []
    words += ["--engine", "local", "--workers", 1] if "parts" in command else []
    done = run(*words)
    assert done.exit_code != 0 and "'id' holds bytes that are no text" in done.output
    assert "codec" not in done.output
    assert run(*words, "--drop", "id").exit_code in (0, 3)
    pq.write_table(pa.table({**made, "y": pa.array(values, type_)}), tmp_path / "data.parquet")
    done = run(*words, "--drop", "id")
    assert done.exit_code in (1, 3) and "'y' holds bytes that are no text" in done.output


def test_bytes_that_are_text_are_read_as_text_and_others_refuse_their_row_alone(run, tmp_path):
    y, texts = np.where(X > 0, "a", "b"), [b"S", "ö".encode(), b"Q"] * 40
    pq.write_table(pa.table({"x": X, "port": texts, "y": y}), tmp_path / "data.parquet")
    learned = fitted(tmp_path / "data.parquet")
    assert learned.model.columns[1].levels == ("Q", "S", "ö")
    save_model(learned.model, tmp_path / "m.dipedl")
    pq.write_table(pa.table({"x": X, "port": [b"\xff", *texts[1:]]}), tmp_path / "new.parquet")
    out = ("--out", tmp_path / "a.csv")
    done = run("score", tmp_path / "m.dipedl", tmp_path / "new.parquet", *out)
    assert done.exit_code == 3 and "row 1, column 'port'" in done.stderr
    assert len(pd.read_csv(tmp_path / "a.csv")) == N - 1


def test_bytes_of_numbers_dates_and_truths_are_read_as_their_texts(tmp_path):
    texts = {
        "number": ["1.5", "NA", "7"],
        "date": ["2026-01-31", "2026-02-28", "2026-03-31"],
        "truth": ["yes", "no", "no"],
    }
    entries = {name: [text.encode() for text in of] * 40 for name, of in texts.items()}
    made = {"x": X, **entries, "y": np.where(X > 0, b"a", b"b").astype(object)}
    pq.write_table(pa.table(made), tmp_path / "data.parquet")
    learned = fitted(tmp_path / "data.parquet")
    kinds = {column.name: column.kind for column in learned.model.columns}
    assert kinds == {"x": "numeric", "number": "numeric", "date": "date", "truth": "boolean"}
    assert learned.refused_rows == 0 and list(learned.model.classes) == ["a", "b"]


def test_a_uuid_column_is_text(tmp_path):
    ids = [uuid.UUID(int=i).bytes for i in range(N)]
    column = pa.ExtensionArray.from_storage(pa.uuid(), pa.array(ids, pa.binary(16)))
    made = {"x": X, "id": column, "y": np.where(X > 0, "a", "b")}
    pq.write_table(pa.table(made), tmp_path / "data.parquet")
    assert [c.kind for c in fitted(tmp_path / "data.parquet").model.columns] == ["numeric", "text"]


@pytest.mark.parametrize("other", ["900.5", "1,234,567", "$900"])
def test_check_names_numbers_with_other_characters(other, run, tmp_path):
    fares = [f"{i},466" if i % 2 else other for i in range(1, N + 1)]
    pd.DataFrame({"x": X, "fare": fares, "y": X > 0}).to_csv(tmp_path / "data.csv", index=False)
    done = run("check", tmp_path / "data.csv", "--target", "y", "--json")
    findings = {one["code"]: one for one in json.loads(done.stdout)["findings"]}
    assert findings["number_marks"]["numbers"]["column"] == "fare"


BLANKS = ["", " ", "\t "]
#: Entries of a column beside which a text of blanks stands.
BESIDE = {
    "category": ["low", "high"],
    "numeric": ["1.5", "2"],
    "boolean": ["yes", "no"],
    "date": ["2026-11-22", "2026-11-23"],
}
TYPES = {
    "objects": lambda entries: pd.Series(entries, dtype=object),
    "strings": lambda entries: pd.Series(entries, dtype="string"),
    "strings of Arrow": lambda entries: pd.Series(entries, dtype=pd.ArrowDtype(pa.string())),
    "categories": lambda entries: pd.Series(entries, dtype="category"),
}


@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", BESIDE)
def test_a_text_of_blanks_is_a_gap_in_columns_of_every_kind_and_type(kind, dtype, blank):
    def column(gap):
        return pd.DataFrame({"c": TYPES[dtype]([*BESIDE[kind] * 20, gap])})

    forced = {} if dtype == "objects" else {"c": kind}
    expected, found = (infer_columns(column(gap), forced) for gap in (None, blank))
    assert found == expected and found[0].kind == kind and "gaps" in found[0].why
    X, fine, refused = as_inputs(found, column(blank), np.arange(41))
    assert fine.all() and not refused
    pd.testing.assert_frame_equal(X, as_inputs(found, column(None), np.arange(41))[0])
    assert X.iloc[-1].isna().all()


@pytest.mark.parametrize("write", sample_of(WRITERS, 0, 2))
def test_an_empty_text_has_one_meaning_in_every_format(write, tmp_path):
    """As a level in rows to learn from and in new rows, and as a class, which is none."""
    frame = pd.DataFrame({"x": X, "level": np.where(X > 1, "", np.where(X > 0, "a", "b"))})
    frame["y"] = np.where(np.arange(N) < 10, "", np.where(X > 0.3, "p", "q"))
    write(tmp_path / "fit", frame)
    learned = fitted(tmp_path / "fit")
    model = learned.model
    assert model.classes == ["p", "q"] and learned.refused_rows == 10
    assert dict((c.name, c.levels) for c in model.columns)["level"] == ("a", "b")
    some = sample_rows(open_table(tmp_path / "fit"))
    inputs, *_ = model.inputs(some.frame, some.rows)
    assert inputs["level"].isna().equals(pd.Series(X > 1))
    assert model.labels(some.frame).isna().sum() == 10
