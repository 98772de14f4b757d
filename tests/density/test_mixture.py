"""GaussianMixtureDensity against scipy and scikit-learn's own mixture."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from dipedl.density import GaussianMixtureDensity


@pytest.fixture
def X(rng):
    centres = np.array([[0, 0, 0], [6, 0, 100], [0, 9, -100]])
    return centres[np.arange(150) % 3] + rng.normal(size=(150, 3)) * [1, 2, 30]


def full_covariances(mixture, p):
    """Covariances of every component as (k, p, p), whatever the form they are held in."""
    k, cov = mixture.n_components, mixture.covariances_
    return {
        "full": lambda: cov,
        "tied": lambda: np.array([cov] * k),
        "diag": lambda: np.array([np.diag(c) for c in cov]),
        "spherical": lambda: np.array([c * np.eye(p) for c in cov]),
    }[mixture.covariance_type]()


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_against_scipy_in_the_units_of_the_features(X, covariance_type):
    density = GaussianMixtureDensity(3, covariance_type, random_state=0).fit(X)
    mixture, mean, scale = density.mixture_, X.mean(axis=0), X.std(axis=0)
    by_component = np.column_stack(
        [
            stats.multivariate_normal(mean + m * scale, np.outer(scale, scale) * c).logpdf(X)
            for m, c in zip(mixture.means_, full_covariances(mixture, 3), strict=True)
        ]
    )
    expected = logsumexp(by_component + np.log(mixture.weights_), axis=1)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-10)
    assert density.score(X) == pytest.approx(expected.mean(), rel=1e-10)


def test_parameters_reach_scikit_learn(X):
    parameters = dict(
        n_components=4, covariance_type="diag", reg_covar=0.05, n_init=3, random_state=7
    )
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    reference = GaussianMixture(**parameters).fit(standard)
    density = GaussianMixtureDensity(**parameters).fit(X)
    np.testing.assert_allclose(density.mixture_.means_, reference.means_, rtol=1e-8, atol=1e-10)
    expected = reference.score_samples(standard) - np.log(X.std(axis=0)).sum()
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-8)


def test_unit_of_a_feature_is_only_a_jacobian(X):
    """reg_covar must weigh the same in any unit."""
    unit = np.array([1e-8, 1.0, 1e8])
    expected = GaussianMixtureDensity(3, random_state=0).fit(X).score_samples(X)
    got = GaussianMixtureDensity(3, random_state=0).fit(X * unit).score_samples(X * unit)
    np.testing.assert_allclose(got, expected - np.log(unit).sum(), rtol=1e-8, atol=1e-8)
