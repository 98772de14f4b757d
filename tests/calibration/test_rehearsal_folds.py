"""The folds of a rehearsal are those that the classifier itself is cross-fitted in."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit

from dipedl import DIPClassifier
from dipedl.calibration import Rehearsal
from dipedl.density import GDADensity
from known_truth import known_truth

pytestmark = pytest.mark.usefixtures("few_candidates")
GROUPS, COPIES = 100, 8


@pytest.fixture(scope="module")
def data():
    return known_truth(GROUPS)


@pytest.fixture(scope="module")
def near_copies(data):
    """Inputs, labels and groups: each row of the data eight times, hardly moved, with its label."""
    X = np.repeat(data.X_train, COPIES, axis=0)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
    return X, np.repeat(data.y_train, COPIES), np.repeat(np.arange(GROUPS), COPIES)


@pytest.fixture(scope="module")
def few(near_copies):
    """The same with two of the eight copies."""
    return tuple(part[::4] for part in near_copies)


def fitted(X, y, cv, estimator=None):
    estimator = LogisticRegression(max_iter=1000) if estimator is None else estimator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier(estimator, GDADensity(), cv=cv, spread=Rehearsal(), random_state=0)
        return clf.fit(X, y)


def test_the_error_on_groups_of_near_copies_is_that_on_new_rows(data, near_copies):
    X, y, groups = near_copies
    forest = RandomForestClassifier(20, random_state=0)
    blind, seeing = (
        fitted(X, y, cv, forest) for cv in ("auto", list(GroupKFold(5).split(X, y, groups)))
    )
    gap = seeing.predict_dirichlet(data.X_test).mean - data.truth["test"]
    error = (gap**2).sum(axis=1).mean()
    # Folds that part copies see a classifier that knows the held-out rows.
    assert blind.spread_.error_ < 0.2 * error
    assert 0.7 * error < seeing.spread_.error_ < 2 * error


def test_intervals_of_new_rows_hold_after_a_fit_to_groups(data, near_copies):
    X, y, groups = near_copies
    # An iterator gives its pairs once, and folds and rehearsal share them.
    clf = fitted(X, y, GroupKFold(5).split(X, y, groups))
    low, high = clf.predict_dirichlet(data.X_test).credible_interval()
    truth = data.truth["test"]
    assert ((low <= truth) & (truth <= high)).mean() > 0.9 and clf.spread_.refits_ == 10


def test_pairs_follow_their_rows(few):
    X, y, groups = few
    pairs = list(GroupKFold(5).split(X, y, groups))
    order = np.random.default_rng(5).permutation(len(y))
    place = np.argsort(order)
    moved = [(place[train], place[held]) for train, held in pairs]
    one, other = fitted(X, y, pairs).spread_, fitted(X[order], y[order], moved).spread_
    np.testing.assert_allclose(other.strength_, one.strength_, rtol=1e-6)
    # Rows without weight are left out, and the pairs speak of all.
    w = np.repeat([1.0, 0.0], [len(y), 40])
    with_more = DIPClassifier(
        LogisticRegression(max_iter=1000),
        GDADensity(),
        cv=[(np.append(train, len(y)), held) for train, held in pairs],
        spread=Rehearsal(),
        random_state=0,
    ).fit(np.concatenate([X, X[:40]]), np.append(y, y[:40]), w)
    np.testing.assert_allclose(with_more.spread_.strength_, one.strength_, rtol=1e-6)


def test_rows_that_are_never_held_out_get_labels_that_no_fit_of_them_made(data):
    X, y = data.X_train, data.y_train
    spread = fitted(X, y, ShuffleSplit(1, test_size=0.4, random_state=0)).spread_
    # One fold on the real labels, its reverse, and one on drawn labels.
    assert spread.refits_ == 3 and spread.n_ == 40
    assert 0.5 <= spread.strength_ < 100


@pytest.mark.parametrize("held_out", [0.1, 0.9])
def test_a_small_fit_says_nothing_of_the_parts_of_a_rehearsal(data, held_out):
    cv = ShuffleSplit(1, test_size=held_out, random_state=0)
    clf = DIPClassifier(density=GDADensity(), cv=cv, spread=Rehearsal(), random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        clf.fit(data.X_train, data.y_train)
    assert not [str(one.message) for one in told if "n_components" in str(one.message)]
