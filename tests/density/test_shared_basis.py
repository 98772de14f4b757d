"""Covariances of one basis and variances of each class along it, against plain ones."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from scipy.stats import ortho_group

from dipedl import DIPClassifier
from dipedl.density import GDADensity, MahalanobisDensity
from dipedl.gaussians.factor import log_densities
from dipedl.gaussians.moments import Moments, shrinkage_intensity


@pytest.fixture
def data(rng):
    y = np.repeat([0, 1, 2], [80, 60, 40])
    X = rng.normal(size=(180, 4)) * [1, 2, 0.5, 3]
    for c in range(3):
        X[y == c] = X[y == c] @ rng.normal(size=(4, 4)) + rng.normal(size=4) * 3
    return X, y


def covariances(X, y, w, shrinkage):
    """By the definition, in numpy."""
    residuals = X - np.array([np.average(X[y == c], 0, w[y == c]) for c in range(3)])[y]
    tied = (residuals * w[:, None]).T @ residuals / w.sum()
    s = shrinkage_intensity(Moments.of(residuals, w), "oas")
    values, basis = np.linalg.eigh((1 - s) * tied + s * np.trace(tied) / 4 * np.eye(4))
    for c in range(3):
        own, weight = residuals[y == c] @ basis, w[y == c]
        variance = weight @ own**2 / weight.sum()
        moments = Moments.of(own / np.sqrt(values), weight, diagonal=True, higher=True)
        s = shrinkage_intensity(moments, shrinkage)
        level = (variance / values).mean()
        yield basis @ np.diag((1 - s) * variance + s * level * values) @ basis.T


@pytest.mark.parametrize("shrinkage", [None, 0.3, "oas", "ledoit-wolf"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("weighted", [False, True])
def test_against_scipy(data, rng, shrinkage, offset, weighted):
    X, y = data
    w = rng.random(len(X)) + 0.5 if weighted else np.ones(len(X))
    density = GDADensity("shared-basis", shrinkage)
    density.fit(X + offset, y, sample_weight=w if weighted else None)
    queries = np.vstack([X, 10 * X[:20]])
    expected = np.column_stack(
        [
            stats.multivariate_normal(np.average(X[y == c], 0, w[y == c]), C).logpdf(queries)
            for c, C in enumerate(covariances(X, y, w, shrinkage))
        ]
    )
    got = log_densities(density.factors_, queries + offset)
    np.testing.assert_allclose(got, expected, rtol=1e-9 if not offset else 1e-6)
    one_by_one = np.vstack([log_densities(density.factors_, row[None] + offset) for row in queries])
    np.testing.assert_allclose(one_by_one, got, rtol=1e-12)
    each = np.column_stack([f.log_density(queries + offset) for f in density.factors_])
    np.testing.assert_allclose(each, got, rtol=1e-9)


def test_turned_inputs_have_the_same_density(data, rng):
    X, y = data
    turn = ortho_group.rvs(4, random_state=0)
    expected = GDADensity("shared-basis").fit(X, y).score_samples(X)
    got = GDADensity("shared-basis").fit(X @ turn, y).score_samples(X @ turn)
    np.testing.assert_allclose(got, expected, rtol=1e-10)
    diag = GDADensity("diag").fit(X @ turn, y).score_samples(X @ turn)
    assert np.abs(diag - GDADensity("diag").fit(X, y).score_samples(X)).max() > 0.1


def white(rng, n, p):
    """Rows whose covariance is exactly the identity."""
    X = rng.normal(size=(n, p))
    X -= X.mean(axis=0)
    return np.linalg.qr(X)[0] * np.sqrt(n)


def test_is_the_full_one_where_covariances_commute_and_the_tied_one_where_they_agree(rng):
    y, turn = np.repeat([0, 1, 2], 50), ortho_group.rvs(5, random_state=1)
    means = rng.normal(size=(3, 5))[y]
    noise = np.vstack([white(rng, 50, 5) for _ in range(3)])
    scales = np.array([[1, 2, 3, 4, 5], [5, 1, 4, 2, 3], [2, 2, 1, 6, 1]], float)
    X = means + (noise * scales[y]) @ turn
    got = GDADensity("shared-basis", None).fit(X, y).score_samples(X)
    expected = GDADensity("full", None).fit(X, y).score_samples(X)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    X = means + (noise * scales[0]) @ turn
    got = GDADensity("shared-basis", None).fit(X, y).score_samples(X)
    expected = GDADensity("tied", None).fit(X, y).score_samples(X)
    np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_it_holds_one_matrix_for_all_classes(rng):
    k, p = 300, 200
    y = np.arange(10 * k) % k
    X = rng.normal(size=(len(y), p)).astype(np.float32)
    tracemalloc.start()
    GDADensity("shared-basis").fit(X, y).score_samples(X[:100])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.25 * 8 * k * p * p


def test_it_takes_no_batches_and_says_why(data):
    X, y = data
    density = GDADensity("shared-basis").fit(X, y)
    for name in ("partial_fit", "__add__"):
        assert not hasattr(density, name)
        with pytest.raises(AttributeError) as caught:
            getattr(density, name)
        assert "is no sum over rows" in str(caught.value.__cause__)
    with pytest.raises(AttributeError, match="__add__"):
        density + density
    with pytest.raises(AttributeError, match="partial_fit"):
        DIPClassifier(density=density).partial_fit(X, y)


def test_contributions_and_distance_to_the_nearest_mean(data):
    X, y = data
    density = MahalanobisDensity("shared-basis", None).fit(X, y)
    plain = list(covariances(X, y, np.ones(len(X)), None))
    for x, reading in zip(X[:10], density.explain_rows(X[:10], top=4), strict=True):
        parts = [d * np.linalg.solve(C, d) for d, C in zip(x - means(X, y), plain, strict=True)]
        near = min(parts, key=np.sum)
        assert reading["squared_distance"] == pytest.approx(near.sum())
        assert density.score_samples(x[None])[0] == pytest.approx(-near.sum() / 2)
        for part in reading["features"]:
            assert part["contribution"] == pytest.approx(near[part["feature"]], abs=1e-9)


def means(X, y):
    return np.array([X[y == c].mean(axis=0) for c in range(3)])
