"""The post-hoc scores against naive loops and scikit-learn; what they make of bad input."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from dipedl.baselines import DDU, Energy, KNNDistance, Mahalanobis, MaxSoftmax, PredictiveEntropy

FEATURED = (Mahalanobis, DDU, KNNDistance)


@pytest.fixture
def data(rng):
    y = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 4)) @ rng.normal(size=(4, 4)) + 2 * y[:, None]
    return X, y, X[:30] + rng.normal(size=(30, 4))


class Net(ClassifierMixin, BaseEstimator):
    """Probabilities, logits and features of known form; remembers its validation data."""

    def fit(self, X, y, validation=None):
        self.classes_, self.validation_ = np.unique(y), validation
        return self

    def transform(self, X):
        return np.asarray(X)[:, :3] ** 2

    def logits(self, X):
        return self.transform(X) - 1000

    def predict_proba(self, X):
        return softmax(self.logits(X), axis=1)


def test_scores_of_the_prediction(data):
    X, y, queries = data
    P = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(queries)
    expected = [1 - row.max() for row in P]
    np.testing.assert_allclose(MaxSoftmax().fit(X, y).uncertainty(queries), expected, atol=1e-12)
    expected = [-sum(p * np.log(p) for p in row) for row in P]
    np.testing.assert_allclose(PredictiveEntropy().fit(X, y).uncertainty(queries), expected)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 100.0])
def test_energy_against_logsumexp(data, temperature):
    X, y, queries = data
    logits = LogisticRegression(max_iter=1000).fit(X, y).decision_function(queries)
    expected = -temperature * logsumexp(logits / temperature, axis=1)
    energy = Energy(temperature=temperature).fit(X, y)
    np.testing.assert_allclose(energy.uncertainty(queries), expected, rtol=1e-12)


def test_energy_prefers_logits_and_does_not_overflow(data):
    X, y, _ = data
    energy = Energy(Net()).fit(X, y)
    np.testing.assert_allclose(energy.uncertainty(X), 1000 - logsumexp(X[:, :3] ** 2, axis=1))
    assert np.isfinite(energy.uncertainty(1e3 * X)).all()


def test_energy_of_two_classes_treats_them_alike(data):
    X, y, queries = data
    one, other = Energy().fit(X, y > 0), Energy().fit(X, y == 0)
    np.testing.assert_allclose(one.uncertainty(queries), other.uncertainty(queries), rtol=1e-5)
    margin = one.estimator_.decision_function(queries)
    np.testing.assert_allclose(one.uncertainty(queries), -np.log(2 * np.cosh(margin / 2)))


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_mahalanobis_against_a_naive_loop(data, offset):
    X, y, queries = data
    X, queries = X + offset, queries + offset
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    covariance = EmpiricalCovariance(assume_centered=True).fit(X - means[y])
    expected = [min((x - m) @ covariance.precision_ @ (x - m) for m in means) for x in queries]
    frozen = FrozenEstimator(LinearDiscriminantAnalysis().fit(X, y))
    method = Mahalanobis(frozen, features="passthrough", shrinkage=None).fit(X, y)
    np.testing.assert_allclose(method.uncertainty(queries), expected, rtol=1e-6)
    np.testing.assert_allclose(method.uncertainty(means), 0, atol=1e-9)
    assert (method.uncertainty(means) >= 0).all()


def test_ddu_against_scipy(data):
    X, y, queries = data
    expected = -logsumexp(
        [
            np.log((y == c).mean())
            + multivariate_normal(X[y == c].mean(axis=0), np.cov(X[y == c].T, bias=True)).logpdf(
                queries
            )
            for c in range(3)
        ],
        axis=0,
    )
    got = DDU(shrinkage=None).fit(X, y).uncertainty(queries)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("k", [1, 7, 150])
@pytest.mark.parametrize("p", [4, 40])
def test_knn_distance_against_brute_force(rng, k, p):
    y = rng.integers(0, 2, 150)
    X = rng.normal(size=(150, p))
    queries = np.concatenate([rng.normal(size=(20, p)), X[:3]])
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    expected = [
        np.sort(np.linalg.norm(unit - q / np.linalg.norm(q), axis=1))[k - 1] for q in queries
    ]
    got = KNNDistance(n_neighbors=k).fit(X, y).uncertainty(queries)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_rows_without_direction(rng):
    X = np.concatenate([rng.normal(size=(20, 3)), np.zeros((2, 3))])
    method = KNNDistance(n_neighbors=5).fit(X, np.arange(22) % 2)
    assert method.uncertainty(np.zeros((1, 3)))[0] == pytest.approx(1)


def test_features_are_those_of_the_estimator_unless_told_otherwise(data):
    X, y, queries = data
    for cls in FEATURED:
        own = cls(Net()).fit(X, y).uncertainty(queries)
        by_hand = cls(features="passthrough").fit(X[:, :3] ** 2, y).uncertainty(queries[:, :3] ** 2)
        np.testing.assert_allclose(own, by_hand, rtol=1e-9)
        pca = cls(Net(), features=PCA(2)).fit(X, y)
        by_hand = cls(features="passthrough").fit(pca.features_.transform(X), y)
        expected = by_hand.uncertainty(pca.features_.transform(queries))
        np.testing.assert_allclose(pca.uncertainty(queries), expected, rtol=1e-9)


def test_validation_goes_where_it_is_taken(data):
    X, y, queries = data
    held = (queries, y[:30])
    assert MaxSoftmax(Net()).fit(X, y, validation=held).estimator_.validation_ is held
    assert MaxSoftmax().fit(X, y, validation=held).score(X, y) > 0.5
    for cls in FEATURED:
        plain, given = cls().fit(X, y), cls().fit(X, y, validation=held)
        np.testing.assert_array_equal(plain.uncertainty(queries), given.uncertainty(queries))


def test_an_estimator_is_refitted_unless_frozen(data):
    X, y, queries = data
    fitted = LogisticRegression().fit(X[:60], y[:60])
    anew, frozen = MaxSoftmax(fitted).fit(X, y), MaxSoftmax(FrozenEstimator(fitted)).fit(X, y)
    P = fitted.predict_proba(queries)
    np.testing.assert_allclose(frozen.predict_proba(queries), P, rtol=1e-14)
    assert np.abs(anew.predict_proba(queries) - P).max() > 1e-3


def test_frozen_classifier_keeps_its_classes(data):
    X, y, _ = data
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    some = y < 2
    for cls in (MaxSoftmax, *FEATURED):
        method = cls(frozen).fit(X[some], y[some])
        assert method.predict_proba(X).shape == (150, 3)
        assert np.isfinite(method.uncertainty(X)).all()
    with pytest.raises(ValueError, match=r"labels \[7\] that the fitted estimator does not know"):
        MaxSoftmax(frozen).fit(X, np.where(y == 0, 7, y))


@pytest.mark.parametrize("kind", [MaxSoftmax, KNNDistance])
def test_labels_that_xgboost_does_not_take_are_encoded_and_decoded(data, kind):
    xgboost = pytest.importorskip("xgboost")
    X, y, queries = data
    names = np.array(["ant", "bee", "cat"])
    plain, named = (kind(xgboost.XGBClassifier(n_estimators=3)).fit(X, t) for t in (y, names[y]))
    np.testing.assert_array_equal(named.classes_, names)
    np.testing.assert_array_equal(named.predict(queries), names[plain.predict(queries)])
    np.testing.assert_array_equal(named.uncertainty(queries), plain.uncertainty(queries))
    assert named.calibrate(X, names[y]).predict_set(queries).shape == (30, 3)
