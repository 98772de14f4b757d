"""Gaussians of all rows and of classes, Mahalanobis distances: scipy, scikit-learn and loops."""

import tracemalloc
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from scipy.stats import ortho_group
from sklearn.covariance import ledoit_wolf, oas
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl import DIPClassifier
from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity, RelativeDensity
from dipedl.density.base import fit_copy, leave_one_out, log_density
from dipedl.gaussians.factor import log_densities
from dipedl.gaussians.moments import Moments, pool, shrinkage_intensity, shrunk_covariance

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
def test_one_gaussian_against_scipy(X, covariance_type, shrinkage):
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
def test_fit_of_one_gaussian_is_partial_fit_is_plus(
    seed, p, cuts, offset, weighted, covariance_type, shrinkage
):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(5, size=(50, p)) * np.arange(1, p + 1) + offset
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


def test_rank_of_one_gaussian(rng):
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


TYPES = ["full", "tied", "diag"]


@pytest.fixture
def data(rng):
    """Three classes of 60, 30 and 20 rows, each with its own covariance."""
    y = np.repeat([2, 0, 1], [60, 30, 20])
    X = rng.normal(size=(110, 3)) * [1, 2, 0.5]
    for c in range(3):
        X[y == c] = X[y == c] @ rng.normal(size=(3, 3)) + rng.normal(size=3) * 2
    return X, y


def covariances(X, y, covariance_type):
    """Maximum-likelihood covariance of each class, in the order of the labels."""
    found = [np.cov(X[y == c].T, bias=True) for c in np.unique(y)]
    if covariance_type == "diag":
        return [np.diag(np.diag(cov)) for cov in found]
    if covariance_type == "tied":
        share = np.unique(y, return_counts=True)[1] / len(y)
        return [sum(w * cov for w, cov in zip(share, found, strict=True))] * len(found)
    return found


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("shrinkage", SHRINKAGE)
@pytest.mark.parametrize("class_weights", ["equal", "empirical"])
def test_against_scipy(data, covariance_type, shrinkage, class_weights):
    X, y = data
    density = GDADensity(covariance_type, shrinkage, class_weights).fit(X, y)
    weights = [1 / 3] * 3 if class_weights == "equal" else [30 / 110, 20 / 110, 60 / 110]
    by_class = np.column_stack(
        [
            stats.multivariate_normal(X[y == c].mean(axis=0), shrunk(cov, s)).logpdf(X)
            for c, cov, s in zip(
                range(3), covariances(X, y, covariance_type), density.shrinkage_, strict=True
            )
        ]
    )
    np.testing.assert_allclose(log_densities(density.factors_, X), by_class, rtol=1e-10)
    expected = logsumexp(by_class + np.log(weights), axis=1)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-10)
    assert density.score(X) == pytest.approx(expected.mean(), rel=1e-10)


@pytest.mark.parametrize(("rule", "reference"), [("oas", oas), ("ledoit-wolf", ledoit_wolf)])
def test_intensity_of_each_class_against_sklearn(data, rule, reference):
    X, y = data
    density = GDADensity("full", rule).fit(X, y)
    expected = [reference(X[y == c])[1] for c in density.classes_]
    np.testing.assert_allclose(density.shrinkage_, expected, rtol=1e-10)
    residuals = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
    tied = GDADensity("tied", rule).fit(X, y)
    np.testing.assert_allclose(tied.shrinkage_, np.full(3, reference(residuals)[1]), rtol=1e-10)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_one_class_is_one_gaussian(data, covariance_type):
    X, _ = data
    expected = GaussianDensity(covariance_type).fit(X).score_samples(X)
    score = GDADensity(covariance_type).fit(X, ["all"] * len(X)).score_samples(X)
    np.testing.assert_allclose(score, expected, rtol=1e-14)


def test_names_of_the_labels_do_not_matter(data):
    X, y = data
    expected = GDADensity().fit(X, y).score_samples(X)
    names = np.array(["zebra", "ape", "cow"])
    assert np.allclose(GDADensity().fit(X, names[y]).score_samples(X), expected, rtol=1e-13)
    assert GDADensity().fit(X, names[y]).classes_.tolist() == ["ape", "cow", "zebra"]


@given(
    seed=st.integers(0, 10**6),
    p=st.integers(1, 3),
    cuts=st.lists(st.integers(1, 59), max_size=6),
    offset=st.sampled_from([0.0, 1e3, -1e6, 1e6]),
    weighted=st.booleans(),
    covariance_type=st.sampled_from(TYPES),
    shrinkage=st.sampled_from(SHRINKAGE),
    class_weights=st.sampled_from(["equal", "empirical"]),
)
def test_fit_is_partial_fit_is_plus(
    seed, p, cuts, offset, weighted, covariance_type, shrinkage, class_weights
):
    """Small parts leave classes out: they are known to partial_fit, and unknown to ``+``."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    X = rng.standard_t(5, size=(60, p)) + offset + 2 * y[:, None]
    w = 0.5 + rng.random(60) if weighted else None
    new = GDADensity(covariance_type, shrinkage, class_weights)
    whole = GDADensity(**new.get_params()).fit(X, y, sample_weight=w)
    streamed, parts = GDADensity(**new.get_params()), []
    for rows in np.split(rng.permutation(60), sorted(set(cuts))):
        weights = None if w is None else w[rows]
        streamed.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weights)
        part = GDADensity(**new.get_params())
        parts.append(part.partial_fit(X[rows], y[rows], sample_weight=weights))
    for other in (streamed, reduce(add, parts)):
        for a, b in zip(other.moments_, whole.moments_, strict=True):
            np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=1e-9)
            np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other.shrinkage_, whole.shrinkage_, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other.target_, whole.target_, rtol=1e-10)
        got, expected = other.score_samples(X), whole.score_samples(X)
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_a_class_of_weight_zero_was_not_seen(data):
    X, y = data
    density = GDADensity().fit(X, y, sample_weight=(y != 1).astype(float))
    assert density.classes_.tolist() == [0, 2]
    expected = GDADensity().fit(X[y != 1], y[y != 1]).score_samples(X)
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-13)


def test_announced_class_without_samples(data):
    X, y = data
    density = GDADensity().partial_fit(X, y, classes=[0, 1, 2, 9])
    message = r"classes \[9\] were announced but no sample of them came"
    with pytest.raises(ValueError, match=message):
        density.rank_  # noqa: B018
    with pytest.raises(ValueError, match=message):
        density.score_samples(X)
    density.partial_fit(X[:10] + 5, np.full(10, 9))
    expected = GDADensity().fit(np.vstack([X, X[:10] + 5]), np.append(y, np.full(10, 9)))
    np.testing.assert_allclose(density.score_samples(X), expected.score_samples(X), rtol=1e-12)


def test_unseen_label_in_partial_fit(data):
    X, y = data
    density = GDADensity().partial_fit(X, y)
    before = density.score_samples(X)
    with pytest.raises(ValueError, match=r"labels \[7\] .* not among classes \[0, 1, 2\]"):
        density.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match=r"classes must stay \[0, 1, 2\] .* got \[0, 1, 7\]"):
        density.partial_fit(X[:2], [0, 1], classes=[0, 1, 7])
    assert np.array_equal(density.score_samples(X), before)


def test_class_with_fewer_samples_than_features(data):
    X, y = data
    keep = np.flatnonzero((y != 1) | (np.cumsum(y == 1) <= 2))
    X, y = X[keep], y[keep]
    message = (
        r"class 1: the covariance of 3 features is singular \(rank 1, n_samples = 2\) and "
        r"shrinkage is 0; use shrinkage='oas', covariance_type='tied' or 'diag'"
    )
    with pytest.raises(ValueError, match=message):
        GDADensity(shrinkage=None).fit(X, y)
    # Two samples look free of error to Ledoit and Wolf (scikit-learn says 0 too).
    assert ledoit_wolf(X[y == 1])[1] == 0.0
    with pytest.raises(ValueError, match=message):
        GDADensity(shrinkage="ledoit-wolf").fit(X, y)
    for remedy in (GDADensity(), GDADensity("tied", None), GDADensity("diag", None)):
        assert np.isfinite(remedy.fit(X, y).score_samples(X)).all()


@pytest.mark.parametrize("shrinkage", ["oas", "ledoit-wolf", 0.3])
@pytest.mark.parametrize("n", [1, 5])
def test_class_of_one_point_takes_the_pooled_trace(data, shrinkage, n):
    X, y = data
    X, y = np.vstack([X, np.full((n, 3), 4.0)]), np.append(y, np.full(n, 5))
    density = GDADensity(shrinkage=shrinkage).fit(X, y)
    scatter = sum(np.trace(np.cov(X[y == c].T, bias=True)) * (y == c).sum() for c in range(3))
    assert density.target_[3] == pytest.approx(scatter / len(X) / 3, rel=1e-12)
    assert density.shrinkage_[3] == 1.0
    expected = stats.multivariate_normal(np.full(3, 4.0), density.target_[3] * np.eye(3)).logpdf(X)
    np.testing.assert_allclose(log_densities(density.factors_, X)[:, 3], expected, rtol=1e-12)
    with pytest.raises(ValueError, match=rf"class 5: all samples are the same .*n_samples = {n}"):
        GDADensity(shrinkage=None).fit(X, y)
    assert np.isfinite(GDADensity("tied", None).fit(X, y).score_samples(X)).all()


def test_rank(data):
    X, y = data
    X = np.column_stack([X, np.where(y == 1, X[:, 0], X[:, 1] ** 2)])
    density = GDADensity(shrinkage=0.1).fit(X, y)
    assert density.rank_.tolist() == [4, 3, 4]
    tied = GDADensity("tied", shrinkage=0.1).fit(X, y)
    assert tied.rank_.tolist() == [4, 4, 4]


def test_matrices_that_cannot_fit_are_refused_before_they_are_made(data, monkeypatch):
    X, y = data
    monkeypatch.setattr("dipedl.gaussians.moments._ROOMY", 0)
    monkeypatch.setattr("dipedl.gaussians.moments.machine_memory", lambda: 8.0 * 3 * 3 * 5)
    with pytest.raises(MemoryError, match=r"'full' of 3 classes and 3 features takes .*'low-rank'"):
        GDADensity().fit(X, y)
    monkeypatch.setattr("dipedl.gaussians.moments.machine_memory", lambda: 8.0 * 3 * 3 * 6)
    GDADensity().fit(X, y)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_float32_rows_score_as_in_float64_to_a_thousandth_of_a_nat(rng, covariance_type):
    """Also far from zero, far from the data, and where float32 overflows."""
    X = (rng.normal(size=(400, 40)) @ rng.normal(size=(40, 40)) + 50).astype(np.float32)
    y = np.arange(400) % 2
    density = GDADensity(covariance_type).fit(X, y)
    expected = density.score_samples(X.astype(np.float64))
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=0, atol=1e-3)
    far = X * np.float32([[1e3], [1e25]] * 200)
    expected = density.score_samples(far.astype(np.float64))
    np.testing.assert_allclose(density.score_samples(far), expected, rtol=1e-5)


def test_float32_is_left_where_it_costs_digits(rng):
    """Two features that differ in the sixth digit: the score in float32 would be wrong by nats."""
    X = rng.normal(size=(300, 3))
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    X = X.astype(np.float32)
    density = GDADensity(shrinkage=None).fit(X, np.arange(300) % 2)
    assert [factor.in_float32 for factor in density.factors_] == [None, None]
    expected = density.score_samples(X.astype(np.float64))
    np.testing.assert_allclose(density.score_samples(X), expected, rtol=1e-12)


def test_tied_scores_of_classes_far_apart_against_each_class_alone(rng):
    """One product compares a row with all means; the square must not cancel."""
    y = np.repeat(np.arange(30), 20)
    X = rng.normal(size=(600, 4)) + 1e5 * rng.normal(size=(30, 4))[y]
    density = GDADensity("tied").fit(X, y)
    alone = np.column_stack([factor.log_density(X) for factor in density.factors_])
    own = np.arange(600), y
    np.testing.assert_allclose(log_densities(density.factors_, X)[own], alone[own], rtol=1e-9)
    np.testing.assert_allclose(log_densities(density.factors_, X), alone, rtol=1e-9)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_mahalanobis_against_a_plain_inverse(data, rng, covariance_type):
    X, y = data
    means, queries = (
        np.array([X[y == c].mean(axis=0) for c in range(3)]),
        5 * rng.normal(size=(20, 3)),
    )
    density = MahalanobisDensity(covariance_type, None).fit(X, y)
    expected = np.column_stack(
        [
            ((queries - m) @ np.linalg.inv(cov) * (queries - m)).sum(axis=1)
            for m, cov in zip(means, covariances(X, y, covariance_type), strict=True)
        ]
    )
    np.testing.assert_allclose(density.squared_distance(queries), expected, rtol=1e-8)
    np.testing.assert_allclose(density.score_samples(queries), -expected.min(axis=1) / 2, rtol=1e-8)
    far = MahalanobisDensity(covariance_type, None).fit(X + 1e6, y)
    at_means = far.score_samples(np.array([m.mean for m in far.moments_]))
    assert np.abs(at_means).max() < 1e-12 and far.score_samples(X + 1e6).max() <= 0


def covariances_of_one_basis(X, y, w, shrinkage):
    """By the definition, in numpy."""
    residuals = X - np.array([np.average(X[y == c], 0, w[y == c]) for c in range(3)])[y]
    tied = (residuals * w[:, None]).T @ residuals / w.sum()
    s = shrinkage_intensity(Moments.of(residuals, w), "oas")
    values, basis = np.linalg.eigh(
        (1 - s) * tied + s * np.trace(tied) / X.shape[1] * np.eye(X.shape[1])
    )
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
def test_one_basis_against_scipy(data, rng, shrinkage, offset, weighted):
    X, y = data
    w = rng.random(len(X)) + 0.5 if weighted else np.ones(len(X))
    density = GDADensity("shared-basis", shrinkage)
    density.fit(X + offset, y, sample_weight=w if weighted else None)
    queries = np.vstack([X, 10 * X[:20]])
    expected = np.column_stack(
        [
            stats.multivariate_normal(np.average(X[y == c], 0, w[y == c]), C).logpdf(queries)
            for c, C in enumerate(covariances_of_one_basis(X, y, w, shrinkage))
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
    turn = ortho_group.rvs(3, random_state=0)
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
    plain = list(covariances_of_one_basis(X, y, np.ones(len(X)), None))
    for x, reading in zip(X[:10], density.explain_rows(X[:10], top=4), strict=True):
        parts = [
            d * np.linalg.solve(C, d)
            for d, C in zip(x - means_of_classes(X, y), plain, strict=True)
        ]
        near = min(parts, key=np.sum)
        assert reading["squared_distance"] == pytest.approx(near.sum())
        assert density.score_samples(x[None])[0] == pytest.approx(-near.sum() / 2)
        for part in reading["features"]:
            assert part["contribution"] == pytest.approx(near[part["feature"]], abs=1e-9)


def means_of_classes(X, y):
    return np.array([X[y == c].mean(axis=0) for c in range(3)])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(6, 6))
    X = rng.normal(size=(300, 6)) @ mixing + 100.0
    y = rng.integers(0, 3, 300)
    X += 3.0 * np.eye(6)[y]
    return X, y


def naive_contributions(density, c, x):
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
        each = np.array([naive_contributions(density, c, x) for c in range(3)])
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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "density",
    [
        GDADensity(shrinkage=None),
        GDADensity("tied", shrinkage=None),
        GaussianDensity(shrinkage=None),
        RelativeDensity(GDADensity("tied", shrinkage=None), GaussianDensity(shrinkage=None)),
        make_pipeline(Normalizer(), GDADensity("tied", shrinkage=0.3)),
        GDADensity(shrinkage=None, class_weights="empirical"),
    ],
    ids=["full", "tied", "one", "ratio", "unit length", "frequencies"],
)
def test_scores_without_the_row_against_as_many_fits(rng, density, weighted):
    y = np.repeat([2, 5, 7], [30, 20, 10])
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + y[:, None]
    w = rng.integers(1, 4, 60).astype(float) if weighted else None
    found = leave_one_out(fit_copy(density, X, y, w), X, y, w)
    for i in range(60):
        others = np.arange(60) != i
        fit = fit_copy(density, X[others], y[others], None if w is None else w[others])
        # The target of a shrinkage, which moves by a share of one row, stays.
        close = 0.05 if isinstance(density, Pipeline) else 1e-9
        assert found[i] == pytest.approx(log_density(fit, X[[i]])[0], rel=close, abs=close)


@pytest.mark.parametrize("density", [GDADensity("diag"), GDADensity("shared-basis")])
def test_forms_that_take_new_fits_say_so(data, density):
    X, y = data
    assert leave_one_out(density.fit(X, y), X, y, None) is None
