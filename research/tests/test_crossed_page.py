"""The report of a crossed suite and its commands: they say what the rows say."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from test_crossed_table import invented
from typer.testing import CliRunner

from dipedl_bench import Store
from dipedl_bench.commands.run import bench as app
from dipedl_bench.report.page import render
from dipedl_bench.tables.pairs import pair_title, values
from dipedl_bench.tables.table import bench_table

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from results import measures_and_summary


def dipedl(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def stored(tmp_path):
    store_of(invented(), tmp_path / "out")
    return tmp_path / "out"


def store_of(rows, out):
    store = Store(out, "defaults", "smoke")
    for row in rows:
        store.append(row)
    return store


def test_the_page_holds_every_pair_and_loads_nothing(tmp_path):
    rows = invented()
    page = render(store_of(rows, tmp_path))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert not re.search(r'(src|href)="(?!#|data:)', page) and "http" not in page.split("<svg")[0]
    pairs = bench_table(rows).pairs
    for pair in pairs.index:
        assert pair_title(pair) in page
    assert f"{values(pairs, 'auroc', 'default').iloc[0]:.3f}" in page
    assert page.count('class="verdict') >= 10
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)


def test_measures_and_one_table_of_all_methods():
    listed, _, parts, counted, table = measures_and_summary(bench_table(invented()))
    assert listed.count("- **") == 13 and "**not run**" in listed
    assert parts.splitlines()[-1].startswith("| all | 5 | ")  # data sets of no part
    assert counted.startswith("All methods over ") and counted.endswith(" 3 seeds:")
    assert table.startswith("| method | lines | AUROC |") and "| Temperature |" in table


def test_titles_of_others_are_escaped(tmp_path):
    rows = [{**row, "title": "<b>x</b>"} for row in invented()]
    page = render(store_of(rows, tmp_path))
    assert "<b>x</b>" not in page and "&lt;b&gt;" in page


def test_the_page_of_results_says_what_was_run():
    named = {"a": "digits-8", "b": "wine-1"}
    rows = [
        {**row, "dataset": named[row["dataset"]], "classifier": "mlp"}
        for row in invented()
        if row["classifier"] == "net"
    ]
    listed, _, parts, counted, table = measures_and_summary(bench_table(rows))
    assert listed.count("- **") == 13 and "**not run**" in listed
    assert "| of the design | 3 | " in parts and "never looked at" not in parts
    assert counted == "All methods over 3 lines: 2 known data sets, 2 classifiers on them, 3 seeds:"
    assert table.startswith("| method | lines | AUROC |") and "| Temperature | 3 |" in table


def test_table_and_report_of_a_crossed_suite(stored, tmp_path):
    text = dipedl("table", "defaults", "--out", stored)
    assert text.exit_code == 0 and "All methods, over all lines" in text.stdout
    assert text.stdout.startswith("## What was asked") and "| a / x, forest |" in text.stdout
    assert '"summary"' in dipedl("table", "defaults", "--out", stored, "--json").stdout
    file = tmp_path / "page.html"
    assert dipedl("report", "defaults", "--out", stored, "--file", file).exit_code == 0
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "default"], "unknown suite 'default', did you mean 'defaults'?"),
        (["run", "defaults", "--datasets", "wine"], "did you mean 'wine-1'?"),
        (["run", "defaults", "--classifiers", "forrest"], "did you mean 'forest'?"),
        (["run", "defaults", "--methods", "defalt"], "did you mean 'default'?"),
        (["run", "defaults", "--profile", "cqu"], "did you mean 'cpu'?"),
        (
            ["run", "mnist", "--datasets", "wine-1"],
            "datasets must be left out: suite 'mnist' has one data set per profile",
        ),
        (["table", "defaults"], "no results of suite 'defaults'"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    done = dipedl(*arguments, "--out", tmp_path)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("dipedl-bench: ") and done.stderr.count("\n") == 1
