"""Functions that ask a pipeline or a search what the DIPClassifier at its end would answer."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import dipedl
from dipedl import DIPClassifier
from dipedl.baselines import MaxSoftmax
from dipedl.density import GDADensity

X, Y = load_iris(return_X_y=True)
X -= [5, 3, 3, 1]  # near zero a logistic regression takes a sixth of the steps
QUESTIONS = {
    "p_value": {},
    "predict_ood": {"alpha": 0.1},
    "predict_set": {"coverage": 0.8, "by_class": True},
    "uncertainty": {"kind": "total"},
}


def model():
    return DIPClassifier(LogisticRegression(max_iter=500), GDADensity())


@pytest.fixture(scope="module")
def prepared():
    """A pipeline of two scalers and a classifier, and the classifier with its inputs."""
    nested = make_pipeline(MinMaxScaler(), make_pipeline(StandardScaler(), model())).fit(X, Y)
    return nested, nested[-1][-1], nested[-1][0].transform(nested[0].transform(X))


def wrapped(pipeline):
    search = GridSearchCV(pipeline, {}, cv=2, scoring="accuracy")
    search.best_estimator_ = pipeline
    return [pipeline, FrozenEstimator(pipeline), search]


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_are_those_of_the_last_step(prepared, name):
    pipeline, clf, Z = prepared
    expected = getattr(clf, name)(Z, **QUESTIONS[name])
    for outer in wrapped(pipeline):
        np.testing.assert_array_equal(getattr(dipedl, name)(outer, X, **QUESTIONS[name]), expected)
    np.testing.assert_array_equal(getattr(dipedl, name)(clf, Z, **QUESTIONS[name]), expected)


def test_the_uncertainty_of_a_baseline_is_its_own():
    pipeline = make_pipeline(StandardScaler(), MaxSoftmax()).fit(X, Y)
    expected = 1 - pipeline.predict_proba(X).max(axis=1)
    np.testing.assert_allclose(dipedl.uncertainty(pipeline, X), expected, atol=1e-12)


def test_distributions_rejections_cards_and_diagnoses(prepared):
    pipeline, clf, Z = prepared
    d = dipedl.predict_dirichlet(pipeline, X)
    np.testing.assert_array_equal(d.concentration, clf.predict_dirichlet(Z).concentration)
    decision = dipedl.decide(pipeline, X, cost_error=5, cost_reject=1)
    np.testing.assert_array_equal(decision.costs, clf.decide(Z, cost_error=5, cost_reject=1).costs)
    rejection = dipedl.predict_with_reject(pipeline, X, coverage=0.9)
    np.testing.assert_array_equal(
        rejection.accepted, clf.predict_with_reject(Z, coverage=0.9).accepted
    )
    assert dipedl.diagnose(pipeline).to_dict() == clf.diagnose().to_dict()
    assert dipedl.explain(pipeline, X[:1])[0].label == clf.explain(Z[:1])[0].label


@pytest.mark.parametrize("settings", [{}, {"refit": False}])
def test_a_search_without_a_best_model_says_so(settings):
    search = GridSearchCV(model(), {"gamma": [1.0]}, cv=5, **settings)
    search = search.fit(X, Y) if settings else search
    for ask in (dipedl.p_value, dipedl.explain):
        with pytest.raises(NotFittedError, match=r"GridSearchCV.*refit=True"):
            ask(search, X)
    with pytest.raises(NotFittedError, match=r"GridSearchCV.*refit=True"):
        dipedl.diagnose(search)


def test_another_model_is_refused():
    with pytest.raises(TypeError, match="ends in one, got LogisticRegression at its end"):
        dipedl.p_value(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), X)
