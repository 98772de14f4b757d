"""Metrics of class probabilities: scikit-learn's and plain loops."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, labelled
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from dipedl.metrics import (
    accuracy,
    balanced_accuracy,
    brier_score,
    class_recall,
    ece,
    nll,
)


@given(labelled())
def test_accuracy_agrees_with_sklearn_and_a_loop(data):
    y, proba = data
    np.testing.assert_allclose(accuracy(y, proba), accuracy_score(y, proba.argmax(1)), **EXACT)
    right = sum(list(row).index(max(row)) == label for label, row in zip(y, proba, strict=True))
    np.testing.assert_allclose(accuracy(y, proba), right / len(y), **EXACT)


@given(labelled())
def test_recall_agrees_with_a_loop(data):
    y, proba = data
    guess = [list(row).index(max(row)) for row in proba]
    recalls = class_recall(y, proba)
    assert recalls.shape == (proba.shape[1],)
    for k, recall in enumerate(recalls):
        of_class = [guess[i] == k for i in range(len(y)) if y[i] == k]
        expected = sum(of_class) / len(of_class) if of_class else np.nan
        np.testing.assert_allclose(recall, expected, **EXACT)
    np.testing.assert_allclose(balanced_accuracy(y, proba), np.nanmean(recalls), **EXACT)


@given(labelled())
def test_brier_score_agrees_with_a_loop(data):
    y, proba = data
    total = 0.0
    for label, row in zip(y, proba, strict=True):
        total += sum((p - (1.0 if c == label else 0.0)) ** 2 for c, p in enumerate(row))
    np.testing.assert_allclose(brier_score(y, proba), total / len(y), **EXACT)


@pytest.mark.skipif(
    "scale_by_half" not in inspect.signature(brier_score_loss).parameters,
    reason="multi-class Brier came with scikit-learn 1.7",
)
@given(labelled())
def test_brier_score_agrees_with_sklearn(data):
    y, proba = data
    reference = (
        brier_score_loss(y, proba, labels=np.arange(proba.shape[1]), scale_by_half=False)
        if proba.shape[1] > 2
        else 2 * brier_score_loss(y, proba[:, 1], pos_label=1)
    )
    np.testing.assert_allclose(brier_score(y, proba), reference, **EXACT)


@given(labelled())
def test_log_loss_agrees_with_sklearn_where_nothing_is_clipped(data):
    y, proba = data
    proba = 0.9 * proba + 0.1 / proba.shape[1]
    reference = log_loss(y, proba, labels=np.arange(proba.shape[1]))
    np.testing.assert_allclose(nll(y, proba), reference, **EXACT)


@given(labelled())
def test_log_loss_agrees_with_a_loop_and_is_infinite_where_a_true_class_has_no_mass(data):
    y, proba = data
    masses = [row[label] for label, row in zip(y, proba, strict=True)]
    expected = math.inf if 0 in masses else -sum(map(math.log, masses)) / len(y)
    np.testing.assert_allclose(nll(y, proba), expected, **EXACT)


def test_log_loss_keeps_what_float32_and_sklearn_cannot():
    """A probability of 1e-300 is 690.8 nats; a clip at the machine epsilon would say 36."""
    assert nll([1], [[1.0, 1e-300]]) == pytest.approx(300 * math.log(10), rel=1e-12)
    assert math.copysign(1, nll([0, 1], np.eye(2))) == 1  # 0.0, not -0.0


def naive_ece(y, proba, n_bins):
    """Bin by bin: confidences in (b/n_bins, (b+1)/n_bins]; all positive, so bin 0 needs no care."""
    confidence, total = proba.max(axis=1), 0.0
    for b in range(n_bins):
        inside = [i for i, c in enumerate(confidence) if b / n_bins < c <= (b + 1) / n_bins]
        if b == n_bins - 1:  # sums of floats may end a rounding above 1
            inside += [i for i, c in enumerate(confidence) if c > 1]
        if inside:
            acc = np.mean([proba[i].argmax() == y[i] for i in inside])
            total += len(inside) / len(y) * abs(acc - np.mean(confidence[inside]))
    return total


@given(labelled(), st.integers(1, 30))
def test_calibration_error_agrees_with_a_loop(data, n_bins):
    np.testing.assert_allclose(ece(*data, n_bins=n_bins), naive_ece(*data, n_bins), **EXACT)
    np.testing.assert_allclose(ece(*data), naive_ece(*data, 15), **EXACT)


def binary(confidence, hit):
    """Labels and probabilities with these confidences (all > 1/2) and these hits."""
    c = np.asarray(confidence, dtype=float)
    return 1 - np.asarray(hit, dtype=int), np.column_stack([c, 1 - c])


@pytest.mark.parametrize("n_bins", [2, 3, 7, 15, 59])
def test_an_edge_belongs_to_the_bin_below(n_bins):
    """A hit on the edge and a miss just below cancel in one bin; a miss just above is apart."""
    for i in range(n_bins // 2 + 1, n_bins):
        edge = i / n_bins
        below = ece(*binary([edge, np.nextafter(edge, 0)], [True, False]), n_bins=n_bins)
        above = ece(*binary([edge, np.nextafter(edge, 1)], [True, False]), n_bins=n_bins)
        assert below == pytest.approx(abs(0.5 - edge), abs=1e-12)
        assert above == pytest.approx(0.5, abs=1e-12)
