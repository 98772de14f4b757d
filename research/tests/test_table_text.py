"""The tables as text: readable at every width, and the commands that print them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store
from typer.testing import CliRunner

from dipedl_bench.commands.run import bench as app
from dipedl_bench.tables.blocks import markdown
from dipedl_bench.tables.formatting import both_texts
from dipedl_bench.tables.table import bench_table
from dipedl_bench.tables.trivial import trivial_lines

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


def test_markdown_is_a_table(table):
    text = markdown(table)
    blocks = [b for b in text.split("\n\n") if b.startswith("|")]
    assert len(blocks) == 2 * 4 + 2
    for block in blocks:
        cells = [len(re.split(r"(?<!\\)\|", row)) for row in block.splitlines()]
        assert len(set(cells)) == 1, block
    assert both_texts(table.lines[0].cells["accuracy"]) in text
    assert "border ink" in text and "1,000" in text


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "100"})


def test_command_table_json(root):
    done = run("table", "mnist", "--json", "--out", root)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert {m["method"] for m in data["methods"]} == set(METHODS)
    assert data["methods"][0]["cells"]["auroc/kmnist"]["paper"]["mean"] == 0.9116
    assert "no trivial detectors: no row in" in done.stderr and data["trivial"] == []


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
    head, rule, *steps = text.stdout.split("## K-MNIST\n\n")[1].split("\n\n")[0].splitlines()
    assert len(steps) == {"ablation": 7, "gamma": 7, "sigma": 6}[what]
    assert head.startswith(f"| {what} |") and " AUROC |" in head and rule.startswith("| --- |")


@pytest.mark.parametrize("command", [["table"], ["sweep", "gamma"]])
def test_of_several_profiles_the_first_of_the_page_is_taken_and_told(tmp_path, command):
    name, *rest = command
    for profile in ("smoke", "paper", "cpu"):
        write_synthetic_store(tmp_path, profile=profile, methods=["dip-edl"], seeds=[10])
    done = run(name, "mnist", *rest, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    told = "dipedl-bench: this is profile cpu; with --profile also: paper, smoke"
    assert done.stderr.splitlines()[0] == told
    named = run(name, "mnist", *rest, "--profile", "cpu", "--out", tmp_path)
    assert done.stdout == named.stdout and "this is profile" not in named.stderr
