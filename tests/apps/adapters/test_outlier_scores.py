"""Scores of detectors that are higher for outliers, and models of this library with such scores."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from dipedl import DIPClassifier, OODDetector
from dipedl.apps.adapters import OutlierScoreDensity, PyODDetector
from dipedl.density import GDADensity
from dipedl.testing import density_checks

X, Y = load_iris(return_X_y=True)
FAR = X + 20


class Distance(BaseEstimator):
    """As PyOD has them: higher for outliers."""

    def fit(self, X, y=None):
        self.middle_ = X.mean(axis=0)
        return self

    def decision_function(self, X):
        with np.errstate(over="ignore"):
            return np.linalg.norm(X - self.middle_, axis=1)


class ByClass:
    """As pytorch-ood has them: tensors, and labels 0..k-1; no estimator of scikit-learn."""

    def fit_features(self, x, y):
        self.middles = [x[y == c].mean(dim=0) for c in range(int(y.max()) + 1)]
        return self

    def predict_features(self, x):
        import torch

        return torch.stack([(x - m).norm(dim=1) for m in self.middles]).amin(dim=0)


@pytest.mark.parametrize("check", density_checks(), ids=lambda c: c.__name__)
def test_the_density_keeps_the_contract(check):
    check(OutlierScoreDensity(Distance()))


def test_the_sign_is_turned():
    density = OutlierScoreDensity(Distance()).fit(X)
    np.testing.assert_array_equal(density.score_samples(X), -Distance().fit(X).decision_function(X))
    assert not hasattr(density.detector, "middle_")


def test_a_detector_of_features_gets_tensors_and_numbered_labels():
    pytest.importorskip("torch")
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    middles = np.stack([X[Y == c].mean(axis=0) for c in range(3)])
    expected = -np.linalg.norm(X[:, None] - middles, axis=2).min(axis=1)
    score = OutlierScoreDensity(ByClass()).fit(X, names).score_samples(X)
    assert score.dtype == np.float64
    np.testing.assert_allclose(score, expected, atol=1e-5)
    alone = OutlierScoreDensity(ByClass()).fit(X).score_samples(X)
    np.testing.assert_allclose(alone, -np.linalg.norm(X - X.mean(axis=0), axis=1), atol=1e-5)


def test_a_fitted_detector_stays_as_it_is():
    fitted = Distance().fit(X[:100])
    frozen = FrozenEstimator(OutlierScoreDensity(fitted))
    clf = DIPClassifier(density=frozen, features="passthrough").fit(X, Y)
    np.testing.assert_array_equal(clf.score_samples(FAR), -fitted.decision_function(FAR))
    with pytest.raises(NotFittedError):
        OutlierScoreDensity(Distance()).score_samples(X)


@pytest.mark.parametrize("detector", [IsolationForest(), GDADensity()], ids=str)
def test_what_scores_higher_for_inliers_is_refused(detector):
    with pytest.raises(TypeError, match=r"score_samples, higher for inliers: give it as it is"):
        OutlierScoreDensity(detector).fit(X)


@pytest.mark.parametrize("detector", [None, "knn", 3.0], ids=str)
def test_what_is_no_detector_is_refused(detector):
    with pytest.raises(TypeError, match=r"detector must have a method decision_function"):
        OutlierScoreDensity(detector).fit(X)


def test_a_model_has_the_names_and_signs_of_pyod():
    ours = OODDetector(DIPClassifier(density=GDADensity()), 0.1).fit(X)
    detector = PyODDetector(DIPClassifier(density=GDADensity()), contamination=0.1).fit(X)
    np.testing.assert_array_equal(detector.decision_function(X), -ours.score_samples(X))
    np.testing.assert_array_equal(detector.decision_scores_, detector.decision_function(X))
    np.testing.assert_array_equal(detector.predict(X) == 1, ours.predict(X) == -1)
    np.testing.assert_array_equal(detector.labels_, detector.predict(X))
    assert detector.threshold_ == -ours.offset_
    assert detector.predict(FAR).all()
    assert 0 < detector.labels_.mean() < 0.2
