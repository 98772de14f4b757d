"""The study's page and its commands: they say what the rows say."""

import re

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from dipedl.bench.honest.table import study_table
from dipedl.bench.pages.measures import measures_and_summary
from test_study_table import invented
from tiny_study import TINY_STUDY
from typer.testing import CliRunner

from dipedl.bench import Store
from dipedl.bench.report.page import render
from dipedl.cli.app import app


def dipedl(*arguments):
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


@pytest.fixture
def stored(tmp_path):
    stored_in(tmp_path / "out", invented())
    return tmp_path / "out"


def stored_in(root, rows):
    store = Store(root, "invented", "smoke")
    for row in rows:
        digest = f"{row['config_hash']} {row['dataset']} {row['classifier']}"
        store.append({**row, "config_hash": digest})
    return store


def test_the_page_holds_every_line_and_loads_nothing(tmp_path):
    rows = invented()
    page = render(stored_in(tmp_path, rows))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert not re.search(r'(src|href)="(?!#|data:)', page) and "http" not in page.split("<svg")[0]
    table = study_table(rows)
    for line in table.lines:
        assert str(line) in page
    value = table.value(table.lines[0], "default", "auroc")
    assert f"{value:.3f}" in page
    assert page.count('class="verdict') >= 10


def test_titles_of_others_are_escaped(tmp_path):
    rows = [{**row, "title": "<b>x</b>"} for row in invented()]
    page = render(stored_in(tmp_path, rows))
    assert "<b>x</b>" not in page and "&lt;b&gt;" in page


def test_the_page_of_results_says_what_was_run():
    named = {"a": "digits-8", "b": "wine-1"}
    rows = [
        {**row, "suite": "honest", "dataset": named[row["dataset"]], "classifier": "mlp"}
        for row in invented()
        if row["classifier"] == "net"
    ]
    listed, counted, table = measures_and_summary(rows)
    assert listed.count("- **") == 10 and "**not run**" in listed
    assert counted == "All methods over 3 lines: 2 known data sets, 2 classifiers on them, 3 seeds:"
    assert table.startswith("| method | lines | AUROC |") and "| Temperature | 3 |" in table


def test_table_and_report_of_a_study(stored, tmp_path):
    text = dipedl("table", "invented", "--out", stored)
    assert text.exit_code == 0 and "All methods, over all lines" in text.stdout
    assert all(len(line) <= 80 for line in text.stdout.splitlines())
    markdown = dipedl("table", "invented", "--out", stored, "--markdown").stdout
    assert markdown.startswith("## What was asked") and "| a / x, forest |" in markdown
    assert '"summary"' in dipedl("table", "invented", "--out", stored, "--json").stdout
    file = tmp_path / "page.html"
    assert dipedl("report", "invented", "--out", stored, "--file", file).exit_code == 0
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_study_runs_from_its_file(tmp_path):
    path, out = tmp_path / "tiny.toml", tmp_path / "out"
    path.write_text(TINY_STUDY)
    options = ("--datasets", "flowers", "--seeds", "1", "--methods", "energy", "--out", out)
    done = dipedl("run", path, *options)
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "1 methods done, 0 were there before.\n"
    assert "flowers, logistic, seed 1" in done.stderr
    again = dipedl("run", path, *options, "--quiet")
    assert (again.stdout, again.stderr) == ("0 methods done, 1 were there before.\n", "")
    assert dipedl("methods", path).stdout.splitlines()[0].split() == [
        "max-softmax",
        "max",
        "probability",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "honst"], "unknown suite 'honst', did you mean 'honest'?"),
        (["run", "honest", "--datasets", "wine"], "did you mean 'wine-1'?"),
        (["run", "honest", "--classifiers", "forrest"], "did you mean 'forest'?"),
        (["run", "honest", "--methods", "defalt"], "did you mean 'default'?"),
        (["run", "honest", "--profile", "cqu"], "did you mean 'cpu'?"),
        (["run", "mnist", "--datasets", "wine-1"], "--datasets is for a study"),
        (["table", "honest"], "no results of suite 'honest'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    done = dipedl(*arguments, "--out", tmp_path)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("dipedl: ") and done.stderr.count("\n") == 1
