"""What a file says of its table, forged: every command names the file and ends with 1."""

import copy
import json
from pathlib import Path

import pytest

pytest.importorskip("safetensors")
pytest.importorskip("typer")

from typer.testing import CliRunner

import dipedl
from dipedl.apps.cli.app import app
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.table_model import table_model
from passengers import keep_model, passengers


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("pyarrow")
    made = keep_model(tmp_path_factory.mktemp("forged"))
    passengers(60, seed=1).to_parquet(made / "new.parquet", index=False)
    return made


COMMANDS = {
    "inspect": ("inspect", "MODEL"),
    "inspect --json": ("inspect", "MODEL", "--json"),
    "explain": ("explain", "MODEL", "new.csv"),
    "score": ("score", "MODEL", "new.csv", "--out", "a.csv"),
    "score in parts": ("score", "MODEL", "new.parquet", "--out", "a", "--workers", "1"),
    "score --dry-run": ("score", "MODEL", "new.parquet", "--out", "b", "--dry-run"),
    "report": ("report", "MODEL", "new.csv", "--out", "r.html"),
    "monitor": ("monitor", "MODEL", "new.csv", "--reference", "passengers.csv"),
    "merge": ("merge", "MODEL", "model.dipedl", "--out", "m.dipedl"),
    "fit --like": ("fit", "new.parquet", "--like", "MODEL", "--out", "l.dipedl"),
}


def without(*path):
    def change(table):
        *outer, last = path
        for name in outer:
            table = table[name]
        del table[last]

    return change


def put(value, *path):
    def change(table):
        *outer, last = path
        for name in outer:
            table = table[name]
        table[last] = value

    return change


CHANGES = {
    "no columns": without("columns"),
    "no facts": without("facts"),
    "no target": without("target"),
    "no held-out rows": without("facts", "held_out"),
    "no accuracy": without("facts", "held_out", "accuracy"),
    "no name": without("columns", 0, "name"),
    "no kind": without("columns", 0, "kind"),
    "target": put(7, "target"),
    "columns": put({"a": 1}, "columns"),
    "column": put("a", "columns", 0),
    "name": put(None, "columns", 0, "name"),
    "kind": put("regex", "columns", 0, "kind"),
    "decimal": put("", "columns", 0, "decimal"),
    "date": put("%Q", "columns", 0, "date"),
    "levels": put([[]], "columns", 0, "levels"),
    "dates": put([10**400], "columns", 0, "dates"),
    "missing": put([], "columns", 0, "missing"),
    "more": put(1, "columns", 0, "more"),
    "file": put(None, "facts", "file"),
    "learned": put("1", "facts", "learned"),
    "rows": put(10**30, "facts", "rows"),
    "classes": put([], "facts", "classes"),
    "gaps": put(5, "facts", "gaps"),
    "images": put(["a"], "facts", "images"),
    "accuracy": put("high", "facts", "held_out", "accuracy"),
    "twice": lambda table: table["columns"].append(table["columns"][0]),
}
TEXTS = {
    "empty": "",
    "cut": '{"target": "a"',
    "list": "[]",
    "null": "null",
    "deep": "[" * 100_000,
    "digits": "9" * 5000,
}


@pytest.fixture(scope="module")
def model(folder):
    """The classifier of the table, not to be changed."""
    return dipedl.load(folder / "model.dipedl")


def changed(change, model):
    """Another text than what a model says of its table."""
    if isinstance(change, str):
        return change
    table = json.loads(model.table_)
    change(table)
    return json.dumps(table)


def forged(folder, change):
    """A file with another text beside the classifier."""
    model = dipedl.load(folder / "model.dipedl")
    model.table_ = changed(change, model)
    model.save(folder / "forged.dipedl")
    return "forged.dipedl"


def ended(words, code=1):
    found = CliRunner().invoke(app, words)
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert found.exit_code == code, found.output
    return found.output


@pytest.mark.parametrize("change", [*CHANGES, *TEXTS])
def test_no_text_is_taken_for_a_table(model, change):
    model = copy.copy(model)
    model.table_ = changed((CHANGES | TEXTS)[change], model)
    with pytest.raises(UserError, match=r"forged\.dipedl"):
        table_model(model, Path("forged.dipedl"))


@pytest.mark.parametrize("change", ["no facts", "deep"])
def test_no_command_ends_in_a_traceback(folder, monkeypatch, change):
    monkeypatch.chdir(folder)
    name = forged(folder, (CHANGES | TEXTS)[change])
    for words in COMMANDS.values():
        assert name in ended([name if word == "MODEL" else word for word in words])


def test_services_refuse_it_too(folder):
    from dipedl.apps.adapters.table_answers import TableAnswers

    name = forged(folder, CHANGES["no facts"])
    with pytest.raises(UserError, match="facts"):
        TableAnswers(dipedl.load(folder / name))


def test_numbers_of_rows_that_are_too_few_or_none(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = dipedl.load(folder / "model.dipedl")
    rows = model.table_rows_
    for changed, told in ((rows[:3], "lists 3 training rows"), (rows * 0.5, "no numbers")):
        model.table_rows_ = changed
        model.save(folder / "forged.dipedl")
        assert told in ended(["explain", "forged.dipedl", "new.csv"])
