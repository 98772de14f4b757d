"""Estimators of other packages by value: the same answers to the last bit, and no trust asked."""

import json
from copy import deepcopy
from functools import cache
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from xgboost import XGBClassifier

from dipedl import DIPClassifier
from dipedl.apps.monitor import DriftMonitor
from dipedl.density import GDADensity
from dipedl.io import ModelFileError, container, describe, foreign, load, save
from dipedl.io.model_file import UntrustedTypesError
from dipedl.io.values import CODECS, POOLS, lookup
from own_models import models
from table_estimators import answers, estimators, fitted

ESTIMATORS = estimators()
MADE = {name: (fitted, *case) for name, case in ESTIMATORS.items()}
MADE |= {f"own {name}": (lambda m, X, y: clone(m).fit(X, y), *c) for name, c in models().items()}


@cache
def made(name):
    """Fit each estimator once, for all tests of this file."""
    make, *case = MADE[name]
    return make(*case)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MADE)
def test_a_loaded_estimator_answers_the_same(name, tmp_path):
    (_, _, inputs, _), model, path = MADE[name], made(name), tmp_path / "model.dipedl"
    save(model, path)
    assert describe(path)["parts"] == describe(path)["untrusted_types"] == []
    same = load(path)
    first, second = (answers(getattr(m, "steps", [[m]])[-1][-1], inputs) for m in (model, same))
    assert first.keys() == second.keys()
    for method, found in first.items():
        np.testing.assert_array_equal(second[method], found, strict=True, err_msg=method)
    data = path.read_bytes()
    save(same, path)
    assert path.read_bytes() == data


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_without_an_attribute_a_file_is_refused_or_answers_the_same(tmp_path):
    """Each attribute that a fit leaves to an estimator of another package, one at a time."""
    path, tried, wrong = tmp_path / "model.dipedl", set(), []
    for name, case in ESTIMATORS.items():
        model = made(name)
        save(model, path)
        expected, (manifest, tensors) = answers(model[-1], case[1]), container.read(path)
        for number, entry in enumerate(manifest["objects"]):
            if entry["type"] not in foreign.ENTRIES:
                continue
            settings = signature(lookup(entry["type"])).parameters
            for attribute in sorted(entry["state"].keys() - settings.keys()):
                case_of = entry["type"], attribute, name.endswith("two classes")
                if case_of in tried:
                    continue
                tried.add(case_of)
                forged = deepcopy(manifest)
                del forged["objects"][number]["state"][attribute]
                container.write(path, forged, tensors)
                try:
                    found = answers(load(path)[-1], case[1])
                    same = all(np.array_equal(found[k], expected[k], True) for k in found)
                except ModelFileError:
                    continue
                except Exception:
                    same = False
                if not same:
                    wrong.append(case_of)
    assert wrong == [] and len(tried) > 300


@pytest.mark.filterwarnings("ignore")
def test_columns_with_gaps_of_their_own_are_kept_by_value(tmp_path):
    """A scaler then holds another number of seen rows for each column, as floats."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y, path = X[:, 0] > 0, tmp_path / "model.dipedl"
    X[::3, 0], X[::7, 1] = np.nan, np.nan
    trees = HistGradientBoostingClassifier(max_iter=2, early_stopping=False)
    clf = DIPClassifier(trees, GDADensity()).fit(X, y)
    clf.save(path)
    assert describe(path)["untrusted_types"] == []
    np.testing.assert_array_equal(load(path).uncertainty(X), clf.uncertainty(X))


def watching():
    """A monitor with all that it can hold: columns, a closed window and labels."""
    _, inputs, labels = models()["OODDetector"]
    clf = DIPClassifier(density=GDADensity(), random_state=0).fit(inputs, labels)
    monitor = DriftMonitor(window=50).fit(clf, inputs)
    monitor.update(clf, inputs, labels)
    assert monitor.windows_ and monitor.columns_
    return monitor


def streaming():
    """A model that takes further batches."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    return DIPClassifier(GaussianNB()).partial_fit(X, X[:, 0] > 0)


def with_intervals():
    X, y = load_iris(return_X_y=True)
    clf = DIPClassifier(GaussianNB(), GDADensity()).fit(X, y)
    clf.rehearse_unknown(X, y)
    return clf


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_entry_of_the_table_is_in_one_of_these_files(tmp_path):
    path, found = tmp_path / "model.dipedl", set()
    for model in [*map(made, MADE), watching(), streaming(), with_intervals()]:
        save(model, path)
        found |= {entry["type"] for entry in container.read(path)[0]["objects"]}
        json.dumps(describe(path))
    assert found >= CODECS.keys() | POOLS.keys()


@pytest.mark.parametrize(
    ("booster", "cause", "name"),
    [
        (
            XGBClassifier(n_estimators=2, enable_categorical=True),
            "names of categories",
            "xgboost.core.Booster",
        ),
        (
            LGBMClassifier(n_estimators=2, linear_tree=True, verbose=-1),
            "linear_tree=True",
            "lightgbm.basic.Booster",
        ),
    ],
    ids=["categories", "linear trees"],
)
def test_other_boosters_are_told_of_in_save_and_load_with_trust(booster, cause, name, tmp_path):
    X = pd.DataFrame({"size": np.arange(60.0), "kind": pd.Categorical(list("uvw") * 20)})
    model = DIPClassifier(booster, GDADensity()).fit(X, np.arange(60) % 3 == 0)
    with pytest.warns(UserWarning, match=rf"{cause}.*trusted=\['{name}'\]") as told:
        model.save(tmp_path / "model.dipedl")
    assert [warning.filename for warning in told] == [__file__]
    with pytest.raises(UntrustedTypesError):
        load(tmp_path / "model.dipedl")
    same = load(tmp_path / "model.dipedl", trusted=[name])
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))


def test_settings_that_cannot_be_checked_are_told_of_in_save(tmp_path):
    X, y = load_iris(return_X_y=True)
    nearest = KNeighborsClassifier(algorithm="brute", metric="nan_euclidean")
    model = DIPClassifier(nearest, GDADensity()).fit(X, y)
    with pytest.warns(UserWarning, match="metric of KNeighborsClassifier is .nan") as told:
        model.save(tmp_path / "model.dipedl")
    listed = describe(tmp_path / "model.dipedl")["untrusted_types"]
    assert str(told[0].message).endswith(f"trusted={listed}") and len(told) == 1
    same = load(tmp_path / "model.dipedl", trusted=listed)
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
