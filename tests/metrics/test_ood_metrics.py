"""AUROC, AUPR and FPR of known against unknown inputs: scikit-learn's and plain loops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, scores, stacked
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from dipedl.metrics import aupr_out, fpr_at_tpr, ood_auroc

SHARES = st.sampled_from([0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 1.0])


@given(scores(), scores())
def test_auroc_agrees_with_sklearn_and_with_counting_pairs(u_in, u_out):
    value = ood_auroc(u_in, u_out)
    np.testing.assert_allclose(value, roc_auc_score(*stacked(u_in, u_out)), **EXACT)
    won = sum((o > i) + 0.5 * (o == i) for o in u_out for i in u_in)
    np.testing.assert_allclose(value, won / (len(u_in) * len(u_out)), **EXACT)


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
def test_aupr_agrees_with_sklearn_and_a_loop(u_in, u_out):
    labels, rank = stacked(u_in, u_out)
    out, inside = aupr_out(u_in, u_out), aupr_out(-u_out, -u_in)
    np.testing.assert_allclose(out, average_precision_score(labels, rank), **EXACT)
    np.testing.assert_allclose(out, naive_average_precision(u_out, u_in), **EXACT)
    np.testing.assert_allclose(inside, average_precision_score(1 - labels, -rank), **EXACT)
    np.testing.assert_allclose(inside, naive_average_precision(-u_in, -u_out), **EXACT)


def naive_fpr(positive, negative, tpr):
    """Least share of negatives flagged over all thresholds that catch enough positives."""
    rates = []
    for t in [*positive, *negative]:
        if sum(p >= t for p in positive) / len(positive) >= tpr:
            rates.append(sum(q >= t for q in negative) / len(negative))
    return min(rates)


@given(scores(), scores(), SHARES)
def test_fpr_agrees_with_sklearn_and_a_loop(u_in, u_out, tpr):
    value = fpr_at_tpr(u_in, u_out, tpr=tpr)
    # by default sklearn drops thresholds on straight pieces of the curve, and the rate is off
    fpr, recall, _ = roc_curve(*stacked(u_in, u_out), drop_intermediate=False)
    np.testing.assert_allclose(value, fpr[np.argmax(recall >= tpr)], **EXACT)
    np.testing.assert_allclose(value, naive_fpr(u_out, u_in, tpr), **EXACT)
    if tpr == 0.95:
        assert fpr_at_tpr(u_in, u_out) == value


def test_an_exact_share_is_enough():
    """19 of 20 is 95 %; asking for a hair more takes the twentieth as well."""
    u_in, u_out = [0.5], np.arange(20.0)
    assert fpr_at_tpr(u_in, u_out) == fpr_at_tpr(u_in, u_out, tpr=0.95) == 0.0
    assert fpr_at_tpr(u_in, u_out, tpr=np.nextafter(0.95, 1)) == 1.0
