"""A Dirichlet whose intervals are too narrow says so in every copy."""

import pickle
from copy import copy, deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier, Dirichlet
from dipedl.density import GDADensity
from dipedl.explanation import FindingWarning


@pytest.fixture(scope="module")
def clf():
    X, y = load_iris(return_X_y=True)
    return DIPClassifier(GaussianNB(), GDADensity()).fit(X, y)


@pytest.fixture(scope="module")
def found(clf):
    return clf.predict_dirichlet(load_iris().data[:20])


@pytest.mark.parametrize(
    "again",
    [
        copy,
        deepcopy,
        lambda d: pickle.loads(pickle.dumps(d)),
        lambda d: d.update(np.eye(3)[np.zeros(20, int)]),
        lambda d: d[3:5],
        lambda d: next(iter(d)),
    ],
    ids=["copy", "deepcopy", "pickle", "update", "slice", "iteration"],
)
def test_every_copy_warns(found, again):
    with pytest.warns(FindingWarning, match="often several times too narrow"):
        again(found).credible_interval()


def test_a_plain_dirichlet_stays_one(found):
    plain = Dirichlet(found.concentration, found.log_evidence, found.prior)
    for d in (copy(plain), pickle.loads(pickle.dumps(plain)), plain.update(np.ones(3)), plain[:2]):
        assert d.caveat is None
    assert found.with_strength(found.strength).caveat is None


def test_a_notebook_shows_it_beside_the_intervals(found):
    plain = Dirichlet(found.concentration, found.log_evidence, found.prior)
    said = "often several times too narrow"
    assert said in found._repr_html_() and said not in plain._repr_html_()
    assert found._repr_html_().startswith(plain._repr_html_())


def test_a_warning_names_the_line_of_the_user(clf):
    with pytest.warns(FindingWarning) as told:
        clf.predict_dirichlet(load_iris().data[:5]).credible_interval()
    assert [warning.filename for warning in told] == [__file__]
