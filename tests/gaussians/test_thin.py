"""Wide data: what is held by rows is what a dense matrix would give."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy import stats

from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from dipedl.gaussians.factor import factorise
from dipedl.gaussians.moments import Moments, rank

P = 300


@pytest.fixture
def wide(rng):
    return rng.normal(size=(40, P)) * np.geomspace(0.1, 3, P) + 5


def test_wide_rows_are_held_and_their_scatter_is_the_same(wide):
    m = Moments.of(wide, higher=True)
    assert m.thin and m.scatter.shape == (40, P)
    np.testing.assert_allclose(m.covariance, np.cov(wide.T, bias=True), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(m.variance, wide.var(axis=0), rtol=1e-11)
    assert m.trace == pytest.approx(40 * wide.var(axis=0).sum(), rel=1e-12)
    assert rank(m) == 39


@pytest.mark.parametrize("parts", [2, 7])
@pytest.mark.parametrize("n", [40, 400])
def test_any_chunking_is_the_whole_thin_or_dense(rng, parts, n):
    X, w = rng.normal(size=(n, P)) + 3, rng.random(n) + 0.5
    whole = Moments.of(X, w, higher=True)
    pieces = [
        Moments.of(x, v, higher=True)
        for x, v in zip(np.array_split(X, parts), np.array_split(w, parts), strict=True)
    ]
    merged = reduce(add, pieces)
    assert whole.thin == merged.thin == (n == 40)
    np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(merged.higher.cubic, whole.higher.cubic, rtol=1e-8, atol=1e-7)
    np.testing.assert_allclose(merged.higher.quartic, whole.higher.quartic, rtol=1e-10)


def test_distances_against_a_plain_inverse(wide, rng):
    m = Moments.of(wide)
    factor = factorise(m, 0.1, 2.0, "all")
    C = 0.9 * np.cov(wide.T, bias=True) + 0.2 * np.eye(P)
    queries = np.vstack([wide[:5], rng.normal(size=(5, P)) * 100, 1e6 * rng.normal(size=(2, P))])
    D = queries - wide.mean(axis=0)
    solved = np.linalg.solve(C, D.T).T
    np.testing.assert_allclose(factor.squared_distance(queries), (D * solved).sum(1), rtol=1e-9)
    np.testing.assert_allclose(factor.contributions(queries[:10]), (D * solved)[:10], atol=1e-6)
    expected = stats.multivariate_normal(wide.mean(axis=0), C).logpdf(queries[:10])
    np.testing.assert_allclose(factor.log_density(queries[:10]), expected, rtol=1e-9)
    W = factor.array
    np.testing.assert_allclose(W.T @ W @ C, np.eye(P), atol=1e-9)


def test_a_row_that_is_too_far_for_a_float_is_infinitely_far(wide):
    density = GaussianDensity().fit(wide)
    with np.errstate(all="raise"):
        assert density.score_samples(np.full((1, P), 1e200)) == -np.inf


@pytest.mark.parametrize(
    "density",
    [
        GDADensity(),
        GDADensity("tied", shrinkage="ledoit-wolf"),
        GDADensity(shrinkage="ledoit-wolf"),
        GaussianDensity(),
        MahalanobisDensity(),
        RelativeDensity(),
    ],
    ids=str,
)
def test_scores_are_those_of_the_dense_form(wide, density, monkeypatch):
    y = np.arange(40) % 2
    queries = np.vstack([wide[:7] + 0.1, 3 * wide[:3]])
    thin = density.fit(wide, y).score_samples(queries)
    monkeypatch.setattr("dipedl.gaussians.moments.WIDE", P + 1)
    dense = density.fit(wide, y).score_samples(queries)
    np.testing.assert_allclose(thin, dense, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("density", [GDADensity(shrinkage=None), GaussianDensity(shrinkage=0.0)])
def test_without_shrinkage_it_is_singular_as_ever(wide, density):
    with pytest.raises(ValueError, match=r"covariance of 300 features is singular \(rank \d+"):
        density.fit(wide, np.arange(40) % 2)
