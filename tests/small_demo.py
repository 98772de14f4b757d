"""The demo at a size for tests, computed once for all processes of a test run."""

import fcntl
import pickle
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from dipedl.apps import demo
from dipedl.apps.demo import models, runner


def small_demo(folder):
    """The result for two classifiers, and the stages it went through; kept in the folder."""
    kept = folder / "small_demo.pickle"
    with (folder / "small_demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(computed()))
    return pickle.loads(kept.read_bytes())


def small_network(*_, **__):
    return MLPClassifier((16, 16), max_iter=300, random_state=0)


def computed(names=("linear", "forest")):
    seen = []

    @contextmanager
    def progress(stage):
        seen.append(stage)
        yield

    sizes = {"n_train": 400, "n_resamples": 40, "grid": 15}
    with (
        patch.object(models, "RandomForestClassifier", partial(RandomForestClassifier, 20)),
        patch.object(runner, "MLPClassifier", small_network),
    ):
        return demo.run(names, **sizes, progress=progress), seen


def linear_only(result):
    """The same, with the first classifier alone."""
    return replace(
        result,
        models=result.models[:1],
        rows=tuple(row for row in result.rows if row.model != "forest"),
        receipt=replace(result.receipt, models=("linear",)),
    )
