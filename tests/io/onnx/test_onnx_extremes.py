"""Graphs at the edge of float64: what cannot be computed is flagged, and nothing is NaN."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import QuantileTransformer

from dipedl import DIPClassifier, OODDetector
from dipedl.density import GaussianDensity, GDADensity, KNNDensity
from dipedl.io.onnx import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")
X, Y = load_iris(return_X_y=True)
LARGEST = np.finfo(float).max
SIGNS = np.array([[1, 0, 0, 0], [0, -1, 0, 0], [1, 1, 1, 1], [1, -1, 1, -1], [-1, -1, 1, 0]])
EDGE = np.concatenate([size * SIGNS for size in (1e100, 1e154, 1e200, 1e308, LARGEST)])


def answers(model, path, rows):
    export_onnx(model, path)
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"X": rows}), strict=True))


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()], ids=str)
@pytest.mark.parametrize("density", [GDADensity(), KNNDensity(5)], ids=str)
@pytest.mark.parametrize("features", [None, "passthrough"])
def test_far_rows_are_flagged_and_answered_as_in_python(tmp_path, estimator, density, features):
    clf = DIPClassifier(estimator, density, features=features).fit(X, Y)
    found = answers(clf, tmp_path / "m.onnx", EDGE)
    assert not any(np.isnan(values).any() for values in found.values())
    assert found["ood"].all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = clf.predict_dirichlet(EDGE)
    np.testing.assert_allclose(found["probabilities"], expected.mean, atol=1e-9)
    np.testing.assert_allclose(found["vacuity"], expected.vacuity, atol=1e-9)


def test_features_that_hide_the_distance_hide_no_nan(tmp_path):
    """Quantiles are bounded, so that the density sees nothing; the classifier gives NaN."""
    features = QuantileTransformer(n_quantiles=20)
    clf = DIPClassifier(LinearDiscriminantAnalysis(), GaussianDensity(), features=features).fit(
        X, Y
    )
    found = answers(clf, tmp_path / "m.onnx", EDGE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        bare = clf.estimator_.predict_proba(EDGE)
        flags, P = clf.predict_ood(EDGE), clf.predict_proba(EDGE)
    broken = np.isnan(bare).any(axis=1)
    assert broken.any() and found["ood"][broken].all()
    np.testing.assert_array_equal(found["ood"], flags == -1)
    np.testing.assert_allclose(found["probabilities"], P, atol=1e-9)


def test_a_detector_flags_them_too(tmp_path):
    detector = OODDetector(DIPClassifier(density=GDADensity())).fit(X)
    found = answers(detector, tmp_path / "m.onnx", EDGE)
    assert found["ood"].all() and not np.isnan(found["score"]).any()
