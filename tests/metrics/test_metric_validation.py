"""Each error names the argument, what was expected, what came, and the remedy."""

import numpy as np
import pytest

from dipedl.metrics import aurc, brier_score, ece, ood_auroc, ood_brier

P = [[0.5, 0.5], [0.2, 0.8]]
NAN = float("nan")

CASES = {
    "y and proba differ in length": (
        lambda: brier_score([0], P),
        ValueError,
        ["y and proba", "same length", "1 and 2", "same order"],
    ),
    "y too large": (
        lambda: brier_score([0, 2], P),
        ValueError,
        ["y must be in 0..1", "2 columns", "0 to 2", "searchsorted"],
    ),
    "y negative": (lambda: brier_score([-1, 1], P), ValueError, ["y must be in 0..1", "-1 to 1"]),
    "y of names": (
        lambda: brier_score(["a", "b"], P),
        TypeError,
        ["y must hold integer class indices", "<U1", "searchsorted"],
    ),
    "y of floats": (lambda: brier_score([0.0, 1.0], P), TypeError, ["y", "integer", "float64"]),
    "y of booleans": (lambda: brier_score([True, False], P), TypeError, ["y", "integer", "bool"]),
    "y one-hot": (
        lambda: brier_score(np.eye(2, dtype=int), P),
        ValueError,
        ["y must have shape (n,)", "(2, 2)", "ravel"],
    ),
    "y empty": (
        lambda: brier_score(np.zeros(0, dtype=int), P),
        ValueError,
        ["y must not be empty", "(0,)", "at least one"],
    ),
    "proba of one class": (
        lambda: brier_score([0, 0], [[1.0], [1.0]]),
        ValueError,
        ["proba", "at least two columns", "(2, 1)", "column_stack"],
    ),
    "proba one-dimensional": (
        lambda: brier_score([0, 1], [0.2, 0.8]),
        ValueError,
        ["proba must have shape (n, k)", "(2,)", "predict_proba"],
    ),
    "proba empty": (
        lambda: ood_brier(np.zeros((0, 3))),
        ValueError,
        ["proba must not be empty", "(0, 3)", "at least one"],
    ),
    "proba not normalised": (
        lambda: ood_brier([[0.5, 0.5], [0.5, 0.6]]),
        ValueError,
        ["proba rows must sum to one", "1.1 in row 1", "divide each row"],
    ),
    "proba negative": (
        lambda: ood_brier([[1.5, -0.5]]),
        ValueError,
        ["proba must not be negative", "-0.5", "softmax"],
    ),
    "proba NaN": (
        lambda: ood_brier([[NAN, 1.0], [0.5, 0.5]]),
        ValueError,
        ["proba must be finite", "1 of 2 rows", "leave these rows out"],
    ),
    "proba infinite": (lambda: ood_brier([[np.inf, 0.0]]), ValueError, ["proba must be finite"]),
    "proba ragged": (
        lambda: ood_brier([[0.5, 0.5], [1.0]]),
        ValueError,
        ["proba", "shape (n, k)", "ragged", "equal length"],
    ),
    "proba of objects": (
        lambda: ood_brier([["half", "half"]]),
        TypeError,
        ["proba must hold real numbers", "<U4", "float"],
    ),
    "n_bins zero": (
        lambda: ece([0, 1], P, n_bins=0),
        ValueError,
        ["n_bins must be an integer >= 1", "got 0"],
    ),
    "n_bins float": (
        lambda: ece([0, 1], P, n_bins=15.0),
        TypeError,
        ["n_bins must be an integer", "15.0"],
    ),
    "scores NaN": (
        lambda: ood_auroc([0.0, NAN, NAN], [1.0]),
        ValueError,
        ["uncertainty_in must not hold NaN", "2 NaN in 3", "+inf"],
    ),
    "scores empty": (
        lambda: ood_auroc([0.0], []),
        ValueError,
        ["uncertainty_out must not be empty", "(0,)", "at least one"],
    ),
    "scores as a column": (
        lambda: ood_auroc([[0.0]], [1.0]),
        ValueError,
        ["uncertainty_in must have shape (n,)", "(1, 1)", "ravel"],
    ),
    "scores complex": (
        lambda: ood_auroc([1j], [1.0]),
        TypeError,
        ["uncertainty_in must hold real numbers", "complex128", "float"],
    ),
    "correct of integers": (
        lambda: aurc([0, 1], [0.1, 0.2]),
        TypeError,
        ["correct must be boolean", "int64", "y == model.predict(X)"],
    ),
    "correct and uncertainty differ in length": (
        lambda: aurc([True], [0.1, 0.2]),
        ValueError,
        ["correct and uncertainty", "same length", "1 and 2"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case):
    call, error, words = CASES[case]
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_softmax_of_any_precision_passes(rng, dtype):
    logits = rng.normal(size=(200, 10)).astype(dtype)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert proba.dtype == dtype
    assert 0 < ood_brier(proba) < 0.9


@pytest.mark.parametrize("miss", [-2e-3, 2e-3])
def test_row_sums_off_by_more_than_float16_rounding_are_refused(miss):
    with pytest.raises(ValueError, match="sum to one"):
        ood_brier([[0.5, 0.5 + miss]])
    assert ood_brier([[0.5, 0.5 + miss / 4]]) > 0


def test_any_array_like_of_numbers_passes():
    assert ood_auroc((1, 2), np.array([3], dtype=np.uint8)) == 1
    assert ood_auroc([False, True], [True]) == 0.75
    assert brier_score(np.array([0, 1], dtype=np.uint64), P) == pytest.approx(0.29)
