"""GaussianDensity against scipy, scikit-learn's covariances and naive loops; what is singular."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.covariance import ledoit_wolf, oas

from dipedl.density import GaussianDensity

SHRINKAGE = [None, 0.0, 0.3, 1.0, "oas", "ledoit-wolf"]


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=4)


def shrunk(cov, intensity):
    p = len(cov)
    return (1 - intensity) * cov + intensity * np.trace(cov) / p * np.eye(p)


def naive_diagonal_intensity(X, rule):
    """Sampling error of the variances over error plus spread, entry by entry."""
    n, p = X.shape
    d = X - X.mean(axis=0)
    variance = [sum(d[i, j] ** 2 for i in range(n)) / n for j in range(p)]
    mean = sum(variance) / p
    spread = sum((v - mean) ** 2 for v in variance)
    if rule == "oas":
        error = sum(2 * v**2 / n for v in variance)
        return error / (error + spread)
    error = sum((d[i, j] ** 2 - variance[j]) ** 2 for i in range(n) for j in range(p)) / n**2
    return min(error / spread, 1.0)


@pytest.mark.parametrize("shrinkage", SHRINKAGE)
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_against_scipy(X, covariance_type, shrinkage):
    density = GaussianDensity(covariance_type, shrinkage).fit(X)
    cov = np.cov(X.T, bias=True) * (np.eye(4) if covariance_type == "diag" else 1)
    normal = stats.multivariate_normal(X.mean(axis=0), shrunk(cov, density.shrinkage_))
    np.testing.assert_allclose(density.score_samples(X * 3), normal.logpdf(X * 3), rtol=1e-11)
    assert density.score(X * 3) == pytest.approx(normal.logpdf(X * 3).mean(), rel=1e-11)


@pytest.mark.parametrize(("n", "p"), [(60, 4), (10, 30), (3, 2), (500, 2)])
@pytest.mark.parametrize(("rule", "reference"), [("oas", oas), ("ledoit-wolf", ledoit_wolf)])
def test_intensity_against_sklearn(rng, n, p, rule, reference):
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 7
    covariance, intensity = reference(X)
    density = GaussianDensity(shrinkage=rule).fit(X)
    assert density.shrinkage_ == pytest.approx(intensity, rel=1e-10)
    expected = stats.multivariate_normal(X.mean(axis=0), covariance).logpdf(X)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-9)


@pytest.mark.parametrize("rule", ["oas", "ledoit-wolf"])
@pytest.mark.parametrize(("n", "p"), [(60, 4), (8, 20)])
def test_diagonal_intensity_against_naive_loops(rng, n, p, rule):
    X = rng.standard_t(6, size=(n, p)) * np.linspace(1, 3, p)
    expected = naive_diagonal_intensity(X, rule)
    assert 0 < expected < 1
    assert GaussianDensity("diag", rule).fit(X).shrinkage_ == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize(
    ("shrinkage", "unit"),
    [("oas", 1e-140), ("oas", 1e140), ("ledoit-wolf", 1e-60), ("ledoit-wolf", 1e60)],
)
def test_intensity_does_not_depend_on_the_unit(X, covariance_type, shrinkage, unit):
    plain = GaussianDensity(covariance_type, shrinkage).fit(X).shrinkage_
    assert 0 < plain < 1
    again = GaussianDensity(covariance_type, shrinkage).fit(X * unit).shrinkage_
    assert again == pytest.approx(plain, rel=1e-10)


@pytest.mark.parametrize("rule", ["oas", "ledoit-wolf"])
def test_one_feature_has_nothing_to_shrink_to(rng, rule):
    X = rng.normal(size=(5, 1))
    assert GaussianDensity(shrinkage=rule).fit(X).shrinkage_ == 0.0


def test_equal_variances_are_shrunk_fully():
    """A covariance that already is a multiple of the identity: no spread to keep."""
    X = np.vstack([np.eye(2), -np.eye(2)])
    assert GaussianDensity(shrinkage="oas").fit(X).shrinkage_ == 1.0
    assert GaussianDensity("diag", shrinkage="oas").fit(X).shrinkage_ == 1.0
    assert GaussianDensity(shrinkage="ledoit-wolf").fit(X).shrinkage_ == ledoit_wolf(X)[1] == 0.0


@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 4),
    cuts=st.lists(st.integers(1, 49), max_size=6),
    offset=st.sampled_from([0.0, 1e3, -1e6, 1e6]),
    weighted=st.booleans(),
    covariance_type=st.sampled_from(["full", "diag"]),
    shrinkage=st.sampled_from(SHRINKAGE),
)
def test_fit_is_partial_fit_is_plus(seed, p, cuts, offset, weighted, covariance_type, shrinkage):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(50, p)) + offset
    w = 0.5 + rng.random(50) if weighted else None
    whole = GaussianDensity(covariance_type, shrinkage).fit(X, sample_weight=w)
    streamed = GaussianDensity(covariance_type, shrinkage)
    parts = []
    for rows in np.split(rng.permutation(50), sorted(set(cuts))):
        weights = None if w is None else w[rows]
        streamed.partial_fit(X[rows], sample_weight=weights)
        part = GaussianDensity(covariance_type, shrinkage)
        parts.append(part.partial_fit(X[rows], sample_weight=weights))
    merged = parts.pop()
    while parts:
        merged = merged + parts.pop()
    for other in (streamed, merged):
        np.testing.assert_allclose(other.moments_.mean, whole.moments_.mean, rtol=0, atol=1e-9)
        got, expected = other.moments_.covariance, whole.moments_.covariance
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        assert other.shrinkage_ == pytest.approx(whole.shrinkage_, rel=1e-10, abs=1e-10)
        got, expected = other.score_samples(X), whole.score_samples(X)
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_mixed_units_without_shrinkage(rng):
    """Features from 1e-8 to 1e8, correlated: as if all had the same unit, less the Jacobian."""
    unit = np.logspace(-8, 8, 5)
    Z = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)) + 3
    expected = stats.multivariate_normal(Z.mean(axis=0), np.cov(Z.T, bias=True)).logpdf(Z)
    density = GaussianDensity(shrinkage=None).fit(Z * unit)
    expected = expected - np.log(unit).sum()
    np.testing.assert_allclose(density.score_samples(Z * unit), expected, rtol=1e-11, atol=1e-10)
    assert density.rank_ == 5


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_far_points_are_minus_infinity(rng, covariance_type):
    X = 1e-3 * rng.normal(size=(60, 40)) @ rng.normal(size=(40, 40))
    density = GaussianDensity(covariance_type, None).fit(X)
    signs = np.resize([1.0, -1.0], 40)
    # 1e307 over a standard deviation of 1e-3 is inf already before it is squared.
    far = np.array([np.full(40, 1e200), np.full(40, -1e200), 1e300 * signs, 1e307 * signs])
    assert (density.score_samples(far) == -np.inf).all()
    near = rng.normal(size=(1, 40))
    alone = density.score_samples(near)
    together = density.score_samples(np.vstack([far, near, far]))
    assert together[4] == pytest.approx(alone[0], rel=1e-12)


def test_rank(rng):
    Z = rng.normal(size=(30, 3))
    X = np.column_stack([Z, Z[:, 0] + Z[:, 1], np.full(30, 2.0), 1e6 * rng.normal(size=30)])
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    density = GaussianDensity(shrinkage=0.2).fit(X)
    assert density.rank_ == np.linalg.matrix_rank(scaled) == 4
    diagonal = GaussianDensity("diag", shrinkage=0.2).fit(X)
    assert diagonal.rank_ == 5
    constant = GaussianDensity(shrinkage=0.5).partial_fit(np.ones((3, 2)))
    assert constant.rank_ == 0


def test_stream_recovers_from_a_singular_start(rng):
    """partial_fit must not refuse a chunk of one row: only scoring needs a covariance."""
    X = rng.normal(size=(20, 3))
    density = GaussianDensity(shrinkage=None).partial_fit(X[:1])
    with pytest.raises(ValueError, match="the same point"):
        density.score_samples(X)
    expected = GaussianDensity(shrinkage=None).fit(X).score_samples(X)
    got = density.partial_fit(X[1:]).score_samples(X)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_merge_keeps_the_feature_names(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    merged = GaussianDensity().fit(frame) + GaussianDensity().fit(frame + 1)
    assert merged.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        merged.score_samples(frame.rename(columns={"a": "z"}))
