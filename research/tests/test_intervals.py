"""Metrics of intervals, by loops over single numbers."""

import numpy as np
import pytest
from scipy import stats

from dipedl_bench.results.known_truth import error_correlation, interval_coverage, interval_score


def example(rng, n=30, k=3):
    truth = rng.dirichlet(np.ones(k), n)
    low = truth + rng.normal(-0.1, 0.1, (n, k))
    return truth, low, low + rng.uniform(0, 0.3, (n, k))


def test_coverage_and_score_are_those_of_a_loop(rng):
    truth, low, high = example(rng)
    held, score = [], []
    for p, a, b in zip(truth.flat, low.flat, high.flat, strict=True):
        held.append(a <= p <= b)
        miss = a - p if p < a else p - b if p > b else 0.0
        score.append(b - a + miss * 2 / 0.2)
    assert interval_coverage(truth, low, high) == np.mean(held)
    assert interval_score(truth, low, high, level=0.8) == pytest.approx(np.mean(score))


def test_the_quantiles_of_the_truth_score_best(rng):
    truth = rng.beta(3, 5, 20_000)
    P = np.column_stack([truth, 1 - truth])

    def score(a, b):
        low, high = stats.beta.ppf([0.1, 0.9], a, b)
        ends = np.tile([[low, 1 - high]], (len(P), 1)), np.tile([[high, 1 - low]], (len(P), 1))
        return interval_score(P, *ends, level=0.8)

    assert score(3, 5) < min(score(6, 10), score(1.5, 2.5), score(5, 3))


def test_correlation_is_spearmans(rng):
    P, T = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 50)
    u = rng.integers(0, 9, 50)
    expected = stats.spearmanr(u, ((P - T) ** 2).sum(axis=1)).statistic
    assert error_correlation(u, P, T) == pytest.approx(expected)
    assert error_correlation(np.ones(50), P, T) == 0
