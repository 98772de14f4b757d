import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, scores, stacked
from sklearn.metrics import roc_curve

from dipedl.metrics import fpr_at_tpr

SHARES = st.sampled_from([0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0])


def naive_fpr(positive, negative, tpr):
    """Least share of negatives flagged over all thresholds that catch enough positives."""
    rates = []
    for t in [*positive, *negative]:
        if sum(p >= t for p in positive) / len(positive) >= tpr:
            rates.append(sum(q >= t for q in negative) / len(negative))
    return min(rates)


def sklearn_fpr(labels, rank, tpr):
    # by default sklearn drops thresholds on straight pieces of the curve, and the rate is off
    fpr, recall, _ = roc_curve(labels, rank, drop_intermediate=False)
    return fpr[np.argmax(recall >= tpr)]


@given(scores(), scores(), SHARES)
def test_out_agrees_with_sklearn_and_a_loop(u_in, u_out, tpr):
    value = fpr_at_tpr(u_in, u_out, tpr=tpr)
    np.testing.assert_allclose(value, sklearn_fpr(*stacked(u_in, u_out), tpr), **EXACT)
    np.testing.assert_allclose(value, naive_fpr(u_out, u_in, tpr), **EXACT)


@given(scores(), scores(), SHARES)
def test_in_agrees_with_sklearn_and_a_loop(u_in, u_out, tpr):
    labels, rank = stacked(u_in, u_out)
    value = fpr_at_tpr(-u_out, -u_in, tpr=tpr)
    np.testing.assert_allclose(value, sklearn_fpr(1 - labels, -rank, tpr), **EXACT)
    np.testing.assert_allclose(value, naive_fpr(-u_in, -u_out, tpr), **EXACT)


@given(scores(), scores())
def test_rises_with_the_share_to_catch(u_in, u_out):
    rates = [fpr_at_tpr(u_in, u_out, tpr=t) for t in (0.05, 0.3, 0.5, 0.8, 0.95, 1.0)]
    assert rates == sorted(rates)


def test_defaults_are_95_percent_and_out_positive():
    u_in, u_out = np.arange(100.0), np.arange(100.0) + 50.5
    assert fpr_at_tpr(u_in, u_out) == fpr_at_tpr(u_in, u_out, tpr=0.95) == 0.44
    # 95 of 100 OOD inputs have u >= 55.5, and so do 56..99; 95 of 100 others have u <= 94, and so
    # do the OOD inputs 50.5..93.5
    assert fpr_at_tpr(-u_out, -u_in) == 0.44


def test_the_two_conventions_differ():
    """One OOD input hides among the most typical: catching all is dear, accepting all is cheap."""
    u_in, u_out = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 5.0, 6.0, 7.0])
    assert fpr_at_tpr(u_in, u_out) == 1.0
    assert fpr_at_tpr(-u_out, -u_in) == 0.25


def test_exact_share_is_enough():
    """19 of 20 is 95 %; asking for a hair more takes the twentieth as well."""
    u_in, u_out = [0.5], np.arange(20.0)
    assert fpr_at_tpr(u_in, u_out, tpr=0.95) == 0.0
    assert fpr_at_tpr(u_in, u_out, tpr=np.nextafter(0.95, 1)) == 1.0


def test_constant_perfect_and_infinite_scores():
    assert fpr_at_tpr(np.zeros(5), np.zeros(3)) == 1
    assert fpr_at_tpr([0, 1], [2, 3]) == 0
    assert fpr_at_tpr([2, 3], [0, 1]) == 1
    assert fpr_at_tpr([0.0, np.inf], [np.inf, np.inf]) == 0.5
