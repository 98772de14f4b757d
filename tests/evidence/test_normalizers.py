"""Normalisers, quantiles and the alarm threshold: definitions, weights, order, refusals."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from dipedl import evidence
from dipedl.evidence import (
    CautionBudget,
    Identity,
    QuantileEvidence,
    RankNormal,
    RobustZScore,
    ZScore,
    alarm_threshold,
    check_increasing,
    log_evidence,
    weighted_quantile,
)

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


def test_weights_of_a_table_count_by_their_place():
    scores, w = np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0])
    for labels in ([2, 1, 0], ["a", "b", "c"]):
        weights = pd.Series(w, labels)
        assert weighted_quantile(scores, 0.5, weights) == weighted_quantile(scores, 0.5, w) == 2.0
        assert alarm_threshold(scores, 0.3, weights) == alarm_threshold(scores, 0.3, w)
    with pytest.raises(ValueError, match="weights must not be masked"):
        weighted_quantile(scores, 0.5, np.ma.masked_array(w, [True, False, False]))


def test_alarm_threshold_keeps_its_rate_on_new_points(rng):
    """P(new score < threshold) <= rate, and > rate - 1/(n + 1): averaged over calibration sets."""
    n, rate, trials = 40, 0.1, 4000
    flagged = 0.0
    for _ in range(trials):
        flagged += stats.norm.cdf(alarm_threshold(rng.normal(size=n), rate))
    mean = flagged / trials
    error = 4 * np.sqrt(rate * (1 - rate) / n / trials)
    assert rate - 1 / (n + 1) - error < mean < rate + error


@pytest.mark.parametrize("rate", [1 - 1e-11, 1 - 1e-13, np.nextafter(1.0, 0.0)])
def test_of_a_rate_just_below_one_the_threshold_is_the_highest_score(rate):
    scores = np.arange(7.0)
    assert alarm_threshold(scores, rate) == np.sort(scores)[int(np.floor(rate * 8)) - 1] == 6


def test_alarm_threshold_with_too_few_scores_flags_nothing():
    assert alarm_threshold(np.arange(9.0), 0.05) == -np.inf
    assert alarm_threshold(np.arange(19.0), 0.05) == 0.0
    assert alarm_threshold(np.arange(99.0), 0.05) == 4.0
    assert alarm_threshold(np.array([5.0, 7.0]), 0.5, np.array([3.0, 4.0])) == 7.0


@given(seed=st.integers(0, 1000), cut=st.integers(2, 38), offset=st.sampled_from([0.0, 1e6]))
def test_the_sum_is_the_fit_of_both(seed, cut, offset):
    rng = np.random.default_rng(seed)
    s, w = offset + rng.normal(size=40), rng.uniform(0.1, 3, 40)
    a, b = ZScore().fit(s[:cut], w[:cut]), ZScore().fit(s[cut:], w[cut:], source="elsewhere")
    whole, both = ZScore().fit(s, w), a + b
    np.testing.assert_allclose(
        [both.location_, both.scale_, both.n_], [whole.location_, whole.scale_, whole.n_], rtol=1e-9
    )
    assert both.source_ == "the log-densities given to fit and elsewhere"


SCORES = np.random.default_rng(0).normal(size=2500)


class Function:
    def __init__(self, transform):
        self.transform = transform


@pytest.mark.parametrize("scores", [SCORES, SCORES[:2], SCORES[:1], np.r_[SCORES, -np.inf]])
@pytest.mark.parametrize("name", [n for n in evidence.__all__ if n[0].isupper()])
def test_our_own_are_increasing(name, scores):
    normalizer = getattr(evidence, name)()
    given = {"n": 50}
    m = len(SCORES)
    given |= {"proba": np.tile([0.7, 0.3], (m, 1)), "y": (np.arange(m) % 10 > 6).astype(int)}
    given["prior"] = np.ones(2)
    accepted = signature(normalizer.fit).parameters
    check_increasing(
        normalizer.fit(SCORES, **{k: v for k, v in given.items() if k in accepted}), scores
    )


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (np.negative, "must be increasing, but z falls from"),
        (np.abs, "must be increasing, but z falls"),
        (np.sin, "must be increasing, but z falls"),
        (lambda s: np.where(s > 50 * np.ptp(SCORES), 0.0, s), "z falls"),
        (lambda s: np.where((s > 0.1) & (s < 0.2), -1.0, s), "z falls"),
        (np.zeros_like, "z = 0 for every score"),
        (lambda s: np.full_like(s, -np.inf), "z = -inf for every score"),
        (lambda s: np.exp(3 * s), "z = inf for the score"),
        (lambda s: np.where(s < -3, np.nan, s), "z = nan for the score"),
        (lambda s: s[:-1], "one z per score"),
    ],
)
def test_others_are_found(transform, message):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        check_increasing(Function(transform), SCORES)


@pytest.mark.parametrize(
    "transform",
    [
        np.tanh,
        lambda s: np.clip(s, -1, 1),
        lambda s: np.where(s < -1, -np.inf, s),
        lambda s: s + 1e-12 * np.sin(1e9 * s),
    ],
)
def test_saturation_and_rounding_are_let_pass(transform):
    check_increasing(Function(transform), SCORES)


NAN, INF = float("nan"), float("inf")
GOOD = {"proba": np.array([[0.9, 0.1], [0.2, 0.8]]), "y": np.array([0, 1]), "n": 10, "prior": 1.0}


def of_two(caution=None, scores=(0.0, 1.0), **change):
    """The call of a fit to two rows, with these changes."""
    caution = CautionBudget() if caution is None else caution
    return lambda: caution.fit(list(scores), **{**GOOD, **change})


#: Call, error, and a pattern with the named argument and what came.
CASES = [
    (of_two(proba=None), ValueError, r"needs proba and y.*normalizer=QuantileEvidence\(\)"),
    (of_two(y=None), ValueError, "needs proba and y"),
    (of_two(n=None), ValueError, "needs n and prior"),
    (of_two(prior=None), ValueError, "needs n and prior"),
    (of_two(n=-1), ValueError, "n must be finite and > 0"),
    (of_two(gamma=0.0), ValueError, "gamma must be finite and > 0"),
    (of_two(prior=[1.0, 0.0]), ValueError, "prior must be finite and > 0"),
    (of_two(proba=np.ones((2, 1))), ValueError, r"proba must have shape \(2, k\), got \(2, 1\)"),
    (of_two(proba=np.ones((3, 2)) / 2), ValueError, r"proba must have shape \(2, k\)"),
    (of_two(proba=np.array([[3.0, -1.0], [0.0, 1.0]])), ValueError, "proba.*probabilities >= 0"),
    (of_two(proba=np.array([[3.0, 1.0], [0.0, 1.0]])), ValueError, "proba.*sum to 1.*a softmax"),
    (of_two(y=np.array([0, 2])), ValueError, r"y must .*0\.\.1, got 0\.\.2: labels of no known"),
    (of_two(y=np.array([-1, 1])), ValueError, r"y must .*indices 0\.\.1, got -1"),
    (of_two(y=np.array([0.0, 1.0])), ValueError, "y must .*2 integer class indices"),
    (of_two(y=np.array([0, 1, 1])), ValueError, "y must .*2 integer class indices"),
    (of_two(CautionBudget(-0.01)), ValueError, r"budget must be .*\[0, 1\]"),
    (of_two(CautionBudget(2)), ValueError, r"budget must be .*\[0, 1\].*got 2"),
    (of_two(CautionBudget(NAN)), ValueError, "budget must be"),
    (of_two(CautionBudget("2 %")), TypeError, "budget must be a number"),
    (of_two(CautionBudget(True)), TypeError, "budget must be a number"),
    (of_two(CautionBudget(measure="ece")), ValueError, "measure must be one of.*got 'ece'"),
    (of_two(CautionBudget(slope=0)), ValueError, "slope must be finite and > 0"),
    (of_two(CautionBudget(slope=INF)), ValueError, "slope must be finite"),
    (of_two(CautionBudget(confidence=0.4)), ValueError, r"confidence must be in \[0.5, 1\)"),
    (of_two(CautionBudget(confidence=1.0)), ValueError, r"confidence must be in \[0.5, 1\)"),
    (of_two(CautionBudget(confidence="95%")), TypeError, "confidence must be a number"),
    *(
        (of_two(scores=bad), ValueError, "log_density must be finite to fit CautionBudget")
        for bad in ([0.0, NAN], [0.0, INF], [-INF, -INF])
    ),
    (lambda: QuantileEvidence(0.0).fit([0.0, 1.0]), ValueError, "quantile must be strictly"),
    (lambda: QuantileEvidence(1.0).fit([0.0, 1.0]), ValueError, "quantile must be strictly"),
    (lambda: QuantileEvidence(slope=-1).fit([0.0, 1.0]), ValueError, "slope must be finite and"),
    (lambda: QuantileEvidence().fit([1.0, 1.0]), ValueError, "must vary to fit QuantileEvidence"),
    (lambda: QuantileEvidence().fit([-INF, 1.0]), ValueError, "must be finite to fit Quant.*-inf"),
    *((lambda n=n: n().transform([0.0]), NotFittedError, "not fitted") for n in NORMALIZERS),
    *(
        (lambda n=n, bad=bad: n().fit(bad), ValueError, f"log_density {message}")
        for n in NORMALIZERS
        for bad, message in (
            ([], "must be a non-empty 1-d"),
            ([[1.0]], "must be a non-empty 1-d"),
            ([1.0, -INF], "must be finite.*got -inf from the log-densities given to fit"),
            ([1.0, NAN], "must be finite"),
        )
    ),
    *(
        (lambda n=n: n().fit([2.0] * 3), ValueError, r"must vary.*use normalizer=Identity\(\)")
        for n in NORMALIZERS[:3]
    ),
    (lambda: ZScore().fit([0.0, 1.0]) + ZScore(), NotFittedError, "not fitted"),
    (lambda: ZScore().fit([0.0, 1.0]) + RobustZScore().fit([0.0, 1.0, 3.0]), TypeError, "unsupp"),
    (
        lambda: check_increasing(ZScore().fit([0.0, 1.0]), np.array([-INF])),
        ValueError,
        "scores must hold a finite number",
    ),
    (lambda: alarm_threshold(np.array([1.0, NAN]), 0.5), ValueError, "log_density.*NaN.*row 1"),
    (lambda: weighted_quantile(np.array([NAN, 1.0]), 0.5), ValueError, "values.*NaN.*row 0"),
    *(
        (lambda f=f, w=w: f(np.array([1.0, 2.0]), 0.5, w), ValueError, f"^weights must {message}")
        for f in (alarm_threshold, weighted_quantile)
        for w, message in (
            ([1.0, -1.0], "be >= 0"),
            ([1.0, NAN], "be >= 0"),
            ([0.0, 0.0], "have a positive sum"),
            ([1.0], r"have .*\(2,\)"),
        )
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("part", "bad"),
    [
        (evidence.QuantileEvidence(), {"slope": -1}),
        (evidence.CautionBudget(), {"budget": 2}),
    ],
)
def test_settings_are_checked_alone_and_a_fit_that_fails_leaves_the_one_before(part, bad):
    part = clone(part)
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet([1, 1], 200), rng.integers(0, 2, 200)
    offered = {"proba": proba, "y": y, "n": 200.0, "prior": np.ones(2)}
    extra = {key: value for key, value in offered.items() if has_fit_parameter(part, key)}
    scores = np.sort(rng.normal(size=200))
    part.fit(scores, **extra)
    before = {key: value for key, value in vars(part).items() if key.endswith("_")}
    assert part.check_parameters() is None
    with pytest.raises(ValueError, match="n must"):
        part.fit(scores, **extra | {"n": -1.0})
    after = {key: value for key, value in vars(part).items() if key.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[key] is after[key] for key in before)
    with pytest.raises(ValueError, match=next(iter(bad))):
        part.set_params(**bad).check_parameters()
