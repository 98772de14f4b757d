"""Kernel sums and mixtures against scipy, scikit-learn's own mixture and a naive double loop."""

import warnings
from operator import methodcaller

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

from dipedl.baselines import CoRP
from dipedl.density import GaussianMixtureDensity, KernelDensity


def naive(X, queries, bandwidth, weights=None):
    """One kernel a training row, its standard deviation in the units of the features."""
    w = np.ones(len(X)) if weights is None else weights
    mean = np.average(X, axis=0, weights=w)
    h = bandwidth * np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))
    logs = stats.norm.logpdf(queries[:, None], X, h).sum(axis=2)
    return logsumexp(logs, axis=1, b=w / w.sum())


@pytest.mark.parametrize("rule", ["scott", "silverman", 0.4])
def test_one_feature_against_scipy(rng, rule):
    x = rng.exponential(3.0, size=70)
    ours = KernelDensity(rule).fit(x[:, None])
    # scipy takes the standard deviation over n - 1.
    bessel = np.sqrt(69 / 70)
    plain = stats.gaussian_kde(x, rule)
    expected = stats.gaussian_kde(x, plain.factor * bessel).logpdf(x)
    assert ours.bandwidth_ == pytest.approx(plain.factor, rel=1e-12)
    np.testing.assert_allclose(ours.score_samples(x[:, None]), expected, rtol=1e-10)


@pytest.mark.parametrize("rule", ["scott", "silverman"])
def test_bandwidth_against_scipy_in_many_features(rng, rule):
    X = rng.normal(size=(50, 6))
    expected = stats.gaussian_kde(X.T, rule).factor
    assert KernelDensity(rule).fit(X).bandwidth_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 2, 4, 8])
@pytest.mark.parametrize("away", [0.0, 2.0, 10.0, 1e3])
def test_it_is_the_naive_sum_far_from_all_rows_too(rng, weighted, p, away):
    """A tree that bounds far contributions is 20 nats off at two deviations in 4 features."""
    unit = np.geomspace(1e-3, 1e3, p)
    X, w = rng.normal(size=(400, p)) * unit + 5, rng.random(400) if weighted else None
    density = KernelDensity().fit(X, sample_weight=w)
    queries = X[:20] + away * unit
    expected = naive(X, queries, density.bandwidth_, w)
    np.testing.assert_allclose(density.score_samples(queries), expected, rtol=1e-9, atol=1e-9)
    assert density.score(queries) == pytest.approx(expected.mean(), rel=1e-9)


def test_constant_feature_counts_as_one_of_unit_spread(rng):
    X = rng.normal(size=(40, 2))
    h = KernelDensity(0.5)
    # The kernel of the constant feature is a normal of standard deviation 0.5 at its peak.
    expected = h.fit(X).score_samples(X) - np.log(0.5 * np.sqrt(2 * np.pi))
    with_constant = np.column_stack([X, np.full(40, 7.0)])
    got = KernelDensity(0.5).fit(with_constant).score_samples(with_constant)
    np.testing.assert_allclose(got, expected, rtol=1e-10)


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


@pytest.mark.parametrize(
    "model",
    [KernelDensity(), GaussianMixtureDensity(2, random_state=0), CoRP(n_fourier=32)],
    ids=lambda model: type(model).__name__,
)
def test_the_output_that_scikit_learn_is_set_to_is_no_matter(rng, model):
    """Frames of its scaler were kept, and the sampler of Fourier features gave read-only ones."""
    pytest.importorskip("pandas")
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    ask = methodcaller("uncertainty" if hasattr(model, "uncertainty") else "score_samples", X)
    expected = ask(clone(model).fit(X, y))
    with config_context(transform_output="pandas"):
        np.testing.assert_array_equal(ask(model.fit(X, y)), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        np.testing.assert_array_equal(ask(model), expected)
