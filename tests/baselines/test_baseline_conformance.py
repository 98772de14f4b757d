"""Every baseline in the plug-in folder keeps the contract: a new file is picked up by itself."""

import inspect
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from dipedl import DIPClassifier, baselines
from dipedl.baselines import (
    DDU,
    DeepEnsemble,
    Energy,
    KNNDistance,
    Mahalanobis,
    MaxSoftmax,
    PredictiveEntropy,
    ViM,
)
from dipedl.density import GDADensity
from dipedl.testing import _shared, baseline_checks, check_baseline
from dipedl.testing import baselines as checks
from few_row_settings import few_row_settings

CHECKS = baseline_checks()


def default(name):
    """The baseline with cheap arguments, or a skip if its optional package is missing."""
    try:
        cls = getattr(baselines, name)
    except ImportError as error:
        return pytest.param(None, id=name, marks=pytest.mark.skip(reason=str(error)))
    return pytest.param(cls(**cheap(cls)), id=name)


def cheap(cls):
    if cls.__name__ == "CEDL":
        return {"estimator": baselines.EDL(**cheap(baselines.EDL))}
    if cls.__name__ in ("DeepEnsemble", "EnsembleDirichlet"):
        members = DeepEnsemble(ExtraTreesClassifier(3, max_depth=4, bootstrap=True), n_members=3)
        return members.get_params(deep=False) if cls is DeepEnsemble else {"estimator": members}
    if known := few_row_settings(cls.__name__):
        return known
    names = inspect.signature(cls).parameters
    if "training" not in names:
        return {}
    nn = pytest.importorskip("dipedl.networks")
    training = nn.Training(epochs=1, batch_size=64, learning_rate=0.02, n_jobs=1)
    dropout = 0.2 if cls.__name__ == "MCDropout" else 0.0
    # Three classes of few rows: in more dimensions a flow has not learned them in so short a time.
    more = {"latent_dim": 2} if "latent_dim" in names else {}
    if "iterates" in names:
        more = {"iterates": replace(training, epochs=2, optimizer="sgd"), "n_samples": 3}
    return {"backbone": nn.MLP((16,), dropout=dropout), "training": training, **more}


def longer(estimator):
    """Trained until it has learned something, as the estimator that it wraps."""
    trainings = {
        name: replace(value, epochs=12, batch_size=16)
        for name, value in estimator.get_params().items()
        if name.rpartition("__")[2] == "training"
    }
    return clone(estimator).set_params(**trainings) if trainings else estimator


def variants():
    yield MaxSoftmax(GaussianNB())
    yield PredictiveEntropy(make_pipeline(StandardScaler(), LogisticRegression()))
    yield Energy(temperature=10.0)
    yield Mahalanobis(features=StandardScaler(), shrinkage=None)
    yield DDU(DecisionTreeClassifier(max_depth=3), features="passthrough")
    yield KNNDistance(n_neighbors=1)
    yield DIPClassifier(density=GDADensity())
    yield pytest.param(DIPClassifier(), marks=pytest.mark.slow)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("estimator", [default(name) for name in baselines.__all__])
def test_baseline(estimator, check):
    long = check is checks.check_higher_is_less_sure
    check(longer(estimator) if long else subject(estimator))


@cache
def subject(estimator):
    """The estimator with one fit for all checks."""
    return _shared.Subject.of_method(estimator)


@pytest.mark.parametrize("estimator", list(variants()), ids=lambda e: str(e).replace("\n", ""))
def test_variant(estimator):
    check_baseline(estimator)


# Each check of baselines alone must be able to fail; of those that densities share see theirs.


class Logits(MaxSoftmax):
    def predict_proba(self, X):
        return 3 * super().predict_proba(X)

    def uncertainty(self, X):
        return 1 - super().predict_proba(X).max(axis=1)


class Confidence(MaxSoftmax):
    def uncertainty(self, X):
        return -super().uncertainty(X)


class OtherMean(DIPClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


class NumbersOnly(MaxSoftmax):
    def predict(self, X):
        return super().predict_proba(X).argmax(axis=1)


class TakesOneClass(MaxSoftmax):
    def fit(self, X, y, validation=None):
        if y is not None and len(np.unique(y)) == 1:
            y = np.arange(len(y)) % 2
        return super().fit(X, y)


class DrawsGlobally(MaxSoftmax):
    def uncertainty(self, X):
        np.random.rand()  # noqa: NPY002
        return super().uncertainty(X)


class RefusesValidation(MaxSoftmax):
    def fit(self, X, y, validation=None):
        if validation is not None:
            raise ValueError("validation is not supported")
        return super().fit(X, y)


FLAWED = {
    checks.check_probabilities: Logits(),
    checks.check_higher_is_less_sure: Confidence(),
    checks.check_dirichlet: OtherMean(),
    checks.check_labels_may_be_strings: NumbersOnly(),
    checks.check_bad_labels_are_refused: TakesOneClass(),
    checks.check_global_randomness_is_left_alone: DrawsGlobally(),
    checks.check_validation_data: RefusesValidation(),
}


@pytest.mark.parametrize("check", FLAWED, ids=lambda c: c.__name__)
def test_check_can_fail(check):
    with pytest.raises(AssertionError, match=type(FLAWED[check]).__name__):
        check(FLAWED[check])


def test_check_baseline_runs_every_check():
    assert set(FLAWED) == {c for c in CHECKS if not hasattr(_shared, c.__name__)}
    with pytest.raises(AssertionError, match="refuses validation data"):
        check_baseline(FLAWED[CHECKS[-1]])
    both = vars(_shared) | vars(checks)
    found = {f for name, f in both.items() if name.startswith("check_")}
    assert found - {check_baseline} == set(CHECKS)


@pytest.mark.parametrize("thing", [LogisticRegression(), object()])
def test_what_has_no_uncertainty_is_refused(thing):
    with pytest.raises(TypeError, match="methods fit, predict, predict_proba and uncertainty"):
        check_baseline(thing)


class Foreign(ClassifierMixin, BaseEstimator):
    """Somebody else's method, on images of one size only, without validation data."""

    def fit(self, X, y):
        if np.shape(X)[1] != 9:
            raise ValueError("X must have 9 columns")
        self.inner_ = MaxSoftmax().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.inner_.predict(X)

    def predict_proba(self, X):
        check_is_fitted(self)
        return self.inner_.predict_proba(X)

    def uncertainty(self, X):
        check_is_fitted(self)
        return self.inner_.uncertainty(X)


def test_data_can_be_given(rng):
    y = np.arange(40) % 4
    X = rng.normal(size=(4, 9))[y] * 3 + rng.normal(size=(40, 9))
    check_baseline(Foreign(), X, y)
    with pytest.raises(ValueError, match="9 columns"):
        check_baseline(Foreign())


@parametrize_with_checks(
    [
        MaxSoftmax(),
        Mahalanobis(),
        ViM(n_components=0),
        DeepEnsemble(ExtraTreesClassifier(2, max_depth=3), n_members=2),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)
