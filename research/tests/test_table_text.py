"""The tables as text: readable at every width, and the commands that print them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store
from typer.testing import CliRunner

from dipedl_bench.commands.run import bench as app
from dipedl_bench.results.store import Store
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.tables import table as tables
from dipedl_bench.tables.formatting import (
    difference,
    metric_list,
    metric_title,
    printed,
    set_title,
    stable,
    stable_with_sd,
    with_decimals_of,
)
from dipedl_bench.tables.markdown import markdown
from dipedl_bench.tables.table import Cell, bench_table
from dipedl_bench.tables.trivial import trivial_lines

ROOT = Path(__file__).parent.parent / "results" / "bench"
METHODS = ("dip-edl", "edl", "edl-as-published-by-the-paper", "mc-dropout", "max-softmax")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    write_synthetic_store(folder, profile="cpu", methods=METHODS)
    return folder


@pytest.fixture(scope="module")
def table(root):
    rng = np.random.default_rng(0)
    names = ("test", "ood/kmnist", "ood/omniglot", "ood/omniglot_inverted")
    images = {name: rng.random((5, 1, 4, 4)) for name in names}
    made = bench_table(write_synthetic_store(root, profile="cpu", methods=METHODS).rows())
    return replace(made, trivial=trivial_lines(images, images["test"]))


def test_marks_and_sentences(root, table, monkeypatch):
    text = markdown(table)
    assert "unexplained" in text and "±" in text
    main = text[: text.index("(not in the paper)")]
    for line in table.lines:
        for names in table.columns().values():
            assert all(f"{line.cells[name].mean:.4f} ±" in main for name in names)
    said = {"cpu": {"dip-edl": {"*": "Ten training images."}}}
    captions = captions_of("mnist").model_copy(update={"differences": said})
    monkeypatch.setattr(tables, "captions_of", lambda suite: captions)
    assert "Ten training images." in markdown(bench_table(rows_of(root)))


def rows_of(root):
    return Store(root, "mnist", "cpu").rows()


def test_markdown_is_a_table(table):
    text = markdown(table)
    blocks = [b for b in text.split("\n\n") if b.startswith("|")]
    assert len(blocks) == 2 * 4 + 1
    for block in blocks:
        cells = [len(re.split(r"(?<!\\)\|", row)) for row in block.splitlines()]
        assert len(set(cells)) == 1, block
    cell = table.lines[0].cells["accuracy"]
    assert f"paper {printed(cell)}; {difference(cell)}" in text
    assert "border ink" in text and "1,000" in text


def test_titles():
    assert metric_title("auroc/kmnist") == "AUROC"
    assert metric_title("auroc/kmnist", with_set=True) == "AUROC, K-MNIST"
    assert (
        metric_title("new/unheard", with_set=True) == "new, unheard"
        and set_title("unheard") == "unheard"
    )
    names = ["accuracy", "auroc/kmnist", "brier_ood/kmnist", "auroc/unheard"]
    assert metric_list(names) == "accuracy; on K-MNIST AUROC, OOD Brier; on unheard AUROC"


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "100"})


def test_command_table_json(root):
    done = run("table", "mnist", "--json", "--out", root)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert {m["method"] for m in data["methods"]} == set(METHODS)
    assert data["methods"][0]["cells"]["auroc/kmnist"]["paper"]["mean"] == 0.9116
    assert "no trivial detectors: no row in" in done.stderr and data["trivial"] == []


def test_command_table_prints(root):
    done = run("table", "mnist", "--profile", "cpu", "--no-trivial", "--out", root)
    assert done.exit_code == 0 and done.stderr == ""
    assert "K-MNIST: 40 images; AUPR of guessing 0.4444" in done.stdout
    assert done.stdout.startswith("## mnist")


def test_no_number_of_the_paper_stands_beside_a_trial_of_one_epoch(tmp_path):
    trial, whole = (
        bench_table(write_synthetic_store(tmp_path, profile=profile, methods=METHODS).rows())
        for profile in ("smoke", "cpu")
    )
    assert whole.beside_paper and not trial.beside_paper
    assert "paper" not in markdown(trial)
    assert [line.name for line in trial.lines] == [line.name for line in whole.lines]


@pytest.mark.parametrize("what", ["ablation", "gamma", "sigma"])
def test_command_sweep(root, what):
    text = run("sweep", "mnist", what, "--out", root)
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith("dip-edl, seeds ")
    assert ("float32" in text.stdout) == (what == "ablation")
    data = json.loads(run("sweep", "mnist", what, "--json", "--out", root).stdout)
    assert len(data) == {"ablation": 7, "gamma": 7, "sigma": 6}[what]
    assert all("auroc/kmnist" in cells for cells in data.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "cifar"], "unknown suite 'cifar', did you mean 'cifar10'?"),
        (["table", "mnist", "--profile", "smoke"], "no results of suite 'mnist', profile 'smoke'"),
        (["sweep", "mnist", "nu"], "unknown sweep 'nu'; known: "),
        (
            ["sweep", "mnist", "gamma", "--method", "edl"],
            "a DIP-EDL with a classifier of the suite",
        ),
        (["sweep", "mnist", "gamma", "--method", "dip"], "unknown method 'dip'"),
    ],
)
def test_mistakes_are_one_line(root, arguments, message):
    done = run(*arguments, "--out", root)
    assert done.exit_code == 2 and message in done.stderr, done.output
    assert "Traceback" not in done.output and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [["table"], ["sweep", "gamma"], ["report"]])
def test_of_several_profiles_the_first_of_the_page_is_taken_and_told(tmp_path, command):
    name, *rest = command
    for profile in ("smoke", "paper", "cpu"):
        write_synthetic_store(tmp_path, profile=profile, methods=["dip-edl"], seeds=[10])
    options = ["--file", tmp_path / "page.html"] if name == "report" else []
    done = run(name, "mnist", *rest, "--out", tmp_path, *options)
    assert done.exit_code == 0, done.output
    told = "dipedl-bench: this is profile cpu; with --profile also: paper, smoke"
    assert done.stderr.splitlines()[0] == told
    if name == "report":
        assert "profile cpu" in (tmp_path / "page.html").read_text()
    else:
        named = run(name, "mnist", *rest, "--profile", "cpu", "--out", tmp_path)
        assert done.stdout == named.stdout and "this is profile" not in named.stderr


def test_profiles_that_no_page_ranks_must_be_chosen_from(tmp_path):
    for profile in ("smoke", "mine"):
        write_synthetic_store(tmp_path, profile=profile, methods=["edl"], seeds=[10])
    done = run("table", "mnist", "--out", tmp_path)
    assert done.exit_code == 2 and "choose one with --profile" in done.stderr


@pytest.mark.parametrize("suite", ["mnist", "cifar10", "spectra"])
def test_published_results_need_no_profile(suite):
    done = run("table", suite, "--no-trivial", "--json", "--out", ROOT)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["profile"] == captions_of(suite).page.profiles[0]


@pytest.mark.parametrize(
    ("sd", "text", "spread"),
    [
        (0.00049, "0.9136", "0.0005"),
        (0.0005, "0.914", "0.001"),
        (0.0049, "0.914", "0.005"),
        (0.005, "0.91", "0.01"),
    ],
)
def test_a_mean_alone_shows_the_digits_that_other_seeds_share(sd, text, spread):
    cell = Cell(0.91364, sd, (0.91364 - sd, 0.91364 + sd))
    assert stable(cell) == text
    assert stable_with_sd(cell) == f"{text} ±{spread}"


@pytest.mark.parametrize(
    ("metric", "interval", "text"),
    [
        ("auroc/kmnist", (0.911, 0.916), "0.91"),
        ("auroc/kmnist", (0.912, 0.916), "0.914"),
        ("accuracy", (0.903, 0.924), "0.91"),
        ("accuracy", (0.904, 0.923), "0.914"),
        ("accuracy", None, "0.9136"),
    ],
)
def test_of_a_single_seed_the_rows_say_how_many_digits(metric, interval, text):
    single = Cell(0.91364, 0.0, (0.91364,), over_images=interval, metric=metric)
    assert stable(single) == stable_with_sd(single) == text


@pytest.mark.parametrize(("seeds", "text"), [(2, "0.91"), (3, "0.9136")])
def test_two_seeds_that_agree_by_chance_do_not_count_as_stable(seeds, text):
    assert stable(Cell(0.91364, 0.0, (0.91364,) * seeds, over_images=(0.90, 0.925))) == text


def test_a_difference_has_the_decimals_of_the_less_stable_side():
    sure, unsure = (Cell(0.9, sd, (0.9 - sd, 0.9 + sd)) for sd in (0.0, 0.02))
    assert with_decimals_of(0.0366, sure) == "0.0366"
    assert with_decimals_of(0.0366, sure, unsure) == "0.04"
