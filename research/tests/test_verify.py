"""Published rows are trained again: what agrees, what does not, and what cannot be compared."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dipedl_bench import load_rows, load_suite
from dipedl_bench.commands.run import bench as app
from dipedl_bench.results.receipt import receipt
from dipedl_bench.results.store import Store
from dipedl_bench.running import verify as module
from dipedl_bench.running.runner import RunResult, StoppedError, run
from dipedl_bench.running.verify import EXACT
from dipedl_bench.spec.plan import method_parts

RESULTS = Path(__file__).parent.parent / "results" / "bench"


def dipedl(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def rows(suite):
    """One row as a run on this machine would have written it."""
    (part,) = method_parts(load_suite(suite), "smoke", ["energy"], "tiny.toml")
    head = {"suite": "tiny", "profile": "smoke", "method": "energy", "title": "Energy", "seed": 1}
    names = ("accuracy", "nll", "recall_3", "auroc/kmnist", "errors_avoided_10")
    metrics = {"metrics": {name: 0.5 for name in names}, "intervals": {}}
    cost = {"n": {}, "seconds": {}, "cpu_seconds": {}}
    head |= {"config": part.config, "config_hash": part.digest}
    return [{**head, **metrics, **cost, **receipt()}]


def published(out, *rows):
    store = Store(out, "tiny", "smoke")
    for row in rows:
        store.append(row)
    return out


@pytest.fixture
def again(monkeypatch, rows):
    """Instead of a training: the row as it was, changed."""
    calls = []

    def instead(**changes):
        def run_instead(cells, store, deadline, say):
            calls.append([(cell.heads[0]["method"], cell.seed) for cell in cells])
            published(store.root, {**rows[0], **changes})
            return RunResult()

        monkeypatch.setattr(module, "run_cells", run_instead)
        return calls

    return instead


@pytest.mark.slow
def test_a_row_of_this_machine_is_made_again_bit_by_bit(suite, tmp_path):
    """The real thing, in processes of their own; results stay as they are."""
    assert not run(suite, out=tmp_path, methods=["energy"], seeds=[1]).failed
    before = sorted(tmp_path.rglob("*"))
    done = dipedl("verify", suite, "--methods", "energy", "--out", tmp_path, "--profile", "smoke")
    assert done.exit_code == 0, done.stderr
    n = len(load_rows("tiny", out=tmp_path)[0]["metrics"])
    assert f"energy, seed 1: {n} of {n} metrics agree (the same machine, versions" in done.stdout
    assert sorted(tmp_path.rglob("*")) == before


def test_a_number_that_moved_is_named(suite, rows, again, tmp_path):
    out = published(tmp_path, *rows)
    metrics = {**rows[0]["metrics"], "accuracy": rows[0]["metrics"]["accuracy"] + 2 * EXACT}
    calls = again(metrics=metrics)
    options = ("--profile", "smoke", "--seed", 1, "--methods", "energy", "--out", out)
    done = dipedl("verify", suite, *options)
    assert done.exit_code == 1 and "tolerance 1e-09" in done.stdout
    assert calls[0] == [("energy", 1)]
    told = json.loads(dipedl("verify", suite, *options, "--json").stdout)
    assert [one["method"] for one in told] == ["energy"] and not told[0]["agrees"]
    off = [name for name, one in told[0]["metrics"].items() if not one["agrees"]]
    assert off == ["accuracy"]


@pytest.mark.parametrize(
    "other",
    [
        {"instructions": "sse2"},
        {"device": "2 x Z80"},
        {"threads": 64},
        {"blas": "Z80"},
        {"gpu": "NVIDIA A1"},
    ],
)
def test_another_kind_of_machine_or_number_of_threads_has_the_looser_tolerance(
    suite, rows, again, tmp_path, other
):
    out = published(tmp_path, {**rows[0], **other})
    allowed = {name: module.tolerance_of(name) for name in rows[0]["metrics"]}
    again(metrics={k: v + 0.9 * allowed[k] for k, v in rows[0]["metrics"].items()})
    (found,) = module.verify(suite, profile="smoke", methods=["energy"], out=out)
    assert found["agrees"] and not found["same"] and found["then"] != found["now"]
    again(metrics={k: v + 1.1 * allowed[k] for k, v in rows[0]["metrics"].items()})
    (found,) = module.verify(suite, profile="smoke", methods=["energy"], out=out)
    assert not any(of["agrees"] for of in found["metrics"].values())


def test_every_metric_of_published_rows_has_a_tolerance():
    names = {
        name
        for suite in ("mnist", "spectra")
        for row in load_rows(suite, out=RESULTS)
        for name in row["metrics"]
    }
    assert all(module.tolerance_of(name) > EXACT for name in names)
    with pytest.raises(KeyError):
        module.tolerance_of("new_metric")


@pytest.mark.parametrize(
    "other", [{"threads": 64}, {"instructions": "sse2"}, {"blas": "Z80"}, {"resumed": True}]
)
def test_it_is_the_training_of_a_row_that_must_be_of_one_kind_not_its_writing(rows, other):
    part = receipt() | {"resumed": False}
    row = {**rows[0], "own": {}, "parts": {"classifier": part}}
    elsewhere = {**row, "parts": {"classifier": {**part, **other}}}
    assert module.conditions_of(row) == module.conditions_of(dict(row)) is not None
    assert module.conditions_of(row) != module.conditions_of(elsewhere)
    assert (module.machines_of(row) == module.machines_of(elsewhere)) == ("resumed" in other)


def test_other_settings_are_told_and_nothing_is_trained(suite, rows, again, tmp_path):
    config = json.loads(json.dumps(rows[0]["config"]))
    config["below"]["classifier"]["arguments"]["training"]["settings"]["amp"] = True
    out = published(tmp_path, {**rows[0], "config": config, "config_hash": "older"})
    calls = again()
    done = dipedl("verify", suite, "--methods", "energy", "--out", out)
    assert done.exit_code == 1 and not calls
    assert "`training.amp` was true and is false now" in done.stdout


def test_what_cannot_be_verified_says_what_to_do(suite, rows, again, tmp_path, monkeypatch):
    def refused(*options, out=tmp_path):
        done = dipedl("verify", suite, "--out", out, *options)
        assert done.exit_code == 2 and not done.stdout
        return done.stderr

    assert "no results of suite 'tiny'" in refused(out=tmp_path / "none")
    (tmp_path / "empty/tiny/smoke").mkdir(parents=True)
    (tmp_path / "empty/tiny/smoke/rows.jsonl").touch()
    assert "no results of suite 'tiny'" in refused(out=tmp_path / "empty")
    out = published(tmp_path / "rows", *rows)
    assert "with seed 9 to verify; those chosen have the seeds [1]" in refused(
        "--seed", "9", out=out
    )
    assert "no row of edl to verify; there are rows of energy (seeds [1])" in refused(
        "--methods", "edl", out=out
    )
    assert "did you mean 'energy'?" in refused("--methods", "enrgy", out=out)
    assert "has one data set per profile" in refused("--datasets", "wine", out=out)
    newer = {**rows[0], "config": {**rows[0]["config"], "format": 9}}
    assert "a row of format 9" in refused(out=published(tmp_path / "newer", newer))

    def no_data(*_, **__):
        raise StoppedError("mnist/train-images is missing; download it with")

    monkeypatch.setattr(module, "run_cells", no_data)
    assert "mnist/train-images is missing" in refused(out=out)


@pytest.mark.parametrize("named", [True, False])
def test_missing_files_of_spectra_are_told_before_anything_runs(tmp_path, monkeypatch, named):
    """Of the profile that counts most, since none is named; it has rows beside two others."""
    monkeypatch.setattr("dipedl_bench.running.runner.run_in_process", None)
    monkeypatch.setenv("DIPEDL_CACHE", str(tmp_path))
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path) if named else "")
    done = dipedl("verify", "spectra", "--methods", "max-softmax", "--out", RESULTS)
    assert done.exit_code == 2 and not done.stdout
    profile, *missing = done.stderr.splitlines()
    assert (
        profile == "dipedl-bench: this is profile scarce; with --profile also: cpu, gpu, published"
    )
    assert "'spectra/real_spectra.npz'" in missing[-1]


def test_of_a_crossed_suite_changed_settings_are_named_and_only_the_others_planned(
    tmp_path, monkeypatch
):
    rows = load_rows("defaults", out=RESULTS)
    chosen = [
        row
        for row in rows
        if row["dataset"] == "digits-0"
        and row["classifier"] in ("forest", "logistic")
        and row["method"] in ("default", "knn")
    ]
    assert len({(r["classifier"], r["method"]) for r in chosen}) == 4
    changed = json.loads(json.dumps(chosen[0]["config"]))
    changed["method"]["answers"] = "none"
    store = Store(tmp_path, "defaults", "cpu")
    for row in [{**chosen[0], "config": changed, "config_hash": "older"}, *chosen[1:]]:
        store.append(row)
    planned = []
    monkeypatch.setattr(module, "run_cells", lambda todo, *_: planned.extend(todo) or RunResult())
    found = module.verify("defaults", methods=["default", "knn"], out=tmp_path)
    told = {(one["classifier"], one["method"]): one["why"] for one in found}
    first = (chosen[0]["classifier"], chosen[0]["method"])
    assert "`method.answers` was" in told.pop(first)
    asked = {(head["classifier"], head["method"]) for cell in planned for head in cell.heads}
    assert asked == told.keys() and set(told.values()) == {"it gave no row"}
