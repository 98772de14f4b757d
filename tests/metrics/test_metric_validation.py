"""Each error has its type and names the argument and what came."""

import numpy as np
import pytest

from dipedl.metrics import aurc, brier_score, ece, fpr_at_tpr, ood_auroc

P = [[0.5, 0.5], [0.2, 0.8]]
NAN, X = float("nan"), np.arange(4.0)


def of(proba):
    return brier_score(np.zeros(len(proba), dtype=int), proba)


def mean(x):
    return x.mean()


def two_samples(a, b):
    return 0.0


two_samples.kind = "ood"

#: Call, error, and a pattern with the named argument and what came.
CASES = [
    (lambda: brier_score([0], P), ValueError, "y and proba .*same length, got 1 and 2"),
    (lambda: brier_score([0, 2], P), ValueError, r"y must be in 0\.\.1 .*2 columns, got 0 to 2"),
    (lambda: brier_score([-1, 1], P), ValueError, r"y must be in 0\.\.1 .*-1 to 1"),
    (lambda: brier_score(["a", "b"], P), TypeError, "y must hold integer class indices.*<U1"),
    (lambda: brier_score([0.0, 1.0], P), TypeError, "y must hold integer.*float64"),
    (lambda: brier_score([True, False], P), TypeError, "y must hold integer.*bool"),
    (lambda: brier_score(np.eye(2, dtype=int), P), ValueError, r"y must .*\(n,\).*\(2, 2\)"),
    (lambda: brier_score(np.zeros(0, dtype=int), P), ValueError, "y must not be empty"),
    (lambda: brier_score([0, 0], [[1.0], [1.0]]), ValueError, r"proba must have .*two.*\(2, 1\)"),
    (lambda: brier_score([0, 1], [0.2, 0.8]), ValueError, r"proba must have shape \(n, k\)"),
    (lambda: of(np.zeros((0, 3))), ValueError, r"proba must not be empty.*\(0, 3\)"),
    (lambda: of([[0.5, 0.5], [0.5, 0.6]]), ValueError, "rows of proba must sum .*1.1 in row 1"),
    (lambda: of([[1.5, -0.5]]), ValueError, "proba must hold finite .*-0.5 in row 0"),
    (lambda: of([[NAN, 1.0], [0.5, 0.5]]), ValueError, "proba .*nan in row 0.*1 of 2 rows"),
    (lambda: of([[np.inf, 0.0]]), ValueError, "proba must hold finite"),
    (lambda: of([[0.5, 0.5], [1.0]]), ValueError, "proba must be an array.*ragged"),
    (lambda: of([["half", "half"]]), TypeError, "proba must hold real numbers.*<U4"),
    (lambda: of(np.ma.array(P, mask=np.eye(2, dtype=bool))), ValueError, "proba .*mask"),
    (lambda: ece([0, 1], P, n_bins=0), ValueError, "n_bins must be an integer >= 1, got 0"),
    (lambda: ece([0, 1], P, n_bins=15.0), TypeError, "n_bins must be an integer.*15.0"),
    (lambda: ood_auroc([0.0, NAN, NAN], [1.0]), ValueError, "uncertainty_in must .*2 NaN"),
    (lambda: ood_auroc([0.0], []), ValueError, "uncertainty_out must not be empty"),
    (lambda: ood_auroc([[0.0]], [1.0]), ValueError, r"uncertainty_in must have shape .*\(1, 1\)"),
    (lambda: ood_auroc([1j], [1.0]), TypeError, "uncertainty_in must hold real .*complex128"),
    (lambda: aurc([0, 1], [0.1, 0.2]), TypeError, "correct must be boolean.*int64"),
    (lambda: aurc([True], [0.1, 0.2]), ValueError, "correct and uncertainty .*got 1 and 2"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=0), ValueError, r"tpr must be in \(0, 1\].*, got 0"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=1.01), ValueError, r"tpr must be in \(0, 1\].*1.01"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr=NAN), ValueError, r"tpr must be in \(0, 1\].*, got nan"),
    (lambda: fpr_at_tpr([0.0], [1.0], tpr="95%"), TypeError, "tpr must be a number .*got '95%'"),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert type(caught.value) is error


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_of_any_precision_passes(rng, dtype):
    logits = rng.normal(size=(200, 10)).astype(dtype)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert proba.dtype == dtype
    assert 0 < of(proba) < 2


@pytest.mark.parametrize("miss", [-2e-3, 2e-3])
def test_row_sums_off_by_more_than_float16_rounding_are_refused(miss):
    with pytest.raises(ValueError, match="sum to 1"):
        of([[0.5, 0.5 + miss]])
    assert of([[0.5, 0.5 + miss / 4]]) > 0


def test_any_array_like_of_numbers_passes():
    assert ood_auroc((1, 2), np.array([3], dtype=np.uint8)) == 1
    assert ood_auroc([False, True], [True]) == 0.75
    assert brier_score(np.array([0, 1], dtype=np.uint64), P) == pytest.approx(0.29)
