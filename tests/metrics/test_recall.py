import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, labelled

from dipedl.metrics import accuracy, balanced_accuracy, class_recall


@given(labelled())
def test_agrees_with_a_loop(data):
    y, proba = data
    guess = [list(row).index(max(row)) for row in proba]
    recalls = class_recall(y, proba)
    assert recalls.shape == (proba.shape[1],)
    for k, recall in enumerate(recalls):
        of_class = [guess[i] == k for i in range(len(y)) if y[i] == k]
        if of_class:
            np.testing.assert_allclose(recall, sum(of_class) / len(of_class), **EXACT)
        else:
            assert np.isnan(recall)
    np.testing.assert_allclose(balanced_accuracy(y, proba), np.nanmean(recalls), **EXACT)


@given(labelled())
def test_accuracy_is_the_mean_of_recalls_weighted_by_class(data):
    y, proba = data
    share = np.bincount(y, minlength=proba.shape[1]) / len(y)
    np.testing.assert_allclose(
        np.nansum(share * class_recall(y, proba)), accuracy(y, proba), **EXACT
    )


@pytest.mark.parametrize("k", [2, 3, 10])
def test_saying_one_class_always_is_worth_one_over_k_however_rare_the_others(k):
    y = np.concatenate([np.zeros(1000, dtype=int), np.arange(k)])
    assert balanced_accuracy(y, np.eye(k)[np.zeros(len(y), dtype=int)]) == pytest.approx(1 / k)


def test_classes_that_do_not_occur_do_not_count():
    assert balanced_accuracy([0, 1], [[1.0, 0, 0], [0, 1, 0]]) == 1.0


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"y must be in 0\.\.1"):
        class_recall([0, 2], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(TypeError, match="y must hold integer"):
        class_recall([0.0, 1.0], [[0.5, 0.5], [0.5, 0.5]])
