"""Normalisers, thresholds and folds: definitions, weights, sources, and the in-sample effect."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import FunctionTransformer

from dipedl.crossfit import content_folds, row_hash
from dipedl.density import GDADensity
from dipedl.evidence import (
    Identity,
    RankNormal,
    RobustZScore,
    ZScore,
    alarm_threshold,
    log_evidence,
    weighted_quantile,
)
from dipedl.evidence_model import EvidenceModel

NORMALIZERS = [ZScore, RobustZScore, RankNormal, Identity]


def test_log_evidence_is_the_logarithm_of_the_pseudo_count():
    z = np.array([-30.0, 0.0, 2.0])
    np.testing.assert_allclose(np.exp(log_evidence(z, 1000, 0.5)), 1000 * 0.5 * np.exp(z))
    np.testing.assert_allclose(
        np.exp(log_evidence(z, 1000, 0.5, 100)), [500 * np.exp(-30), 100, 100]
    )


def test_half_of_the_confidence_is_lost_where_the_paper_says():
    """u = 1/2 at z = log(K / (gamma n)): -8.294 for K = 10, n = 40,000; u(0) = 2.5e-4."""
    evidence = np.exp(log_evidence(np.array([np.log(10 / 40_000), 0.0]), 40_000))
    np.testing.assert_allclose(np.log(10 / 40_000), -8.294, atol=1e-3)
    np.testing.assert_allclose(10 / (10 + evidence), [0.5, 2.5e-4], rtol=1e-3)


def test_z_score_and_robust_z_score_by_their_definition(rng):
    s = rng.gamma(2, 3, 501)
    np.testing.assert_allclose(ZScore().fit(s).transform(s), stats.zscore(s))
    robust = RobustZScore().fit(s)
    mad = stats.median_abs_deviation(s, scale="normal")
    np.testing.assert_allclose(robust.transform(s), (s - np.median(s)) / mad)


def test_robust_statistics_ignore_gross_outliers(rng):
    s = rng.normal(size=500)
    spoiled = np.concatenate([s, np.full(20, -1e6)])
    moved = [abs(n().fit(spoiled).location_ - n().fit(s).location_) for n in (RobustZScore, ZScore)]
    assert moved[0] < 0.1 and moved[1] > 1e4


def test_rank_gives_normal_scores_inside_and_straight_tails(rng):
    s = rng.gamma(2, 3, 2000)
    rank = RankNormal().fit(s)
    z = rank.transform(s)
    assert stats.kstest(z, "norm").pvalue > 0.99
    far = np.array([-1e6, -2e6, 1e6, 2e6])
    slope = np.diff(rank.transform(far))[[0, 2]] / np.diff(far)[[0, 2]]
    np.testing.assert_allclose(slope, 1 / s.std())
    np.testing.assert_array_equal(rank.transform([-np.inf]), [-np.inf])


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@given(data=arrays(np.int64, 30, elements=st.integers(-10_000_000, 10_000_000), unique=True))
def test_every_normalizer_is_strictly_increasing(normalizer, data):
    z = normalizer().fit(data / 1e3).transform(np.linspace(-2e4, 2e4, 401))
    assert (np.diff(z) > 0).all()


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_a_weight_is_a_repetition(normalizer, rng):
    s, w = rng.normal(size=80), rng.integers(0, 4, 80)
    x = np.linspace(-4, 4, 50)
    weighted = normalizer().fit(s, w)
    repeated = normalizer().fit(np.repeat(s, w))
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), rtol=1e-12)
    assert weighted.n_ == repeated.n_ == w.sum()


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_normalizers_refuse_what_they_cannot_use(normalizer):
    with pytest.raises(NotFittedError):
        normalizer().transform([0.0])
    for bad, message in (
        ([], "non-empty 1-d"),
        ([[1.0]], "non-empty 1-d"),
        ([1.0, -np.inf], "must be finite.*got -inf from the log-densities given to fit"),
        ([1.0, np.nan], "must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            normalizer().fit(bad)
    if normalizer is not Identity:
        with pytest.raises(ValueError, match=r"must vary.*use normalizer=Identity\(\)"):
            normalizer().fit([2.0, 2.0, 2.0])


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.integers(-5, 5)),
    st.floats(0.01, 1),
    st.randoms(use_true_random=False),
)
def test_weighted_quantile_against_numpy_on_repeated_values(values, q, random):
    w = np.array([random.randint(0, 3) for _ in values])
    w[0] += 1
    expected = np.quantile(np.repeat(values, w), q - 1e-12, method="inverted_cdf")
    assert weighted_quantile(values, q, w) == expected


def test_alarm_threshold_keeps_its_rate_on_new_points(rng):
    """P(new score < threshold) <= rate, and > rate - 1/(n + 1): averaged over calibration sets."""
    n, rate, trials = 40, 0.1, 4000
    flagged = 0.0
    for _ in range(trials):
        flagged += stats.norm.cdf(alarm_threshold(rng.normal(size=n), rate))
    mean = flagged / trials
    error = 4 * np.sqrt(rate * (1 - rate) / n / trials)
    assert rate - 1 / (n + 1) - error < mean < rate + error


def test_alarm_threshold_with_too_few_scores_flags_nothing():
    assert alarm_threshold(np.arange(9.0), 0.05) == -np.inf
    assert alarm_threshold(np.arange(19.0), 0.05) == 0.0
    assert alarm_threshold(np.arange(99.0), 0.05) == 4.0
    assert alarm_threshold(np.array([5.0, 7.0]), 0.5, np.array([3.0, 4.0])) == 7.0


def test_equal_rows_have_equal_hashes_whatever_their_place(rng):
    X = rng.normal(size=(3000, 20))
    h = row_hash(X)
    assert len(np.unique(h)) == 3000
    order = rng.permutation(3000)
    np.testing.assert_array_equal(row_hash(X[order]), h[order])
    np.testing.assert_array_equal(row_hash(np.array([[0.0]])), row_hash(np.array([[-0.0]])))
    assert (row_hash(X, 1) != h).any()


def test_folds_are_balanced_stratified_and_spread_copies(rng):
    X = np.repeat(rng.normal(size=(60, 3)), 5, axis=0)
    y = np.repeat(np.arange(60) % 2, 5)
    fold = content_folds(X, y, 5)
    assert (np.sort(fold.reshape(60, 5), axis=1) == np.arange(5)).all()
    order = rng.permutation(300)
    again = content_folds(X[order], y[order], 5)
    held = [np.sort(row_hash(X)[fold == j]).tolist() for j in range(5)]
    assert held == [np.sort(row_hash(X[order])[again == j]).tolist() for j in range(5)]
    many = content_folds(rng.normal(size=(150, 2)), np.repeat(np.arange(50), 3), 5)
    assert (np.bincount(many) == 30).all()


def test_rare_classes_are_never_held_out():
    X = np.arange(12.0)[:, None]
    y = np.array([0] * 10 + [1] * 2)
    fold = content_folds(X, y, 5)
    assert (fold[10:] == -1).all() and (fold[:10] >= 0).all()


def test_in_sample_statistics_push_held_out_points_down_by_several_sd():
    """A Gaussian of many dimensions is far too pleased with the points it was fitted on.

    The default (cross-fitted) statistics give held-out points a mean z near 0; the paper's
    in-sample statistics put the very same points several standard deviations down. What is left
    is the price of folds: a density fitted on 4 of 5 rows is a little worse than the final one.
    """
    rng = np.random.default_rng(8)
    p, n = 120, 240
    X, y = rng.normal(size=(2 * n, p)), np.arange(2 * n) % 2
    X_new = rng.normal(size=(2000, p))
    density = GDADensity(shrinkage=None)
    z = {}
    for cv in ("in-sample", 5, 20):
        model = EvidenceModel(density, "passthrough", cv=cv).fit(X, y)
        z[cv] = model.normalize(model.score_samples(X_new)).mean()
    assert z["in-sample"] < -5
    assert abs(z[5]) < 1.5 and abs(z[20]) < 0.5


def test_the_source_of_every_statistic_is_stated(rng):
    X, y = rng.normal(size=(50, 2)), np.arange(50) % 2
    sources = {
        cv: EvidenceModel(cv=c).fit(X, y).normalizer_.source_
        for cv, c in (
            ("int", 5),
            ("in", "in-sample"),
            ("split", ShuffleSplit(1, test_size=10, random_state=0)),
        )
    }
    assert sources["int"] == "5-fold cross-fitting of 50 inputs"
    assert sources["in"] == "the 50 inputs the density was fitted on (in-sample)"
    assert sources["split"] == "held-out parts of ShuffleSplit of 10 inputs"
    model = EvidenceModel().fit(X, y).calibrate(X[:7])
    assert model.normalizer_.source_ == "7 held-out inputs"
    assert len(model.calibration_scores_) == 7


def test_cross_fitted_scores_are_those_of_densities_that_did_not_see_the_row(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = EvidenceModel(features="passthrough", cv=4).fit(X, y)
    fold = content_folds(X, y, 4)
    naive = []
    for j in range(4):
        density = GDADensity().fit(X, y).for_folds().fit(X[fold != j], y[fold != j])
        naive.append(density.score_samples(X[fold == j]))
    np.testing.assert_allclose(model.calibration_scores_, np.sort(np.concatenate(naive)))


def test_frozen_features_are_computed_once(rng):
    """A network as features is dear: one pass over the rows serves the fit and every fold."""
    calls = []

    class Network(FunctionTransformer):
        def transform(self, X):
            calls.append(len(X))
            return super().transform(X)

    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    network = Network().fit(X)
    model = EvidenceModel(features=FrozenEstimator(network)).fit(X, y)
    assert calls == [60]
    plain = EvidenceModel(features="passthrough").fit(X, y)
    np.testing.assert_array_equal(model.calibration_scores_, plain.calibration_scores_)


def test_a_fold_may_lack_a_class_and_settled_shrinkage_fits_the_others(rng):
    X, y = rng.normal(size=(60, 3)), np.repeat(np.arange(3), 20)
    even, odd = np.arange(0, 60, 2), np.arange(1, 60, 2)
    pairs = [(np.flatnonzero(y < 2), np.flatnonzero(y == 2)), (even, odd)]
    model = EvidenceModel(features="passthrough", cv=pairs).fit(X, y)
    two = GDADensity().fit(X[y < 2], y[y < 2]).score_samples(X[y == 2])
    half = GDADensity().fit(X, y).for_folds().fit(X[::2], y[::2]).score_samples(X[1::2])
    np.testing.assert_allclose(model.calibration_scores_, np.sort(np.r_[two, half]))
    with pytest.raises(ValueError, match="shrinkage must hold 3 numbers, got 2"):
        GDADensity(shrinkage=(0.1, 0.2)).fit(X, y)
