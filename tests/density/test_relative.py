"""RelativeDensity against the relative Mahalanobis score, written out, and with other parts."""

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl.density import (
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KNNDensity,
    RelativeDensity,
)

K, P = 3, 4


@pytest.fixture
def rows(rng):
    y = np.repeat(np.arange(K), (50, 70, 90))
    centres = 3 * rng.normal(size=(K, P))
    return centres[y] + rng.normal(size=(len(y), P)) @ rng.normal(size=(P, P)), y


def squared_distance(X, mean, covariance):
    gap = X - mean
    return np.einsum("ij,jk,ik->i", gap, np.linalg.inv(covariance), gap)


def test_tied_covariance_is_the_relative_mahalanobis_score(rows, rng):
    """Ren et al. 2021: M_c with one covariance of the residuals, M_0 with that of all rows."""
    X, y = rows
    means = np.array([X[y == c].mean(axis=0) for c in range(K)])
    within = (X - means[y]).T @ (X - means[y]) / len(X)
    total = np.cov(X.T, bias=True)
    queries = 5 * rng.normal(size=(40, P))
    relative = np.column_stack([squared_distance(queries, m, within) for m in means])
    relative -= squared_distance(queries, X.mean(axis=0), total)[:, None]
    constant = (np.linalg.slogdet(total)[1] - np.linalg.slogdet(within)[1]) / 2
    density = RelativeDensity(GDADensity("tied", None), GaussianDensity(shrinkage=None)).fit(X, y)
    score = density.score_samples(queries)
    expected = logsumexp(-relative / 2, axis=1) - np.log(K) + constant
    np.testing.assert_allclose(score, expected, rtol=1e-9)
    # The published score is the nearest class alone: the mean of K terms is within log K of it.
    nearest = -relative.min(axis=1) / 2 + constant
    np.testing.assert_array_less(score, nearest + 1e-6)
    np.testing.assert_array_less(nearest - np.log(K), score + 1e-6)


def test_defaults_are_tied_classes_over_one_gaussian(rows):
    X, y = rows
    expected = GDADensity("tied").fit(X, y).score_samples(X) - GaussianDensity().fit(
        X
    ).score_samples(X)
    np.testing.assert_allclose(RelativeDensity().fit(X, y).score_samples(X), expected)


def test_a_frozen_background_keeps_its_own_rows(rows, rng):
    X, y = rows
    broad = GaussianDensity().fit(10 * rng.normal(size=(100, P)))
    density = RelativeDensity(background=FrozenEstimator(broad)).fit(X, y)
    expected = GDADensity("tied").fit(X, y).score_samples(X) - broad.score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected)


def test_parts_may_be_pipelines_and_need_no_labels(rows):
    X, _ = rows
    parts = make_pipeline(Normalizer(), KNNDensity(5)), make_pipeline(Normalizer(), KNNDensity(50))
    density = RelativeDensity(*parts).fit(X)
    expected = parts[0].fit(X).score_samples(X) - parts[1].fit(X).score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected)


def test_folds_keep_the_settled_shrinkage(rows):
    X, y = rows
    density = RelativeDensity().fit(X, y)
    copy = density.clone_with_selected().fit(X[::2], y[::2])
    assert copy.density_.shrinkage_[0] == pytest.approx(density.density_.shrinkage_[0])
    assert copy.background_.shrinkage_ == density.background_.shrinkage_
    random = RelativeDensity(GaussianMixtureDensity(2), GaussianMixtureDensity(1)).fit(X)
    assert random.clone_with_selected().density.n_components == 2
