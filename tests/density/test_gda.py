"""GDADensity against scikit-learn's QDA, LDA and mixture; classes that are missing or singular."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.covariance import ledoit_wolf, oas

from dipedl.density import GaussianDensity, GDADensity, MahalanobisDensity
from dipedl.gaussians.factor import log_densities

TYPES = ["full", "tied", "diag"]
SHRINKAGE = [None, 0.0, 0.3, 1.0, "oas", "ledoit-wolf"]


@pytest.fixture
def data(rng):
    """Three classes of 60, 30 and 20 rows, each with its own covariance."""
    y = np.repeat([2, 0, 1], [60, 30, 20])
    X = rng.normal(size=(110, 3)) * [1, 2, 0.5]
    for c in range(3):
        X[y == c] = X[y == c] @ rng.normal(size=(3, 3)) + rng.normal(size=3) * 2
    return X, y


def shrunk(cov, intensity):
    p = len(cov)
    return (1 - intensity) * cov + intensity * np.trace(cov) / p * np.eye(p)


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
