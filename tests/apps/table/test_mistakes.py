"""Mistakes that users make: each ends in a sentence with what, where and the remedy.

Never a traceback, never a file that is half written, and an exit code that says whose mistake.
"""

import errno
import gzip
import json
import os
import pickle
import re
import shlex
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from sklearn.preprocessing import FunctionTransformer

import dipedl
from dipedl.apps.table import reading, writing
from dipedl.io import container
from passengers import passengers


def csv(frame=None, name="data.csv", **changes):
    """A maker of a CSV file of passengers, with columns changed."""

    def make(folder):
        made = passengers() if frame is None else frame
        made.assign(**changes).to_csv(folder / name, index=False)

    return make


def text(content, name="data.csv"):
    """A maker of a file with this content."""

    def make(folder):
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)

    return make


def changed(row, column, value):
    """Passengers with one entry changed."""
    made = passengers().astype({column: object})
    made.loc[row - 1, column] = value
    return csv(made)


def truncated_gz(folder):
    packed = gzip.compress(passengers().to_csv(index=False).encode())
    (folder / "data.csv").write_bytes(packed[: len(packed) // 2])


def truncated_parquet(folder):
    passengers().to_parquet(folder / "data.csv")
    whole = (folder / "data.csv").read_bytes()
    (folder / "data.csv").write_bytes(whole[: len(whole) // 2])


def archive(member):
    def make(folder):
        with zipfile.ZipFile(folder / "data.csv", "w") as made:
            made.writestr(member, "")

    return make


def arrays(**other_system):
    def make(folder):
        with open(folder / "data.csv", "wb") as stream:
            np.savez(stream, **other_system)

    return make


def nested(folder):
    lines = [{"survived": "yes", "tags": [1, 2]}, {"survived": "no", "tags": [3]}] * 20
    (folder / "data.csv").write_text("\n".join(map(json.dumps, lines)))


def folder_of_that_name(folder):
    (folder / "data.csv").mkdir()


def nothing(folder):
    pass


LINE = "survived,age\nyes,1\n"
FULL = passengers().to_csv(index=False)
GERMAN = passengers().to_csv(index=False, sep=";", decimal=",")
COMMA = csv(passengers().rename(columns={"fare": "fare, net"}))
MANY = passengers(600).assign(code=[f"c{i % 300}" for i in range(600)])

#: What is made, further arguments of `dipedl fit data.csv --target survived`, exit code, message.
FIT = {
    "no such file": (nothing, "", 1, "there is no file data.csv"),
    "a pipe": (lambda folder: os.mkfifo(folder / "data.csv"), "", 1, "is no ordinary file; copy"),
    "a folder": (folder_of_that_name, "", 1, "without a file that ends in .csv"),
    "an empty file": (text(""), "", 1, "data.csv is empty; give a table"),
    "blank lines only": (text("\n\n  \n"), "", 1, "data.csv is empty"),
    "a line of names only": (text("survived,age\n"), "", 1, "no rows below them"),
    "names without an end of line": (text("survived,age"), "", 1, "no rows below them"),
    "all rows of another width": (text("survived,age\nyes\nno\n"), "", 1, "where the first line"),
    "two columns of one name": (text("survived,age,age\nyes,1,2\n"), "", 1, "two columns named"),
    "a column without a name": (text("survived,,age\nyes,1,2\n"), "", 1, "no name for column 2"),
    "no line of names": (text("1,2\n3,4\n"), "", 1, "begins with numbers (1, 2), not with names"),
    "a pickle": (text(pickle.dumps({"a": 1})), "", 1, "a pickle, which could run code"),
    "an Excel workbook": (archive("[Content_Types].xml"), "", 1, "Excel workbook: save the sheet"),
    "an old Excel workbook": (text(b"\xd0\xcf\x11\xe0" + bytes(99)), "", 1, "an old Excel"),
    "a zip archive": (archive("data.txt"), "", 1, "is a zip archive: unpack it"),
    "a page of HTML": (text("<!DOCTYPE html><p>404"), "", 1, "a page of HTML or XML"),
    "an image": (text(b"\x89PNG\r\n" + bytes(99)), "", 1, "is no table but an image"),
    "a PDF": (text("%PDF-1.7 ..."), "", 1, "is no table but a PDF"),
    "a database": (text("SQLite format 3"), "", 1, "is no table but a database"),
    "one JSON list": (text('[{"a": 1}]'), "", 1, "write one object per line, as by: jq"),
    "a broken line of JSON": (text('{"a": 1}\n{"a": \n'), "", 1, "line 2 is no JSON"),
    "a deep line of JSON": (text('{"a": 1}\n{"a": ' + "[" * 50_000), "", 1, "line 2 is no JSON"),
    "a deep object of JSON": (text('{"a": ' + "[" * 50_000), "", 1, "line 1 is no JSON"),
    "a name twice in a line of JSON": (
        text('{"a": 1}\n{"a": 1, "a": 2}\n'),
        "",
        1,
        "line 2 is no JSON: 'a' is there twice",
    ),
    "a line of JSON that is no object": (text('{"a": 1}\n7\n'), "", 1, "line 2 is no object"),
    "nested JSON": (nested, "", 1, "'tags' holds entries of type list, not single values"),
    "half of a gz": (truncated_gz, "", 1, "cannot be unpacked (gzip)"),
    "half of a Parquet file": (truncated_parquet, "", 1, "cannot be read"),
    "arrays of unequal length": (arrays(X=np.ones((3, 2)), y=[1, 2]), "", 1, "arrays of 2, 3 rows"),
    "arrays of one name": (arrays(X=np.ones((2, 2)), X0=[1, 2]), "", 1, "a column 'X0', and"),
    "arrays of three axes": (arrays(X=np.ones((3, 2, 2))), "", 1, "of shape (3, 2, 2): give rows"),
    "arrays of objects": (arrays(X=np.array([{}, {}], dtype=object)), "", 1, "Object arrays"),
    "another encoding further down": (
        text(FULL.encode() * 40 + "é".encode("cp1252") + b",1,1,1,1,1,1,1\n"),
        "",
        1,
        "data.csv cannot be read",
    ),
    "a wrong delimiter": (csv(), '--delimiter ";"', 1, "name the --delimiter"),
    "a delimiter of two characters": (csv(), "--delimiter ::", 2, "one character or tab, got '::'"),
    "a typo in the target": (csv(), "--target survivd", 1, "did you mean 'survived'?"),
    "a target like no column": (csv(), "--target zzz", 1, "no column 'zzz' to predict: it has"),
    "the target alone": (text("survived\nyes\nno\n"), "", 1, "only the column 'survived'"),
    "a target that is missing": (csv(survived=None), "", 1, "'survived' is missing in all rows"),
    "a target with a level per row": (csv(), "--target name", 1, "an id or a text, no class"),
    "a regression target": (csv(), "--target fare", 1, "that is regression"),
    "a regression target of decimal commas": (
        text(GERMAN),
        "--target fare",
        1,
        f"to {passengers().fare.max():g}: that",
    ),
    "a column to drop with a comma in its name": (
        COMMA,
        '--drop "fare, net"',
        1,
        """a name with a comma is one entry: --drop '"fare, net"'""",
    ),
    "a kind of a column with a comma in its name": (
        COMMA,
        "--types fare=text",
        1,
        """a name with a comma is one entry: --types '"fare, net=text"'""",
    ),
    "a column to drop with a line break in its name": (
        csv(),
        '--drop "fare\nnet,age"',
        2,
        "names with line breaks must",
    ),
    "one class": (csv(survived="yes"), "", 1, "two classes are needed"),
    "a class of three rows": (
        csv(survived=["rare"] * 3 + ["no", "yes"] * 118 + ["no"]),
        "",
        1,
        "fewer than 10 rows: 'rare' (3)",
    ),
    "a title above the names": (text("Passengers\n\n" + FULL), "", 1, "where the first line has 1"),
    "all columns constant": (
        csv(passengers()[["survived"]], ship="T", year=1912),
        "",
        1,
        "but for 'survived'",
    ),
    "numbers beyond float64 in all rows": (
        csv(passengers()[["survived"]], far="9" * 400),
        "",
        1,
        "row 1, column 'far'",
    ),
    "a classifier's file that is a table": (
        csv(name="data.csv"),
        "--model own.skops",
        1,
        "own.skops is no file",
    ),
    "the target dropped": (csv(), "--drop survived", 1, "--drop names the target"),
    "a column to drop that is not there": (csv(), "--drop agee", 1, "did you mean 'age'?"),
    "all columns dropped": (text(LINE * 2), "--drop age", 1, "no column of data.csv is left"),
    "a kind for no column": (csv(), "--types agee=text", 1, "did you mean 'age'?"),
    "a kind that there is not": (csv(), "--types age=float", 2, "must be one of numeric,"),
    "a kind without a column": (csv(), "--types age", 2, "--types must be written as column=kind"),
    "mixed types": (changed(7, "age", "old"), "", 1, "--types age=category"),
    "texts as numbers": (csv(), "--types sex=numeric", 1, "is no finite number"),
    "texts as truths": (csv(), "--types port=boolean", 1, "is neither true nor false"),
    "texts as dates": (csv(), "--types port=date", 1, "is no date such as 2015-02-28"),
    "too many levels": (csv(MANY), "--types code=category", 1, "and 254 is the most"),
    "nothing but names": (csv(passengers()[["survived", "name"]]), "", 1, "no column to learn"),
    "a time column that is not there": (csv(), "--time-column day", 1, "--time-column names 'day'"),
    "a time column of texts": (csv(), "--time-column port", 1, "a column of dates or numbers"),
    "a time column with gaps": (csv(), "--time-column age", 1, "--time-column age is missing in"),
    "a time column with a gap after rows that are left out": (
        csv(
            survived=passengers()["survived"].mask(passengers().index < 2),
            day=[*range(1900, 1909), None, *range(1909, 2139)],
        ),
        "--time-column day",
        1,
        "--time-column day is missing in row 10;",
    ),
    "a group column that is not there": (csv(), "--group-column city", 1, "--group-column names"),
    "a group column that is the target": (csv(), "--group-column survived", 1, "names the target"),
    "a group column with gaps": (csv(), "--group-column age", 1, "is missing in 52 of 240 rows"),
    "a group in each row": (csv(), "--group-column passenger", 1, "another value in each row"),
    "one group": (csv(ship="T"), "--group-column ship", 1, "has one value in all rows"),
    "groups and time": (csv(), "--group-column port --time-column passenger", 2, "give one of"),
    "two classes, one left out": (
        csv(),
        "--unknown",
        1,
        "the classes no, yes: with one left",
    ),
    "a model that there is not": (csv(), "--model forests", 2, "must be one of boosting, forest"),
    "a model's file that is not there": (csv(), "--model my.skops", 1, "there is no such file"),
    "a caution that is no number": (csv(), "--caution nan", 2, "--caution must be 0 to 1, got nan"),
    "a rate of false alarms of nothing": (csv(), "--false-alarms 0", 2, "must lie between 0 and 1"),
    "an option that there is not": (csv(), "--modle forest", 2, "No such option: --modle"),
    "few rows of a class, and one that cannot be read": (
        text("survived,age\nyes\n" + "yes,1\nno,2\n" * 5),
        "",
        1,
        "leave their rows out; rows that cannot be read: 1, first row 1: 1 field",
    ),
    "a line for Excel above the names": (text("sep=;\n" + GERMAN), "", 1, "begins with the line"),
    "a wrong delimiter that was named": (csv(), '--delimiter ";"', 1, "or leave out a wrong one"),
    "CSV in parts": (csv(), "--workers 2", 1, "or leave --workers, --partitions and"),
    "CSV in parts of rows": (csv(), "--partitions 20", 1, "write it as Parquet"),
    "out like a table": (csv(), "--out other.csv", 2, "--out: other.csv ends like a table"),
    "out like a packed table": (csv(), "--out a.csv.gz", 2, "name a model, as model.dipedl"),
    "out of parts like a table": (
        lambda folder: passengers().to_parquet(folder / "data.csv"),
        "--workers 1 --out other.parquet",
        2,
        "--out: other.parquet ends like a table",
    ),
    "out in no folder": (csv(), "--out no/m.dipedl", 1, "does not exist; create it"),
    "out is a folder": (csv(), "--out .", 1, "it is a folder; name a file in it"),
}


def one_sentence(done, code, message):
    """The exit code, and one line on stderr that holds the message; no traceback."""
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit)
    said = [line for line in done.stderr.splitlines() if line.startswith("dipedl: ")]
    shown = said[0] if said else re.sub(r"[\s│]+", " ", done.stderr)
    assert len(said) <= 1 and message in shown, done.stderr


@pytest.mark.parametrize("name", FIT)
def test_a_mistake_in_fit(name, run, tmp_path, monkeypatch):
    make, arguments, code, message = FIT[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.skops").write_text("no archive")
    make(tmp_path)
    before = sorted(tmp_path.iterdir())
    words = shlex.split(arguments)
    target = [] if "--target" in words else ["--target", "survived"]
    done = run("fit", "data.csv", *target, *words)
    one_sentence(done, code, message)
    assert sorted(tmp_path.iterdir()) == before


def test_a_target_that_arrays_lack_has_nothing_to_do_with_a_delimiter(run, tmp_path):
    arrays(X=np.ones((3, 1)))(tmp_path)
    done = run("fit", tmp_path / "data.csv", "--target", "survived")
    one_sentence(done, 1, "to predict: it has X0")
    assert "--delimiter" not in done.stderr


def test_a_column_that_is_there_but_for_its_spelling_is_no_gap(run, kept, tmp_path):
    csv(passengers().rename(columns={"sex": "Sex"}))(tmp_path)
    done = run("score", kept / "model.dipedl", tmp_path / "data.csv")
    one_sentence(done, 1, "did you mean 'Sex'?")
    assert "gaps" not in done.stderr


def other_columns(folder):
    passengers().rename(columns={"deck": "a", "sex": "b"}).to_csv(folder / "data.csv", index=False)


#: What is made, arguments of `dipedl score`, exit code, message.
SCORE = {
    "no such model": (csv(), "no.dipedl data.csv", 1, "there is no model no.dipedl"),
    "a folder for a model": (csv(), ". data.csv", 1, "is a folder, not a model"),
    "data for a model": (csv(), "data.csv data.csv", 1, "data.csv is not a file that dipedl"),
    "no such data": (nothing, "MODEL data.csv", 1, "there is no file data.csv"),
    "a model for data": (nothing, "MODEL MODEL", 1, "is no table but a file that dipedl saved"),
    "data before the model": (csv(), "data.csv MODEL", 2, "MODEL comes first, then DATA"),
    "CSV in parts": (csv(), "MODEL data.csv --workers 2", 1, "or leave --workers, --partitions"),
    "a column is missing": (
        csv(passengers().drop(columns="sex")),
        "MODEL data.csv",
        1,
        "lacks the column 'sex'",
    ),
    "other columns": (other_columns, "MODEL data.csv", 1, "lacks columns 'deck', 'sex'"),
    "a column to copy that is not there": (
        csv(),
        "MODEL data.csv --columns nam",
        1,
        "did you mean 'name'?",
    ),
    "a column to copy of the name of another": (
        csv(label=1),
        "MODEL data.csv --columns label",
        1,
        "--columns label",
    ),
    "a column to copy twice": (csv(), "MODEL data.csv --columns name,name", 1, "'name' twice"),
    "an ending without a format": (csv(), "MODEL data.csv --out a.xlsx", 2, "must end in .csv"),
    "a coverage of more than all": (csv(), "MODEL data.csv --coverage 1.2", 2, "--coverage must"),
    "reasons of another kind": (csv(), "MODEL data.csv --reasons some", 2, "--reasons must be one"),
    "no row can be answered": (csv(age="young"), "MODEL data.csv", 1, "'young' is no finite"),
}


P = pd.DataFrame({"no": np.linspace(0.1, 0.9, 40)}).assign(yes=lambda p: 1 - p.no)
HELD = P.assign(target=["no", "yes"] * 20)

#: Probabilities, held-out probabilities, message.
GIVEN = {
    "no true classes": (P, P, "has no column 'target' of true classes: it has no, yes"),
    "one class": (P, HELD[["no", "target"]], "a column of probabilities for each of two classes"),
    "a class without a column": (P, HELD.assign(target="maybe"), "holds the classes maybe, and"),
    "classes of other names": (P.rename(columns={"no": "nein"}), HELD, "differ in the classes"),
    "a text": (P.assign(no=["a", *P.no[1:]]), HELD, "proba.csv, row 1, column 'no': 'a' is no"),
    "equal rows": (P, HELD.assign(no=0.4, yes=0.6), "held.csv is equal in all rows: evidence"),
    "a class with two columns": (P, HELD.assign(p_no=P.no), "'no' and 'p_no', which are of one"),
    "percent": (100 * P, HELD, "proba.csv has no row that can be answered; row 1 is left out:"),
    "held-out rows that sum to more": (
        P,
        HELD.assign(no=1.2 * P.no, yes=1.2 * P.yes),
        "20 rows or more, got 0; row 1 is left out: probabilities must be >= 0 and sum to one, and "
        "sum to 1.2",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_mistake_in_probabilities_is_told_before_anything_is_fitted(
    name, run, tmp_path, monkeypatch
):
    from dipedl.apps.table import other_system

    proba, held, message = GIVEN[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(other_system, "_fit_evidence", None)
    proba.to_csv("proba.csv", index=False)
    held.to_csv("held.csv", index=False)
    one_sentence(run("score", "--proba", "proba.csv", "--held-out-proba", "held.csv"), 1, message)
    assert len(list(tmp_path.iterdir())) == 2


def test_features_of_other_rows_than_the_probabilities_are_refused(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in {"p": P, "f": P[:7], "held": HELD, "g": P}.items():
        table.to_csv(f"{name}.csv", index=False)
    words = "--proba p.csv --features f.csv --held-out-proba held.csv --held-out-features g.csv"
    one_sentence(run("score", *words.split()), 1, "f.csv has 7 rows and p.csv 40: row i of both")
    assert run("score", "--proba", "p.csv").exit_code == 2


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ('{"deck": 1', 2, "the row is no JSON: Expecting ',' delimiter"),
        ('{"deck": ' + "[" * 50_000, 2, "the row is no JSON: lists or objects are nested"),
        ('{"deck": 1, "deck": 2}', 2, "the row is no JSON: 'deck' is there twice"),
        ('{"deck": 1, "age": 3, "fare": 1, "port": "S"}', 1, "the row lacks the column 'sex'"),
    ],
)
def test_a_mistake_in_a_row_to_explain(row, code, message, run, kept):
    one_sentence(run("explain", kept / "model.dipedl", row), code, message)


@pytest.mark.parametrize("name", SCORE)
def test_a_mistake_in_score(name, run, kept, tmp_path, monkeypatch):
    make, arguments, code, message = SCORE[name]
    monkeypatch.chdir(tmp_path)
    make(tmp_path)
    before = sorted(tmp_path.iterdir())
    words = [kept / "model.dipedl" if word == "MODEL" else word for word in shlex.split(arguments)]
    one_sentence(run("score", *words), code, message)
    assert sorted(tmp_path.iterdir()) == before


def newer_version(kept, path):
    manifest, tensors = container.read(kept / "model.dipedl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container, "FORMAT_VERSION", 99)
        container.write(path, manifest, tensors)


def damaged(kept, path):
    whole = bytearray((kept / "model.dipedl").read_bytes())
    whole[-100] ^= 1
    path.write_bytes(whole)


def made_in_python(kept, path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    dipedl.DIPClassifier(density=dipedl.density.GDADensity()).fit(X, X[:, 0] > 0).save(path)


def runs_code(kept, path):
    import skops.io

    skops.io.dump(FunctionTransformer(os.path.exists), path)


#: Makers of a file of a model, a command that reads it, message.
MODELS = {
    "newer": (newer_version, "score m.skops new.csv", "99.*upgrade: pip install -U dipedl"),
    "damaged": (damaged, "score m.skops new.csv", "does not match its checksum; save or copy it"),
    "damaged, to look at": (damaged, "inspect m.skops", "does not match its checksum; save or"),
    "of Python": (made_in_python, "score m.skops new.csv", "was not made of a table by this"),
    "that runs code": (
        runs_code,
        "fit passengers.csv --target survived --model m.skops",
        "by which a crafted file could run code",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_refused(name, run, kept, tmp_path, monkeypatch):
    make, command, message = MODELS[name]
    monkeypatch.chdir(tmp_path)
    make(kept, tmp_path / "m.skops")
    words = [kept / word if word.endswith(".csv") else word for word in command.split()]
    done = run(*words)
    one_sentence(done, 1, "")
    assert re.search(message, done.stderr), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["m.skops"]


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_no_half_file(run, kept, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("old")
    monkeypatch.setattr(writing.pa.csv, "write_csv", full_disk)
    done = run("score", kept / "model.dipedl", kept / "new.csv", "--out", tmp_path / "a.csv")
    one_sentence(done, 1, "No space left on device; what was there is unchanged")
    monkeypatch.setattr(os, "fsync", full_disk)
    arguments = ["--target", "survived", "--model", "linear", "--out", tmp_path / "m.dipedl"]
    done = run("fit", kept / "passengers.csv", *arguments)
    one_sentence(
        done, 1, f"dipedl: cannot save to {tmp_path / 'm.dipedl'}: No space left on device"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "old"


def test_no_permission(run, kept, tmp_path, monkeypatch):
    out = tmp_path / "a.csv"
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    done = run("score", kept / "model.dipedl", kept / "new.csv", "--out", out)
    one_sentence(done, 1, "is not writable; name another")


def test_a_file_that_may_not_be_read(run, tmp_path, monkeypatch):
    def refuse(path, *_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    csv()(tmp_path)
    monkeypatch.setattr(reading, "open", refuse, raising=False)
    done = run("check", tmp_path / "data.csv", "--target", "survived")
    one_sentence(done, 1, "data.csv: no permission; ask its owner for it")


#: Arguments of the command line in a folder with data.csv, other.csv, MODEL and a monitor; exit
#: code, message.
OTHERS = {
    "a report over a table": ("report MODEL data.csv --out other.csv", 2, "--out: the page other"),
    "a page over a table": ("monitor MODEL data.csv --page other.csv", 2, "--page: the page other"),
    "a merged model over a table": ("merge MODEL MODEL --out other.csv", 2, "ends like a table"),
    "a report of a folder": ("report MODEL ..", 1, ".. is a folder without a file"),
    "a check of a folder": ("check .. --target survived", 1, ".. is a folder without a"),
    "a report of a model": ("report data.csv MODEL", 2, "MODEL comes first, then DATA"),
    "a row of a model": ("explain data.csv MODEL", 2, "MODEL comes first, then DATA"),
    "a stream of a model": ("monitor data.csv MODEL", 2, "MODEL comes first, then DATA"),
    "a truth without probabilities": (
        "score MODEL data.csv --target sex",
        2,
        "--target is for --h",
    ),
    "a model of no class left out": (
        "check data.csv --target survived --model linear",
        2,
        "--model is for --unknown",
    ),
    "a row and rows": ("explain MODEL data.csv --row 2 --rows 5", 2, "--rows is for the first"),
    "a monitor for a model": ("monitor watch.dipedl data.csv", 1, "holds a monitor, not a model"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_mistake_in_another_command(name, run, kept, tmp_path, monkeypatch):
    arguments, code, message = OTHERS[name]
    monkeypatch.chdir(tmp_path)
    csv()(tmp_path)
    (tmp_path / "other.csv").write_text("mine")
    if "watch.dipedl" in arguments:
        made = run("monitor", kept / "model.dipedl", "data.csv", "--state", "watch.dipedl")
        assert made.exit_code in (0, 4), made.output
        said = run("inspect", "watch.dipedl").stdout
        assert "the file holds a monitor, which dipedl monitor takes as --state" in said
    before = sorted(tmp_path.iterdir())
    words = [kept / "model.dipedl" if word == "MODEL" else word for word in shlex.split(arguments)]
    one_sentence(run(*words), code, message)
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "other.csv").read_text() == "mine"


def test_rows_that_a_fit_refuses_are_a_warning_of_the_check(run, tmp_path):
    fare = passengers().fare.astype(object)
    fare[[4, 9]] = "inf"
    csv(fare=fare)(tmp_path)
    done = run("check", tmp_path / "data.csv", "--target", "survived", "--json")
    found = {one["code"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.exit_code == 3 and found["refused_rows"]["numbers"] == {"rows": 2}
    assert "row 5, column 'fare'" in found["refused_rows"]["text"]


def test_a_column_of_gaps_is_no_text_that_does_not_come_again(run, tmp_path):
    marks = [f"{n} %" for n in range(240)]
    csv(notes=None, share=marks)(tmp_path)
    arguments = ("check", tmp_path / "data.csv", "--target", "survived", "--drop", "name", "--json")
    findings = json.loads(run(*arguments).stdout)["findings"]
    remedies = {one["code"]: one["remedy"] for one in findings}
    assert remedies["many_gaps"] == "--drop notes" and remedies["text_columns"] == ""


def test_check_names_a_code_of_missing_values_as_it_is_written(run, tmp_path):
    csv(fare=lambda f: f.fare.mask(f.index % 20 == 0, -9999))(tmp_path)
    arguments = ("check", tmp_path / "data.csv", "--target", "survived", "--json")
    found = {one["code"]: one for one in json.loads(run(*arguments).stdout)["findings"]}
    assert found["far_values"]["numbers"] == {"columns": 1, "rows": 12}
    assert "--gaps -9999.0;" in found["far_values"]["remedy"]
    again = json.loads(run(*arguments, "--gaps=-9999.0").stdout)["findings"]
    assert "far_values" not in {one["code"] for one in again}


def test_ctrl_c_leaves_no_half_file(run, kept, tmp_path, monkeypatch):
    from dipedl.apps.table import score

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(score, "answer_columns", stop)
    done = run(
        "score",
        kept / "model.dipedl",
        kept / "new.csv",
        "--reasons",
        "all",
        "--out",
        tmp_path / "a.csv",
    )
    assert done.exit_code == 130 and "stopped; no file was written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_it_says_what_to_install(run, kept, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dipedl.apps.table.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("check", kept / "new.csv", "--target", "survived")
    one_sentence(done, 1, "needs the package 'pyarrow': pip install 'dipedl[tables]'")


#: Rows that cannot be used: what is made, and where and why the first of them is refused.
REFUSED = {
    "a text among numbers": (changed(4, "age", "old"), "row 4, column 'age': 'old' is no finite"),
    "an infinite number": (changed(9, "fare", "inf"), "row 9, column 'fare': 'inf' is no finite"),
    "too many fields": (text(FULL.replace("\n", "\nx,y\n", 1)), "row 1: 2 fields, where the"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_row_that_cannot_be_used_is_refused_with_its_reason(name, run, kept, tmp_path):
    make, reason = REFUSED[name]
    make(tmp_path)
    n = len(passengers()) + (name == "too many fields")
    done = run("score", kept / "model.dipedl", tmp_path / "data.csv", "--out", tmp_path / "a.csv")
    assert done.exit_code == 3, done.output
    assert f"refused: {reason}" in done.stderr
    assert f"{n} = {n - 1} answered + 1 refused" in done.stdout
    answers, refused = (pd.read_csv(tmp_path / name) for name in ("a.csv", "a.refused.csv"))
    assert sorted([*answers["row"], *refused["row"]]) == list(range(1, n + 1))


def test_rows_without_a_class_are_left_out_of_a_fit(run, tmp_path):
    changed(5, "survived", None)(tmp_path)
    arguments = ["--target", "survived", "--model", "linear", "--out", tmp_path / "m.dipedl"]
    done = run("fit", tmp_path / "data.csv", *arguments)
    assert done.exit_code == 3 and (tmp_path / "m.dipedl").exists()
    assert "refused: row 5, column 'survived': no class: the entry is missing" in done.stderr
