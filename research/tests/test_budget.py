"""A budget ends in the middle of a training, and the same command goes on with it."""

import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from tiny_crossed import TINY_CROSSED
from tiny_suite import TINY, step_of

from dipedl.networks import TrainingPaused, training
from dipedl_bench import Store
from dipedl_bench.running import runner
from dipedl_bench.running.process import Outcome, failure
from dipedl_bench.running.training import train_part
from dipedl_bench.spec.plan import method_parts
from dipedl_bench.spec.suite import parse_suite


def job_of(root):
    suite = parse_suite(TINY, "tiny.toml")
    (edl,) = method_parts(suite, "smoke", ["edl"], "tiny.toml")
    store = Store(root, "tiny", "smoke")
    return step_of(store, edl, 1), store, edl


def test_a_paused_training_goes_on_and_ends_with_the_same_answers(tmp_path, monkeypatch):
    epoch = training.Run._epoch
    whole, store, edl = job_of(tmp_path / "whole")
    train_part(whole)
    paused, other, _ = job_of(tmp_path / "paused")
    with monkeypatch.context() as patched:
        # the first epoch fits into the budget, the second does not
        patched.setattr(
            training.Run, "_seconds_per_epoch", lambda run: 1e9 if run.history.epochs else 0.0
        )
        patched.setattr(training.Run, "_epoch", lambda run: (time.sleep(0.5), epoch(run)))
        with pytest.raises(TrainingPaused, match="after epoch 1 of 2") as stopped:
            train_part(replace(paused, deadline=time.monotonic() + 3600))
    assert failure(stopped.value) == ("paused", str(stopped.value))
    assert paused.checkpoint.exists() and not other.has_arrays("edl", edl.digest, 1)
    train_part(paused)
    receipt = other.receipt("edl", edl.digest, 1)
    assert receipt["resumed"] and receipt["precision"] == "float32"
    assert not whole.store.receipt("edl", edl.digest, 1)["resumed"]
    assert not paused.checkpoint.parent.exists()
    expected, found = (s.load("edl", edl.digest, 1) for s in (store, other))
    for split in expected:
        np.testing.assert_array_equal(
            found[split]["concentration"], expected[split]["concentration"]
        )


def test_what_paused_is_left_and_not_failed(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(
        runner, "run_in_process", lambda job, say: Outcome("paused", "paused after epoch 1 of 2")
    )
    lines = []
    options = {"methods": ["edl"], "seeds": [1], "budget": 60, "progress": lines.append}
    result = runner.run(suite, out=tmp_path, **options)
    assert result.left == [("edl", 1)] and not result.failed and not result.rows
    assert "seed 1  method edl: paused after epoch 1 of 2" in lines


def test_the_paused_network_of_a_cell_leaves_its_methods(tmp_path, monkeypatch):
    jobs = []

    def paused(job, say):
        jobs.append(job)
        return Outcome("paused", "paused after epoch 1 of 2")

    monkeypatch.setattr(runner, "run_in_process", paused)
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_CROSSED)
    chosen = ["max-softmax", "default"]
    result = runner.run(path, profile="net", out=tmp_path, methods=chosen, budget=60)
    assert result.left == [("digits, net: max-softmax", 3), ("digits, net: default", 3)]
    assert not result.failed and not result.rows
    (job,) = jobs
    assert job.deadline > time.monotonic()  # the training of the network is told
