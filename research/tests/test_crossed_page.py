"""The page of a crossed suite and its table: they say what the rows say."""

import sys
from pathlib import Path
from statistics import mean

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from test_crossed_table import invented
from typer.testing import CliRunner

from dipedl_bench import Store
from dipedl_bench.commands.run import bench as app
from dipedl_bench.spec.suite import load_suite
from dipedl_bench.tables.table import bench_table

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from results import by_seed, measures_and_summary


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


def test_measures_and_one_table_of_all_methods():
    listed, _, parts, counted, table, _, choices = measures_and_summary(bench_table(invented()))
    assert listed.count("- **") == len(load_suite("defaults").measures) and "**not run**" in listed
    assert parts.splitlines()[-1].startswith("| all | 5 | ")  # data sets of no part
    assert counted.startswith("All methods over ") and counted.endswith(" 3 seeds:")
    assert table.startswith("| method | lines | AUROC |") and "| Temperature |" in table
    assert "| forests | 2 | " in choices and choices.splitlines()[-1].startswith("| all | 5 | ")


def test_table_of_a_crossed_suite(stored):
    text = dipedl("table", "defaults", "--out", stored)
    assert text.exit_code == 0 and "All methods, over all lines" in text.stdout
    assert text.stdout.startswith("## What was asked") and "| a / x, forest |" in text.stdout
    assert '"summary"' in dipedl("table", "defaults", "--out", stored, "--json").stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_rows_without_the_bare_method_make_no_table(tmp_path, options):
    store_of([row for row in invented() if row["group"] != "bare"], tmp_path)
    result = dipedl("table", "defaults", "--profile", "smoke", "--out", tmp_path, *options)
    assert result.exit_code == 2 and "no method of group 'bare'" in result.stderr
    assert not result.stdout


def test_means_of_every_seed_stand_beside_one_another():
    rows = invented()
    rows = [r for r in rows if r["seed"] == 1 or r["method"] in ("max-softmax", "default")]
    (said, table) = by_seed(rows)
    assert "seeds 1, 2, 3" in said
    cells = [line.split("|")[1:-1] for line in table.splitlines()]
    assert [line[0].strip() for line in cells[2:]] == ["Max-Softmax", "Default"]
    for column, seed in zip((2, 3, 4), (1, 2, 3), strict=True):
        of_seed = [r for r in rows if r["seed"] == seed and r["method"] == "default"]
        aurocs = [v for r in of_seed for name, v in r["metrics"].items() if "auroc/" in name]
        assert float(cells[3][column]) == pytest.approx(mean(aurocs), abs=5.1e-4)


def test_of_one_seed_there_is_nothing_seed_by_seed():
    assert not list(by_seed(invented(seeds=(1,))))
