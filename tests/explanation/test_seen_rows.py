"""Rows that the classifier has learned from do not pass for held-out ones."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.calibration.crossfit import row_hash
from dipedl.density import GDADensity
from dipedl.held_out import sample_hashes, share_in_fit

FOREST = RandomForestClassifier(30, random_state=0)
LEAVES = RandomForestClassifier(30, min_samples_leaf=2, random_state=0)
BOOSTED = HistGradientBoostingClassifier(max_iter=60, random_state=0)


def noisy(seed, n=500):
    """Two classes of two clusters each; a tenth of the labels are wrong. Two halves of rows."""
    X, y = make_classification(2 * n, 10, n_informative=4, flip_y=0.2, random_state=seed)
    return (X[:n], y[:n]), (X[n:], y[n:])


def said(fit):
    """What is warned of rows that were seen before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    texts = [str(w.message) for w in caught]
    return [text for text in texts if "memorised" in text or "given to fit too" in text]


def frozen_on(rows, classifier, seen):
    model = FrozenEstimator(classifier.fit(*seen))
    return DIPClassifier(model, GDADensity(), random_state=0).fit(*rows)


@pytest.mark.parametrize("classifier", [FOREST, LEAVES, BOOSTED], ids=lambda c: str(c)[:9])
def test_a_frozen_classifier_on_its_own_rows_is_warned_of(classifier):
    seen, _ = noisy(0)
    (text,) = said(lambda: frozen_on(seen, classifier, seen))
    assert "memorised" in text and "calibrate(X, y)" in text


@pytest.mark.parametrize("seed", range(3))
def test_a_frozen_classifier_on_new_rows_is_not_warned_of(seed):
    seen, new = noisy(seed)
    for classifier in (FOREST, LogisticRegression()):
        assert said(lambda c=classifier, s=seen, n=new: frozen_on(n, c, s)) == []


def test_a_perfect_classifier_on_new_rows_is_not_warned_of():
    X, y = make_blobs(600, centers=3, cluster_std=1.0, random_state=3)
    rows, new = (X[:300], y[:300]), (X[300:], y[300:])
    model = LogisticRegression().fit(*rows)
    assert model.score(*new) == 1
    assert said(lambda: frozen_on(new, LogisticRegression(), rows)) == []


def test_calibration_rows_that_were_given_to_fit_are_warned_of(tmp_path):
    seen, new = noisy(0)
    clf = DIPClassifier(LogisticRegression(), GDADensity())
    (text,) = said(lambda: clf.fit(*seen, calibration=seen))
    assert "500 inputs, 100% of them given to fit too" in text
    assert [f.code for f in clf.diagnose().warnings] == ["calibration_given_to_fit"]
    assert said(lambda: clf.fit(*seen, calibration=new)) == []
    assert said(lambda: clf.calibrate(*new)) == []
    half = [np.concatenate([a[:250], b[:250]]) for a, b in zip(seen, new, strict=True)]
    (text,) = said(lambda: clf.calibrate(*half))
    assert "50% of them given to fit too" in text


def test_new_rows_of_a_few_categories_repeat_old_ones_by_chance(rng):
    for n, k in ((500, 2), (3000, 2), (300, 5)):
        X = rng.integers(0, k, (2 * n, 4)).astype(float)
        assert share_in_fit(row_hash(X[:n]), sample_hashes(row_hash(X[n:]))) == 0


def test_seen_rows_are_counted_among_many(rng):
    X = rng.normal(size=(20_000, 2))
    kept = sample_hashes(row_hash(X))
    mixed = np.concatenate([X[:6000], rng.normal(size=(4000, 2))])
    assert share_in_fit(row_hash(mixed), kept) == pytest.approx(0.6, abs=0.12)
    assert share_in_fit(row_hash(rng.normal(size=(20_000, 2))), kept) == 0
    assert share_in_fit(row_hash(X), None) == 0


def test_rows_with_gaps_have_no_row_half_way():
    (X, y), _ = noisy(0)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert frozen_on((X, y), BOOSTED, (X, y)).evidence_.memorised_ is None


def test_rows_of_few_discrete_columns_are_named_unless_others_are_held_out():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (600, 3)).astype(float)
    y = (rng.random(600) < 1 / (1 + np.exp(4.5 - X.sum(axis=1)))).astype(int)
    rows, new = (X[:300], y[:300]), (X[300:], y[300:])
    clf = DIPClassifier(HistGradientBoostingClassifier(max_iter=5), GDADensity(), random_state=0)
    assert "calibration_copies" in clf.fit(*rows).diagnose().codes
    assert "calibration_copies" not in clf.fit(*rows, calibration=new).diagnose().codes
    fine = rows[0] + rng.random((300, 3)), rows[1]
    assert "calibration_copies" not in clf.fit(*fine).diagnose().codes
