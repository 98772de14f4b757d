"""``dipedl-bench``: what may be typed, what is printed, and exit codes."""

from pathlib import Path

import pytest
from synthetic_store import write_synthetic_store
from typer.testing import CliRunner

from dipedl_bench import load_rows
from dipedl_bench.commands.run import bench as app
from dipedl_bench.running import runner as bench_runner
from dipedl_bench.running.runner import RunResult, StoppedError


def dipedl(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_run_prints_progress_apart_from_the_result(suite, tmp_path):
    out = tmp_path / "out"
    done = dipedl("run", suite, "--methods", "energy", "--seeds", "3", "--out", out)
    assert done.exit_code == 0
    assert done.stdout == "1 new rows, 0 were there before.\n"
    assert "seed 3  classifier net" in done.stderr
    assert [(r["method"], r["seed"]) for r in load_rows("tiny", out=out)] == [("energy", 3)]
    again = dipedl("run", suite, "--methods", "energy", "--seeds", "3", "--out", out, "--quiet")
    assert (again.stdout, again.stderr) == ("0 new rows, 1 were there before.\n", "")


README = Path(__file__).parents[2] / "README.md"


def test_seeds_between_commas_reach_the_run(monkeypatch):
    given = {}
    monkeypatch.setattr(bench_runner, "run", lambda suite, **o: given.update(o) or RunResult())
    options = ("--seeds", "10,20,30,40", "--profile", "cpu", "--budget", 60)
    assert dipedl("run", "mnist", "--methods", "edl,dip-edl", *options).exit_code == 0
    assert given["seeds"] == [10, 20, 30, 40]
    assert given["methods"] == ["edl", "dip-edl"]
    assert (given["profile"], given["budget"]) == ("cpu", 60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "mnst"], "unknown suite 'mnst', did you mean 'mnist'?"),
        (["run", "mnist", "--methods", "dip-edll"], "did you mean 'dip-edl'?"),
        (["run", "mnist", "--profile", "cqu"], "did you mean 'cpu'?"),
        (["run", "mnist", "--seeds", "x"], "--seeds must be integers >= 0 between commas, got 'x'"),
        (["run", "mnist", "--budget", "0"], "budget must be > 0"),
        (
            ["run", "nowhere/x.toml"],
            "no suite file 'nowhere/x.toml'; pass the path of your TOML file",
        ),
        (["run", "lamost"], "suite 'lamost' must be given a profile with --profile: cpu, paper"),
        (["verify", "mnist", "--profile", "cqu"], "unknown profile 'cqu', did you mean 'cpu'?"),
        (["merge", README], "must hold the row of a run in each line, but line 1"),
        (["run", "mnist", "--data", "nowhere"], "--data must be the folder that holds mnist/"),
        (["toys", "--points", "3"], "--points must be even"),
        (["sweep", "mnist", "gama"], "unknown sweep 'gama', did you mean 'gamma'?"),
        (["table", "mnsit"], "unknown suite 'mnsit', did you mean 'mnist'?"),
        (["table", "honest/mnist"], "unknown suite 'honest/mnist', did you mean 'mnist'?"),
        (["table", "mnist", "--csv", "--latex"], "choose one of --json, --latex, --markdown and"),
        (["table", "mnist", "--methods", "edl"], "--methods and --metrics are of --latex"),
        (["table", "defalts"], "unknown suite 'defalts', did you mean 'defaults'?"),
        (["page", "--file", "nowhere/x.html"], "/nowhere does not exist; create it"),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(arguments, message, tmp_path):
    done = dipedl(*arguments, "--out", tmp_path)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("dipedl-bench: ") and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", [["run", "mnist"], ["toys"]])
def test_a_file_for_a_folder_of_results_is_refused(command, tmp_path):
    (tmp_path / "file").touch()
    for out in ("file", "file/below"):
        done = dipedl(*command, "--out", tmp_path / out)
        assert done.exit_code == 2 and not done.stdout
        assert f"--out must be a folder that can be written to, got '{tmp_path / out}'" in (
            done.stderr
        )


def test_failures_and_what_the_budget_left_are_told_and_failures_exit_with_1(monkeypatch):
    result = RunResult(
        rows=[{}],
        failed={("edl", 10): "out of memory", ("knn", 10): "net: x", ("ddu", 10): "net: x"},
        left=[("knn", 10), ("knn", 20)],
    )
    monkeypatch.setattr(bench_runner, "run", lambda suite, **options: result)
    done = dipedl("run", "mnist")
    assert done.exit_code == 1
    assert "no row of edl, seed 10: out of memory" in done.stderr
    assert "no row of knn, ddu, seed 10: net: x" in done.stderr and done.stderr.count("net") == 1
    assert "Rows that the budget left: knn (10), knn (20).\nTo go on: " in done.stdout
    result.failed.clear()
    assert dipedl("run", "mnist").exit_code == 0
    result.left.extend(("edl", seed) for seed in range(20))
    assert "edl (9), and 10 more.\nTo go on: " in dipedl("run", "mnist").stdout


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (StoppedError("no space left for results in 'x'"), 2, "dipedl-bench: no space left"),
        (KeyboardInterrupt(), 130, "Stopped. What is finished is kept; to go on: "),
    ],
)
def test_a_run_that_is_stopped_says_so(monkeypatch, error, code, message):
    def run(suite, **options):
        raise error

    monkeypatch.setattr(bench_runner, "run", run)
    done = dipedl("run", "mnist")
    assert done.exit_code == code
    assert message in done.stderr


def test_a_sweep_needs_a_method_with_a_density(tmp_path):
    write_synthetic_store(tmp_path, methods=["edl"], seeds=[10], n_resamples=0)
    done = dipedl("sweep", "mnist", "gamma", "--method", "edl", "--out", tmp_path)
    assert done.exit_code == 2
    assert "method must be a DIP-EDL with a classifier of the suite" in done.stderr
    done = dipedl("sweep", "mnist", "gamma", "--method", "dip-ed", "--out", tmp_path)
    assert "unknown method 'dip-ed', did you mean 'dip-edl'?" in done.stderr
    done = dipedl("sweep", "mnist", "gamma", "--out", tmp_path)
    assert "run it first: dipedl-bench run mnist --profile smoke --methods dip-edl" in done.stderr


def test_a_torn_line_is_told_once(tmp_path):
    store = write_synthetic_store(tmp_path, methods=["edl"], seeds=[10], n_resamples=0)
    with (store.folder / "rows.jsonl").open("a") as file:
        file.write('{"suite": "mn')
    done = dipedl("table", "mnist", "--out", tmp_path, "--no-trivial")
    assert done.exit_code == 0
    assert done.stderr.count("is damaged") == done.stderr.count("\n") == 1
    assert done.stderr.startswith("dipedl-bench: ")
