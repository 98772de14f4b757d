import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, scores, stacked
from sklearn.metrics import average_precision_score

from dipedl.metrics import aupr_in, aupr_out


def naive_average_precision(positive, negative):
    """Flag score by score, from the highest; add precision times the recall gained."""
    total, before = 0.0, 0
    for t in sorted(set(positive) | set(negative), reverse=True):
        hits = sum(p >= t for p in positive)
        alarms = sum(q >= t for q in negative)
        total += (hits - before) / len(positive) * hits / (hits + alarms)
        before = hits
    return total


@given(scores(), scores())
def test_out_agrees_with_sklearn_and_a_loop(u_in, u_out):
    labels, rank = stacked(u_in, u_out)
    value = aupr_out(u_in, u_out)
    np.testing.assert_allclose(value, average_precision_score(labels, rank), **EXACT)
    np.testing.assert_allclose(value, naive_average_precision(u_out, u_in), **EXACT)


@given(scores(), scores())
def test_in_agrees_with_sklearn_and_a_loop(u_in, u_out):
    labels, rank = stacked(u_in, u_out)
    value = aupr_in(u_in, u_out)
    np.testing.assert_allclose(value, average_precision_score(1 - labels, -rank), **EXACT)
    np.testing.assert_allclose(value, naive_average_precision(-u_in, -u_out), **EXACT)


@given(scores(), scores())
def test_the_two_conventions_are_each_others_mirror(u_in, u_out):
    assert aupr_in(u_in, u_out) == aupr_out(-u_out, -u_in)


def test_the_two_conventions_differ():
    """One OOD input of ten, ranked third: OOD precision is 1/3, in-distribution stays high."""
    u_in, u_out = np.arange(9.0), [6.5]
    assert aupr_out(u_in, u_out) == pytest.approx(1 / 3)
    assert aupr_in(u_in, u_out) == pytest.approx((7 + 8 / 9 + 9 / 10) / 9)


@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (30, 10), (10, 990)])
def test_constant_score_gives_the_prevalence(n_in, n_out):
    u_in, u_out = np.zeros(n_in), np.zeros(n_out)
    out_share = n_out / (n_in + n_out)
    assert aupr_out(u_in, u_out) == pytest.approx(out_share, rel=1e-12)
    assert aupr_in(u_in, u_out) == pytest.approx(1 - out_share, rel=1e-12)
    assert aupr_out.baseline(u_in, u_out) == out_share
    assert aupr_in.baseline(u_in, u_out) == n_in / (n_in + n_out)


@pytest.mark.parametrize(("n_in", "n_out"), [(1, 1), (5, 3), (2, 40)])
def test_perfect_and_worst_order(n_in, n_out):
    low, high = np.zeros(n_in), np.ones(n_out) + np.arange(n_out)
    assert aupr_out(low, high) == 1
    assert aupr_in(low, high) == 1
    ranks = np.arange(1, n_out + 1)
    assert aupr_out(low, -high) == pytest.approx(np.mean(ranks / (n_in + ranks)), rel=1e-12)
