import math

import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, labelled
from sklearn.metrics import log_loss

from dipedl.metrics import nll


@given(labelled())
def test_agrees_with_sklearn_where_nothing_is_clipped(data):
    y, proba = data
    proba = 0.9 * proba + 0.1 / proba.shape[1]
    reference = log_loss(y, proba, labels=np.arange(proba.shape[1]))
    np.testing.assert_allclose(nll(y, proba), reference, **EXACT)


@given(labelled())
def test_agrees_with_a_loop_and_is_infinite_where_a_true_class_has_no_mass(data):
    y, proba = data
    masses = [row[label] for label, row in zip(y, proba, strict=True)]
    expected = math.inf if 0 in masses else -sum(map(math.log, masses)) / len(y)
    np.testing.assert_allclose(nll(y, proba), expected, **EXACT)


def test_known_values():
    assert nll([0, 1, 2], np.full((3, 3), 1 / 3)) == pytest.approx(math.log(3), rel=1e-12)
    assert math.copysign(1, nll([0, 1], np.eye(2))) == 1  # 0.0, not -0.0


def test_keeps_what_float32_and_sklearn_cannot():
    """A probability of 1e-300 is 690.8 nats; a clip at the machine epsilon would say 36."""
    assert nll([1], [[1.0, 1e-300]]) == pytest.approx(300 * math.log(10), rel=1e-12)
