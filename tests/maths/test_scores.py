"""Scores of probabilities against naive formulas, and where those lose their digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dipedl.baselines.deep_ensemble import mutual_information
from dipedl.dirichlet import entropy, max_prob
from dipedl.maths.scores import auroc, wilson


def samples_of(seed, m=7, n=20, k=4, sharpness=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(k, 1 / sharpness), size=(m, n))


def test_max_prob_and_entropy_against_scipy():
    P = samples_of(0)[0]
    np.testing.assert_allclose(max_prob(P), 1 - P.max(axis=1), atol=1e-15)
    np.testing.assert_allclose(entropy(P), stats.entropy(P, axis=1), rtol=1e-12)


def test_sure_rows_do_not_tie():
    P = np.array([[1.0, 1e-20], [1.0, 1e-30], [1e-40, 1.0]])
    np.testing.assert_array_equal(max_prob(P), [1e-20, 1e-30, 1e-40])


@pytest.mark.parametrize("last_digits", [1 - 1e-14, 1.0, 1 + 1e-14])
def test_scores_that_differ_by_rounding_tie(last_digits):
    scores = np.append(np.random.default_rng(0).normal(-300, 90, size=50), [-np.inf, np.inf, 0.0])
    assert auroc(scores, scores * last_digits) == pytest.approx(0.5, rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([0.2, 1.0, 10.0]))
def test_mutual_information_is_the_gap_of_the_entropies(seed, sharpness):
    P = samples_of(seed, sharpness=sharpness)
    naive = stats.entropy(P.mean(axis=0), axis=1) - stats.entropy(P, axis=2).mean(axis=0)
    got = mutual_information(P)
    np.testing.assert_allclose(got, naive, atol=1e-13)
    assert (got >= 0).all()
    assert (got <= np.log(4)).all()


def test_mutual_information_where_the_entropies_cancel():
    """Members that differ by 1e-9: the naive difference has no digit left."""
    first = np.array([0.3, 0.7])
    P = np.array([[first], [first + np.array([1e-9, -1e-9])]])
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(v) for v in row[0]] for row in P.tolist()]
        mean = [sum(column) / 2 for column in zip(*rows, strict=True)]
        exact = sum(v * mpmath.log(v / m) for row in rows for v, m in zip(row, mean, strict=True))
        exact /= 2
    assert mutual_information(P)[0] == pytest.approx(float(exact), rel=1e-5)


def test_mutual_information_at_the_corners():
    same = np.tile([[1.0, 0.0, 0.0]], (5, 1, 1))
    assert mutual_information(same)[0] == 0
    opposite = np.array([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]])
    assert mutual_information(opposite)[0] == pytest.approx(np.log(2))


@pytest.mark.parametrize("n", [1, 7, 400])
def test_interval_of_a_share_against_scipy(n):
    for k in {0, 1, n // 2, n}:
        right = stats.binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson(k / n, n), [right.low, right.high], atol=1e-12)
