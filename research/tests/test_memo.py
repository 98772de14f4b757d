"""A shared classifier answers as the classifier itself, and is fitted and asked once."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl_bench.running.memo import Memory, SharedClassifier

X, y = load_wine(return_X_y=True)
LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


class Counted(RandomForestClassifier):
    """Counts fits and answers of all its copies."""

    fits = 0
    answers = 0

    def fit(self, X, y):
        Counted.fits += 1
        return super().fit(X, y)

    def predict_proba(self, X):
        Counted.answers += 1
        return super().predict_proba(X)


@pytest.fixture(autouse=True)
def fresh():
    Counted.fits = Counted.answers = 0


def test_answers_are_those_of_the_classifier():
    ours = SharedClassifier(LOGISTIC, Memory()).fit(X[:100], y[:100])
    theirs = clone(LOGISTIC).fit(X[:100], y[:100])
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(ours, method)(X), getattr(theirs, method)(X))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


def test_copies_share_fits_and_answers():
    template = SharedClassifier(Counted(5, random_state=0), Memory())
    first, second = (clone(template).fit(X, y) for _ in range(2))
    assert first.model_ is second.model_ and Counted.fits == 1
    answer = first.predict_proba(X[:9])
    answer[:] = -1  # a caller may write to what it gets
    assert (second.predict_proba(X[:9]) >= 0).all() and Counted.answers == 1
    third = clone(template).fit(X[:-1], y[:-1])
    third.predict_proba(X[:9])
    assert (Counted.fits, Counted.answers) == (2, 2)


def test_other_labels_or_another_type_of_number_is_another_fit():
    memory = Memory()
    for labels, rows in ((y, X), (2 - y, X), (y, X.astype(np.float32))):
        SharedClassifier(Counted(3, random_state=0), memory).fit(rows, labels)
    assert Counted.fits == 3


def test_time_is_counted_as_if_nothing_were_shared():
    memory = Memory()
    template = SharedClassifier(Counted(40, random_state=0), memory)
    clone(template).fit(X, y)
    once = memory.alone.wall
    assert memory.fitting.wall == once and memory.here.wall >= once > 0
    here = memory.here.wall
    for _ in range(9):
        clone(template).fit(X, y)
    assert memory.fitting.wall == pytest.approx(10 * once)
    assert memory.here.wall - here < 9 * once


def test_an_answer_that_is_kept_is_not_asked_for():
    memory = Memory()
    trees = Counted(3, random_state=0).fit(X, y)
    memory.keep(trees, "predict_proba", X[:5], np.full((5, 3), 1 / 3))
    model = SharedClassifier.of(trees, memory)
    np.testing.assert_array_equal(model.predict_proba(X[:5]), np.full((5, 3), 1 / 3))
    assert Counted.answers == 0
    np.testing.assert_array_equal(model.predict_proba(X[5:9]), trees.predict_proba(X[5:9]))
    assert memory.alone.wall < memory.here.wall
