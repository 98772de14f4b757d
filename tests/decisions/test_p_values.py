import numpy as np
import pytest
from scipy import stats

from dipedl.decisions import conformal_p_values
from dipedl.evidence import alarm_threshold

REPETITIONS = 200


def test_matches_a_naive_count(rng):
    held, new = rng.integers(0, 20, 60).astype(float), rng.integers(-3, 23, 40).astype(float)
    held[:2], new[:2] = (-np.inf, np.inf), (np.inf, -np.inf)
    naive = [(1 + sum(c <= s for c in held)) / 61 for s in new]
    np.testing.assert_allclose(conformal_p_values(new, held), naive, rtol=1e-14)


def test_a_weight_counts_a_row_that_often(rng):
    held, new = rng.normal(size=30).round(1), rng.normal(size=50).round(1)
    w = rng.integers(0, 4, 30)
    expected = conformal_p_values(new, np.repeat(held, w))
    np.testing.assert_allclose(conformal_p_values(new, held, w), expected, rtol=1e-14)


@pytest.mark.parametrize("random_state", [None, 7])
def test_uniform_on_id_inputs_over_repeated_splits(rng, random_state):
    """One new input a split: 200 independent p-values."""
    seeds = None if random_state is None else np.random.default_rng(random_state)
    p = [
        conformal_p_values(scores[:1], scores[1:], random_state=seeds)[0]
        for scores in rng.gamma(2.0, size=(REPETITIONS, 200))
    ]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_random_ties_make_discrete_scores_uniform_and_the_default_keeps_the_level(rng):
    splits = rng.poisson(1.0, size=(REPETITIONS, 100)).astype(float)
    seeds = np.random.default_rng(0)
    p = [conformal_p_values(s[:1], s[1:])[0] for s in splits]
    randomised = [conformal_p_values(s[:1], s[1:], random_state=seeds)[0] for s in splits]
    assert stats.kstest(randomised, "uniform").pvalue > 0.01
    # Super-uniform: no one-sided evidence for p-values that are too small.
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.01
    assert stats.kstest(p, "uniform").pvalue < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_small_p_values_are_the_alarms(rng, weighted):
    for n in (3, 19, 20, 99, 250):
        held, new = rng.normal(size=n).round(1), np.append(rng.normal(size=200).round(1), -np.inf)
        w = rng.integers(1, 4, n).astype(float) if weighted else None
        for alpha in (0.01, 0.05, 0.1, 0.29, 0.5):
            flagged = new < alarm_threshold(held, alpha, w)
            np.testing.assert_array_equal(conformal_p_values(new, held, w) <= alpha, flagged)


@pytest.mark.parametrize("last_digits", [1 - 1e-14, 1 + 1e-14])
@pytest.mark.parametrize("random_state", [None, 0])
def test_what_differs_by_rounding_ties(rng, last_digits, random_state):
    # A row scored beside other rows may differ in its last digits from the same row held out.
    held = np.append(300 * rng.normal(size=150), [-np.inf, np.inf, 0.0])
    same = conformal_p_values(held, held, random_state=random_state)
    again = conformal_p_values(held * last_digits, held, random_state=random_state)
    np.testing.assert_array_equal(again, same)
