"""KernelDensity against scipy's gaussian_kde and a naive double loop."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from dipedl.density import KernelDensity


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
