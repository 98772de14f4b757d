"""Contributions of features to a Mahalanobis distance, against a plain inverse."""

import numpy as np
import pytest

from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity
from dipedl.gaussians.moments import pool, shrunk_covariance


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 6))
    X = rng.normal(size=(300, 6)) @ mixing + 100.0
    y = rng.integers(0, 3, 300)
    X += 3.0 * np.eye(6)[y]
    return X, y


def naive(density, c, x):
    """d_j (C^-1 d)_j of one row and class."""
    tied = density.covariance_type == "tied"
    m = pool(density.moments_) if tied else density.moments_[c]
    cov = shrunk_covariance(m, density.shrinkage_[c], density.target_[c])
    cov = np.diag(cov) if cov.ndim == 1 else cov
    d = x - density.moments_[c].mean
    return d * (np.linalg.inv(cov) @ d)


@pytest.mark.parametrize(
    "density",
    [
        GDADensity(),
        GDADensity("tied"),
        GDADensity("diag"),
        MahalanobisDensity(),
        GDADensity(shrinkage=None),
    ],
    ids=str,
)
def test_contributions_against_a_plain_inverse(density, rows):
    X, y = rows
    density.fit(X, y)
    new = X[:20] + np.linspace(0, 30, 20)[:, None]
    for x, reading in zip(new, density.explain_rows(new, top=2), strict=True):
        each = np.array([naive(density, c, x) for c in range(3)])
        nearest = each.sum(axis=1).argmin()
        assert reading["class"] == nearest
        expected = each[nearest]
        assert reading["squared_distance"] == pytest.approx(expected.sum())
        top = np.argsort(-expected)[:2]
        assert [f["feature"] for f in reading["features"]] == top.tolist()
        for f in reading["features"]:
            assert f["contribution"] == pytest.approx(expected[f["feature"]])
            assert f["value"] == x[f["feature"]]
        rest = expected.sum() - expected[top].sum()
        assert reading["rest"] == pytest.approx(rest, abs=1e-8 * expected.sum())


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_one_gaussian(covariance_type, rows):
    X, _ = rows
    density = GaussianDensity(covariance_type, shrinkage=None).fit(X)
    covariance = np.cov(X.T, ddof=0)
    if covariance_type == "diag":
        covariance = np.diag(np.diag(covariance))
    d = X[0] + 5.0 - X.mean(axis=0)
    (reading,) = density.explain_rows(X[:1] + 5.0, top=6)
    assert reading["class"] is None and reading["rest"] == pytest.approx(0, abs=1e-6)
    found = {f["feature"]: f["contribution"] for f in reading["features"]}
    expected = d * np.linalg.solve(covariance, d)
    np.testing.assert_allclose([found[j] for j in range(6)], expected, rtol=1e-8, atol=1e-8)


def test_distance_is_that_of_the_score(rows):
    X, _ = rows
    density = GaussianDensity().fit(X)
    distance = np.array([r["squared_distance"] for r in density.explain_rows(X)])
    scores = density.score_samples(X)
    np.testing.assert_allclose(-2 * (scores - scores[0]), distance - distance[0], atol=1e-8)


def test_what_is_expected_is_what_training_rows_have(rows):
    X, _ = rows
    readings = GaussianDensity(shrinkage=None).fit(X).explain_rows(X)
    distance = np.mean([r["squared_distance"] for r in readings])
    assert distance == pytest.approx(readings[0]["expected"])


@pytest.mark.filterwarnings("error")
def test_a_distance_that_overflows_is_infinite(rows):
    X, y = rows
    density = GDADensity().fit(X, y)
    far = X[:1].copy()
    far[0, 2] = 1e200
    (reading,) = density.explain_rows(far)
    assert reading["squared_distance"] == np.inf
    assert density.score_samples(far) == -np.inf
