import numpy as np
import pytest
from scipy import stats

from dipedl.decisions import Rejection, reject_curve, risk_upper_bound

REPETITIONS = 200
#: P(wrong | u) for u uniform on [0, 1], and its mean below t: the selective risk.
POPULATIONS = {
    "rising": (lambda u: 0.3 * u**2, lambda t: 0.1 * t**2),
    "no information": (lambda u: 0.06 + 0 * u, lambda t: 0.06 + 0 * t),
    "the most certain are wrong most often": (
        lambda u: 0.3 * np.exp(-5 * u) + 0.01,
        lambda t: 0.06 * (1 - np.exp(-5 * t)) / t + 0.01,
    ),
}


def risk_of(threshold, population):
    """Selective risk of a threshold in the population; answering nothing risks nothing."""
    if threshold < 0:
        return 0.0
    return float(POPULATIONS[population][1](min(threshold, 1.0)))


def test_upper_bound_is_the_rate_at_which_so_few_errors_are_rare():
    for errors, n in ((0, 10), (3, 50), (40, 41)):
        for confidence in (0.5, 0.9, 0.995):
            bound = float(risk_upper_bound(errors, n, confidence))
            assert stats.binom.cdf(errors, n, bound) == pytest.approx(1 - confidence, rel=1e-9)
    assert risk_upper_bound([0, 5], [0, 5], 0.9).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("population", POPULATIONS)
def test_risk_is_controlled_in_the_promised_share_of_repetitions(rng, population):
    broken = 0
    for _ in range(REPETITIONS):
        u = rng.random(600)
        wrong = rng.random(600) < POPULATIONS[population][0](u)
        threshold = reject_curve(u, wrong, confidence=0.9).threshold(0.05)
        broken += risk_of(threshold, population) > 0.05
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.1)


@pytest.mark.parametrize("population", POPULATIONS)
def test_all_bounds_hold_together_so_the_risk_may_be_chosen_after_looking(rng, population):
    broken = 0
    for _ in range(REPETITIONS):
        u = rng.random(300)
        wrong = rng.random(300) < POPULATIONS[population][0](u)
        curve = reject_curve(u, wrong, confidence=0.8)
        true = [risk_of(t, population) for t in curve.thresholds]
        broken += bool((true > curve.upper).any())
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.2)


def test_discrete_uncertainties_keep_the_promise(rng):
    """Ties everywhere: thresholds fall between the values, and bounds hold for what is answered."""
    rates, broken = np.array([0.01, 0.04, 0.2]), 0
    for _ in range(REPETITIONS):
        level = rng.integers(0, 3, 400)
        wrong = rng.random(400) < rates[level]
        curve = reject_curve(level.astype(float), wrong, confidence=0.8)
        true = [rates[np.arange(3) <= t].mean() for t in curve.thresholds]
        broken += bool((true > curve.upper).any())
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.2)


def test_it_is_of_use(rng):
    """5 % promised of a population whose selective risk is 5 % at coverage 0.71."""
    u = rng.random(3000)
    wrong = rng.random(3000) < POPULATIONS["rising"][0](u)
    threshold = reject_curve(u, wrong).threshold(0.05)
    assert 0.5 < threshold < np.sqrt(0.5)


def test_steps_match_a_naive_count(rng):
    u, wrong = rng.normal(size=37).round(1), rng.random(37) < 0.3
    curve = reject_curve(u, wrong, confidence=0.9)
    assert (np.diff(curve.thresholds) > 0).all() and curve.thresholds[-1] == np.inf
    for threshold, coverage, risk, upper in zip(
        curve.thresholds, curve.coverage, curve.risk, curve.upper, strict=True
    ):
        answered = u <= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(wrong[answered].mean())
        expected = risk_upper_bound(wrong[answered].sum(), answered.sum(), 1 - 0.1 / 20)
        assert upper == pytest.approx(expected)


def test_a_weight_counts_a_row_that_often(rng):
    u, wrong, w = rng.random(50), rng.random(50) < 0.2, rng.integers(0, 4, 50)
    weighted = reject_curve(u, wrong, weights=w)
    repeated = reject_curve(np.repeat(u, w), np.repeat(wrong, w))
    for name in ("thresholds", "coverage", "risk", "upper"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


def test_few_rows_have_few_steps():
    curve = reject_curve([0.1, 0.2, 0.3], [False, False, True], confidence=0.9)
    assert curve.coverage.tolist() == [1 / 3, 2 / 3, 1.0]
    np.testing.assert_allclose(curve.upper[0], 1 - 0.1 / 3)
    assert curve.threshold(0.05) == -np.inf


def test_infinite_uncertainties_are_rejected_first():
    u = np.r_[np.zeros(300), np.full(20, np.inf)]
    curve = reject_curve(u, np.isinf(u))
    threshold = curve.threshold(0.03)
    assert 0 <= threshold < np.inf


def test_filled_puts_a_marker_of_any_type():
    accepted = np.array([True, False])
    numbers = Rejection(np.array([3, 4]), accepted, 0.1, "total", risk=0.05)
    assert numbers.fill(-1).tolist() == [3, -1] and numbers.fill(-1).dtype.kind == "i"
    assert numbers.fill(None).tolist() == [3, None]
    words = Rejection(np.array(["cat", "dog"]), accepted, 0.1, "total", coverage=0.9)
    assert words.fill("unknown").tolist() == ["cat", "unknown"]
    assert words.fill(-1).tolist() == ["cat", -1]
    assert len(words) == 2 and words.rejected.tolist() == [False, True]


@pytest.mark.parametrize("last_digits", [1 - 1e-14, 1 + 1e-14])
def test_rounding_changes_no_row_from_answered_to_rejected(rng, last_digits):
    u = rng.random(200)
    thresholds = reject_curve(u, rng.random(200) < u).thresholds[:, None]
    np.testing.assert_array_equal(u * last_digits <= thresholds, u <= thresholds)
