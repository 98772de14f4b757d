"""Small work runs on one thread: threads that wait for one another would spin."""

import os
import subprocess
import sys
from functools import wraps

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from dipedl import DIPClassifier
from dipedl.density import GDADensity


class Watched(ClassifierMixin, BaseEstimator):
    """Notes the threads of each library whenever it is called."""

    seen: list[set[int]] = []

    def note(self):
        self.seen.append({library["num_threads"] for library in threadpool_info()})

    def fit(self, X, y):
        self.note()
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        self.note()
        return self.model_.predict_proba(X)


@pytest.mark.parametrize(("rows", "threads"), [(300, 1), (70_000, 2)])
def test_few_rows_are_fitted_and_answered_on_one_thread(rng, rows, threads):
    X = rng.normal(size=(rows, 2))
    y = (X[:, 0] > 0).astype(int)
    Watched.seen.clear()
    held = (rng.normal(size=(200, 2)), np.arange(200) % 2)
    with threadpool_limits(2):
        clf = DIPClassifier(Watched(), GDADensity()).fit(X, y, calibration=held)
        assert Watched.seen[0] == {threads}
        assert all(one == {1} for one in Watched.seen[1:])
        Watched.seen.clear()
        clf.predict_proba(X)
        clf.predict_proba(X[:1])
        assert Watched.seen == [{threads}, {1}]
        assert all(library["num_threads"] == 2 for library in threadpool_info())


@pytest.mark.parametrize("name", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier"])
def test_libraries_that_are_imported_late_are_limited_too(rng, monkeypatch, name):
    module, _, cls = name.partition(".")
    model = getattr(pytest.importorskip(module), cls)
    X = rng.normal(size=(300, 4))
    y, seen, fit = (X[:, 0] > 0).astype(int), [], model.fit

    @wraps(fit)
    def watched(*arguments, **more):
        seen.extend(one["num_threads"] for one in threadpool_info())
        return fit(*arguments, **more)

    with threadpool_limits(2):
        monkeypatch.setattr(model, "fit", watched)
        DIPClassifier(model(n_estimators=3), GDADensity()).fit(X, y)
    assert set(seen) == {1}


@pytest.mark.parametrize(
    ("set_before", "expected"),
    [
        ({}, "10000 None"),
        ({"GOMP_SPINCOUNT": "7"}, "7 None"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "None ACTIVE"),
    ],
)
def test_threads_of_the_command_line_sleep_soon(set_before, expected):
    # What stands for the application sees what its libraries would see when they are loaded.
    code = (
        "import os, sys, types\n"
        "names = 'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'\n"
        "app = lambda prog_name: print(*map(os.environ.get, names))\n"
        "from dipedl.apps.cli import main\n"
        "sys.modules['dipedl.apps.cli.app'] = types.SimpleNamespace(app=app)\n"
        "main()"
    )
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    own = {name: value for name, value in os.environ.items() if name not in names}
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=own | set_before,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines()[-1] == expected
