"""What says that its intervals are too narrow says so in every copy, and once for each line."""

import pickle
import warnings
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
        assert type(d) is Dirichlet
    assert type(found.with_strength(found.strength)) is Dirichlet


def test_a_notebook_shows_it_beside_the_intervals(found):
    plain = Dirichlet(found.concentration, found.log_evidence, found.prior)
    said = "often several times too narrow"
    assert said in found._repr_html_() and said not in plain._repr_html_()
    assert found._repr_html_().startswith(plain._repr_html_())


def told_by(clf, *filters, line):
    """Where warnings of three predictions say they are from; `line` names the code."""
    code = compile("for _ in range(3): clf.predict_dirichlet(X).credible_interval()", line, "exec")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for chosen in filters:
            warnings.filterwarnings(**chosen)
        exec(code, {"clf": clf, "X": load_iris().data[:5], "__name__": "of_a_user"})
    return [warning.filename for warning in told]


def test_a_line_is_told_once_though_predictions_make_python_forget_it(clf):
    assert told_by(clf, line="one.py") == ["one.py"]
    assert told_by(clf, line="one.py") == []
    assert told_by(clf, line="other.py") == ["other.py"]
    assert told_by(clf, {"action": "ignore"}, line="ignored.py") == []
    assert told_by(clf, line="ignored.py") == ["ignored.py"]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, 3),
        ({"category": FindingWarning}, 3),
        ({"message": "these intervals"}, 3),
        ({"module": "of_a_user"}, 3),
        ({"category": DeprecationWarning}, 1),
        ({"message": "those"}, 1),
        ({"module": "of_another"}, 1),
        ({"lineno": 2}, 1),
    ],
    ids=str,
)
def test_filters_that_ask_for_every_warning_get_it(clf, chosen, expected):
    line = f"{chosen}.py"
    assert told_by(clf, {"action": "always", **chosen}, line=line) == [line] * expected


def test_an_error_is_one_every_time(clf):
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FindingWarning):
                clf.predict_dirichlet(load_iris().data[:5]).credible_interval()
