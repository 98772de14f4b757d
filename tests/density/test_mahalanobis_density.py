"""MahalanobisDensity against loops that invert the covariance, and as a relative score."""

import numpy as np
import pytest

from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from dipedl.gaussians.factor import log_densities

K, P = 3, 4


@pytest.fixture
def rows(rng):
    y = np.repeat(np.arange(K), (50, 70, 90))
    scale = np.array([1.0, 2.0, 0.5])[y][:, None]
    centres = 3 * rng.normal(size=(K, P))
    return centres[y] + scale * (rng.normal(size=(len(y), P)) @ rng.normal(size=(P, P))), y


def naive(X, y, queries, covariance_type):
    residuals = X - np.array([X[y == c].mean(axis=0) for c in y])
    distances = []
    for c in range(K):
        of = residuals if covariance_type == "tied" else residuals[y == c]
        covariance = of.T @ of / len(of)
        if covariance_type == "diag":
            covariance = np.diag(np.diag(covariance))
        inverse, mean = np.linalg.inv(covariance), X[y == c].mean(axis=0)
        distances.append([(q - mean) @ inverse @ (q - mean) for q in queries])
    return np.transpose(distances)


@pytest.mark.parametrize("covariance_type", ["tied", "full", "diag"])
def test_against_naive_loops(rows, rng, covariance_type):
    X, y = rows
    queries = 5 * rng.normal(size=(20, P))
    density = MahalanobisDensity(covariance_type, None).fit(X, y)
    expected = naive(X, y, queries, covariance_type)
    np.testing.assert_allclose(density.squared_distance(queries), expected, rtol=1e-8)
    np.testing.assert_allclose(density.score_samples(queries), -expected.min(axis=1) / 2, rtol=1e-8)


def test_zero_at_a_class_mean_and_never_above(rows):
    X, y = rows
    density = MahalanobisDensity().fit(X + 1e6, y)
    means = np.array([m.mean for m in density.moments_])
    assert np.abs(density.score_samples(means)).max() < 1e-12
    assert density.score_samples(X + 1e6).max() <= 0


def test_a_wide_and_a_narrow_class_differ_from_gda_by_the_determinant_only(rows):
    X, y = rows
    gda = GDADensity("full").fit(X, y)
    distance = MahalanobisDensity("full").fit(X, y).squared_distance(X)
    gap = log_densities(gda.factors_, X) + distance / 2
    np.testing.assert_allclose(gap, np.broadcast_to(gap[0], gap.shape), rtol=1e-9)
    assert np.ptp(gap[0]) > 1


def test_with_a_background_it_is_the_published_relative_score(rows, rng):
    """min_c M_c - M_0 of Ren et al. 2021, up to sign, factor and constant."""
    X, y = rows
    queries = 5 * rng.normal(size=(30, P))
    one = np.zeros(len(X))
    published = (
        MahalanobisDensity().fit(X, y).squared_distance(queries).min(axis=1)
        - MahalanobisDensity().fit(X, one).squared_distance(queries)[:, 0]
    )
    score = (
        RelativeDensity(MahalanobisDensity(), GaussianDensity()).fit(X, y).score_samples(queries)
    )
    gap = score + published / 2
    np.testing.assert_allclose(gap, gap[0], rtol=1e-8, atol=1e-8)
