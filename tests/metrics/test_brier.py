import inspect

import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, labelled
from sklearn.metrics import brier_score_loss

from dipedl.metrics import brier_score


def naive_brier(y, proba):
    total = 0.0
    for label, row in zip(y, proba, strict=True):
        for k, p in enumerate(row):
            total += (p - (1.0 if k == label else 0.0)) ** 2
    return total / len(y)


@given(labelled())
def test_agrees_with_a_loop(data):
    np.testing.assert_allclose(brier_score(*data), naive_brier(*data), **EXACT)


@pytest.mark.skipif(
    "scale_by_half" not in inspect.signature(brier_score_loss).parameters,
    reason="multi-class Brier came with scikit-learn 1.7",
)
@given(labelled())
def test_agrees_with_sklearn(data):
    y, proba = data
    reference = (
        brier_score_loss(y, proba, labels=np.arange(proba.shape[1]), scale_by_half=False)
        if proba.shape[1] > 2
        else 2 * brier_score_loss(y, proba[:, 1], pos_label=1)
    )
    np.testing.assert_allclose(brier_score(y, proba), reference, **EXACT)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_known_values(k):
    y = np.arange(k)
    assert brier_score(y, np.eye(k)) == 0
    assert brier_score(y, np.roll(np.eye(k), 1, axis=1)) == 2
    assert brier_score(y, np.full((k, k), 1 / k)) == pytest.approx((k - 1) / k, rel=1e-12)


def test_is_proper(rng):
    """Among forecasts on a line through the true probabilities q, the truth scores best."""
    q = np.array([0.5, 0.3, 0.2])
    n = 20_000
    y = rng.choice(3, size=n, p=q)
    step = np.array([0.1, 0.0, -0.1])
    truth, off = (brier_score(y, np.tile(q + t * step, (n, 1))) for t in (0, 1))
    # E[off - truth] = |step|^2 = 0.02; per row the difference has a range below 0.4
    assert off - truth == pytest.approx(0.02, abs=5 * 0.2 / np.sqrt(n))
