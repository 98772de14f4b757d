import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, labelled
from sklearn.metrics import accuracy_score

from dipedl.metrics import accuracy


@given(labelled())
def test_agrees_with_sklearn_and_a_loop(data):
    y, proba = data
    np.testing.assert_allclose(accuracy(y, proba), accuracy_score(y, proba.argmax(1)), **EXACT)
    right = sum(list(row).index(max(row)) == label for label, row in zip(y, proba, strict=True))
    np.testing.assert_allclose(accuracy(y, proba), right / len(y), **EXACT)


@pytest.mark.parametrize(("label", "expected"), [(0, 1.0), (1, 0.0), (2, 0.0)])
def test_tie_goes_to_the_lowest_index(label, expected):
    assert accuracy([label], [[1 / 3, 1 / 3, 1 / 3]]) == expected
