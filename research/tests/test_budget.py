"""A budget ends in the middle of a training, and the same command goes on with it."""

import time

import numpy as np
import pytest
from tiny_crossed import TINY_CROSSED
from tiny_suite import TINY, train

from dipedl.networks import TrainingPaused, training
from dipedl_bench import Store
from dipedl_bench.running import runner
from dipedl_bench.running.process import failure
from dipedl_bench.spec.plan import method_parts
from dipedl_bench.spec.suite import parse_suite


def test_a_paused_training_goes_on_and_ends_with_the_same_answers(tmp_path, monkeypatch):
    epoch = training.Run._epoch
    suite = parse_suite(TINY, "tiny.toml")
    (edl,) = method_parts(suite, "smoke", ["edl"], "tiny.toml")
    key = edl.name, edl.digest, 1
    whole, paused = (Store(tmp_path / name, "tiny", "smoke") for name in ("whole", "paused"))
    train(whole, edl, 1)
    with monkeypatch.context() as patched:
        # the first epoch fits into the budget, the second does not
        patched.setattr(
            training.Run, "_seconds_per_epoch", lambda run: 1e9 if run.history.epochs else 0.0
        )
        patched.setattr(training.Run, "_epoch", lambda run: (time.sleep(0.5), epoch(run)))
        with pytest.raises(TrainingPaused, match="after epoch 1 of 2") as stopped:
            train(paused, edl, 1, time.monotonic() + 3600)
    assert failure(stopped.value) == ("paused", str(stopped.value))
    assert paused.checkpoint(*key).exists() and not paused.has_arrays(*key)
    train(paused, edl, 1)
    receipt = paused.receipt(*key)
    assert receipt["resumed"] and receipt["precision"] == "float32"
    assert not whole.receipt(*key)["resumed"] and not paused.checkpoint(*key).parent.exists()
    expected, found = (store.load(*key) for store in (whole, paused))
    for split, named in expected.items():
        np.testing.assert_array_equal(found[split]["concentration"], named["concentration"])


@pytest.mark.parametrize(
    ("text", "profile", "methods", "left"),
    [
        (TINY, "smoke", ["edl"], [("edl", 1), ("edl", 2)]),
        (TINY_CROSSED, "net", ["default"], [("digits/net: default", 3)]),
    ],
)
def test_a_paused_part_is_left_and_not_failed(tmp_path, monkeypatch, text, profile, methods, left):
    deadlines = []

    def pause(cell, part, store, deadline, say):
        deadlines.append(deadline)
        return "paused", "paused after epoch 1 of 2"

    monkeypatch.setattr(runner, "run_in_process", pause)
    path = tmp_path / "tiny.toml"
    path.write_text(text)
    options = {"methods": methods, "budget": 60, "profile": profile}
    result = runner.run(path, out=tmp_path, **options)
    assert (result.left, result.failed, result.rows) == (left, {}, [])
    assert len(deadlines) == len(left) and min(deadlines) > time.monotonic()
