"""MahalanobisDensity against loops that invert the covariance, and as a relative score."""

import numpy as np
import pytest

from dipedl.density import MahalanobisDensity

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
