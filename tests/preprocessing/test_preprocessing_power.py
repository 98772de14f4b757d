"""SignedPower: by its formula, as a member of scikit-learn, and what it is for."""

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl import DIPClassifier
from dipedl.datasets import load_digits
from dipedl.density import GaussianDensity, GDADensity, KNNDensity, RelativeDensity
from dipedl.preprocessing import LogitPixels, SignedPower

X = np.array([[-4.0, 0.0, 0.25], [9.0, -1.0, 1e300]])


@parametrize_with_checks([SignedPower(), SignedPower(0)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_formula():
    np.testing.assert_allclose(SignedPower(1).fit_transform(X), X)
    np.testing.assert_allclose(
        SignedPower(0.5).fit_transform(X), [[-2, 0, 0.5], [3, -1, 1e150]], rtol=1e-12
    )
    expected = [[-np.log(5), 0, np.log(1.25)], [np.log(10), -np.log(2), 300 * np.log(10)]]
    np.testing.assert_allclose(SignedPower(0).fit_transform(X), expected, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 0.1, 0.5, 1])
def test_odd_and_increasing(exponent):
    x = np.linspace(-3, 3, 101)[:, None]
    y = SignedPower(exponent).fit_transform(x)
    np.testing.assert_allclose(y, -y[::-1], atol=1e-15)
    assert (np.diff(y[:, 0]) > 0).all()


@pytest.mark.parametrize("exponent", [-0.1, 1.1, float("nan")])
def test_exponent_out_of_range(exponent):
    with pytest.raises(ValueError, match=r"exponent must lie in \[0, 1\], got"):
        SignedPower(exponent).fit(X)


def test_squares_of_normal_features_are_normal_again(rng):
    """log p of the powers minus the Jacobian is a log-density of the features, and a better one."""
    root = rng.normal(6, 1, size=(2000, 3))
    squares = root**2
    pipeline = make_pipeline(SignedPower(0.5), GaussianDensity()).fit(squares[:1000])
    score = pipeline.score_samples(squares[1000:])
    exact = stats.norm(6, 1).logpdf(root[1000:]).sum(axis=1)
    assert np.corrcoef(score, exact)[0, 1] > 0.99
    jacobian = np.log(2 * root[1000:]).sum(axis=1)
    plain = GaussianDensity().fit(squares[:1000]).score_samples(squares[1000:])
    assert (score - jacobian).mean() > plain.mean()


RECIPES = [
    make_pipeline(Normalizer(), GDADensity()),
    make_pipeline(Normalizer(), KNNDensity(10)),
    make_pipeline(StandardScaler(), GDADensity("tied")),
    make_pipeline(PCA(16, whiten=True, random_state=0), GDADensity()),
    make_pipeline(SignedPower(), GDADensity()),
    make_pipeline(SignedPower(), RelativeDensity()),
]


@pytest.mark.parametrize("density", RECIPES, ids=lambda p: "-".join(n for n, _ in p.steps))
def test_a_pipeline_is_a_density(density):
    data = load_digits()
    rows = np.flatnonzero(data.y_train >= 0)[:800]
    model = DIPClassifier(density=density, features="passthrough")
    model.fit(data.X_train[rows], data.y_train[rows])
    inverted = model.score_samples(1 - data.X_test)
    assert (np.median(model.score_samples(data.X_test)) > inverted).mean() > 0.95


def test_the_folder_lists_its_transformers():
    from dipedl import preprocessing

    assert preprocessing.__all__ == ["LogitPixels", "SignedPower"]
    assert preprocessing.LogitPixels is LogitPixels
