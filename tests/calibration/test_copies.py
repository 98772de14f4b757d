"""Copies of rows: no row is held out of a fit on its copy."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs

from dipedl import DIPClassifier
from dipedl.calibration._copies import warn_of_copies
from dipedl.density import GDADensity, KNNDensity


def test_copies_are_counted_only_among_fine_values(rng):
    fine = rng.normal(size=(40, 3))
    with pytest.warns(
        UserWarning, match=r"30 of 70 rows are copies.*drop duplicates.*sample_weight"
    ):
        assert warn_of_copies(np.r_[fine, fine[:30]]) == 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warn_of_copies(fine) == 0
        assert warn_of_copies(rng.integers(0, 2, (200, 4)).astype(float)) == 0
        assert warn_of_copies(load_iris().data) == 0


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


@pytest.mark.parametrize(
    ("m", "density"), [pytest.param(100, None, marks=pytest.mark.slow), (100, GDADensity())]
)
def test_alarms_and_sets_from_calibration_rows_keep_their_promise(m, density):
    """Fusion, temperature and budget come from the same rows as the threshold."""
    places = 2 * np.random.default_rng(0).normal(size=(3, 4))
    alarms, rare, covered = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 300 + m + 1000)
        X = places[y] + rng.normal(size=(len(y), 4))
        parts = np.split(np.arange(len(y)), [300, 300 + m])
        (train, held, new) = parts
        clf = DIPClassifier(density=density).fit(X[train], y[train], calibration=(X[held], y[held]))
        p = clf.p_value(X[new])
        alarms.append((p <= 0.05).mean())
        rare.append((p <= 0.01).mean())
        covered.append(clf.predict_set(X[new], 0.9)[np.arange(len(new)), y[new]].mean())

    def above(found):
        return np.mean(found) - 3 * np.std(found) / np.sqrt(len(found))

    assert above(alarms) < 0.05
    assert above(rare) < 0.01
    assert np.mean(covered) + 3 * np.std(covered) / np.sqrt(len(covered)) > 0.9
