"""Copies and repeated rows: none is held out of a fit on its copy, and alarms keep their rate."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from dipedl import DIPClassifier
from dipedl.calibration.crossfit import content_folds
from dipedl.density import GDADensity, KNNDensity
from dipedl.held_out import warn_of_copies


def copies_said(X):
    """Whether copies are found, and what is said, of rows dealt out by content."""
    Z = np.zeros((X.shape[0], 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return warn_of_copies(X, Z, by_content=True), [str(w.message) for w in caught]


def test_copies_are_found_among_fine_values(rng):
    fine = rng.normal(size=(40, 3))
    found, said = copies_said(np.r_[fine, fine[:30]])
    assert found and "30 of 70 rows are copies" in said[0]
    assert "drop duplicates" in said[0] and "kept together" in said[0]
    cells = np.c_[rng.integers(18, 80, 300), rng.lognormal(8, 0.4, 300)]
    assert copies_said(np.repeat(cells, 3, axis=0))[0]
    # A few hardly move a threshold.
    assert copies_said(np.r_[fine, fine[:2]]) == (False, [])


def tables(rng):
    """Ordinary tables in which rows repeat by chance."""
    age = rng.normal(40, 9, 400).round()
    income = np.where(rng.random(400) < 0.4, np.nan, rng.lognormal(8, 0.4, 400))
    binary = rng.integers(0, 2, (200, 4)).astype(float)
    return {
        "fine": rng.normal(size=(40, 3)),
        "binary": binary,
        "iris": load_iris().data,
        "age": age[:, None],
        "age and a flag": np.c_[age, rng.random(400) < 0.3],
        "visits": rng.geometric(0.02, 400)[:, None],
        "gaps": np.c_[age, income],
        "filled gaps": np.c_[age, np.where(np.isnan(income), np.nanmedian(income), income)],
        "decimals": rng.normal(size=(400, 1)).round(2),
        "table": pd.DataFrame({"age": age, "city": rng.choice(["Oslo", "Rome"], 400)}),
    }


@pytest.mark.parametrize("name", tables(np.random.default_rng(0)))
def test_rows_that_repeat_by_chance_are_no_copies(name):
    for seed in range(5):
        assert copies_said(tables(np.random.default_rng(seed))[name]) == (False, [])


def test_copies_of_features_that_are_no_numbers_are_found_in_these(rng):
    fine = rng.normal(size=(40, 3))
    Z = np.r_[fine, fine[:30]]
    texts = np.array([str(row) for row in Z], dtype=object)
    with pytest.warns(UserWarning, match="30 of 70 rows are copies"):
        assert warn_of_copies(texts, Z, by_content=True)


def test_copies_with_other_labels_are_in_the_same_fold(rng):
    half = rng.normal(size=(200, 4))
    X, y = np.concatenate([half, half]), rng.integers(0, 2, 400)
    fold = content_folds(X, y, 5, together=True)
    np.testing.assert_array_equal(fold[:200], fold[200:])
    assert np.bincount(fold).min() >= 70


def test_a_splitter_that_parts_copies_is_said_to(rng):
    X = np.repeat(rng.normal(size=(60, 3)), 2, axis=0)
    y = (X[:, 0] > 0).astype(int)
    with pytest.warns(UserWarning, match="copies.*cv may hold a row out of a fit on its copy"):
        DIPClassifier(density=GDADensity(), cv=KFold(5)).fit(X, y)


def test_without_copies_nothing_changes_and_with_them_alarms_keep_their_rate():
    rates = {True: [], False: []}
    for seed in range(12):
        X, y = make_blobs(900, centers=3, n_features=4, random_state=seed)
        new, rows, labels = X[150:], X[:150], y[:150]
        for copied in rates:
            k = 3 if copied else 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = DIPClassifier(density=KNNDensity(), false_alarm_rate=0.1)
                clf.fit(np.tile(rows, (k, 1)), np.tile(labels, k))
            rates[copied].append((clf.predict_ood(new) == -1).mean())
    for found in rates.values():
        assert np.mean(found) < 0.1 + 3 * np.std(found) / np.sqrt(len(found))


def binary(seed, n, d):
    """Binary columns with a noisy sum as label: n rows, and 1,000 more."""
    rng = np.random.default_rng(seed)
    parts = []
    for m in (n, 1000):
        X = (rng.random((m, d)) < 0.4) * 1.0
        parts.append((X, (X.sum(axis=1) + rng.normal(0, 1, m) > 2).astype(int)))
    return parts


@pytest.mark.parametrize("seed", [5, 22])
def test_the_rows_of_the_fit_are_flagged_no_more_often_than_asked(seed):
    """Of these seeds every row was once flagged: scores of the folds lay above the final ones."""
    (X, y), (new, _) = binary(seed, 100, 5)
    clf = DIPClassifier(LogisticRegression(), random_state=seed).fit(X, y)
    assert (clf.predict_ood(X) == -1).mean() <= 0.05
    assert (clf.predict_ood(new) == -1).mean() < 0.15


@pytest.mark.parametrize("density", [GDADensity(), KNNDensity()])
def test_of_continuous_rows_few_scores_are_lowered(density):
    """Alarms stay about as frequent as asked for: the caution is for discrete rows."""
    rates = []
    for seed in range(10):
        X, y = make_blobs(1300, centers=3, n_features=4, random_state=seed)
        clf = DIPClassifier(density=density).fit(X[:300], y[:300])
        rates.append((clf.predict_ood(X[300:]) == -1).mean())
    assert 0.035 < np.mean(rates) < 0.05 + 2 * np.std(rates) / np.sqrt(len(rates))


def test_a_row_of_the_fit_is_not_its_own_neighbour(rng):
    X = rng.normal(size=(30, 3))
    density = KNNDensity(4).fit(X)
    distances = np.sort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)
    density.radius_floor_ = 0.0
    expected = density.log_constant_ - 3 * np.log(distances[:, 4])
    np.testing.assert_allclose(density.exclude_self().score_samples(X), expected)
    np.testing.assert_allclose(
        density.score_samples(X), density.log_constant_ - 3 * np.log(distances[:, 3])
    )
    part = KNNDensity(4, max_rows=10).fit(X)
    assert part.exclude_self() is part
