import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, labelled

from dipedl.metrics import brier_score, ood_brier


def naive_ood_brier(proba):
    k = len(proba[0])
    return sum(sum((p - 1 / k) ** 2 for p in row) for row in proba) / len(proba)


@given(labelled())
def test_agrees_with_a_loop(data):
    np.testing.assert_allclose(ood_brier(data[1]), naive_ood_brier(data[1]), **EXACT)


@pytest.mark.parametrize(("k", "worst"), [(2, 0.5), (10, 0.9)])
def test_known_values(k, worst):
    assert ood_brier(np.full((4, k), 1 / k)) == 0
    assert ood_brier(np.eye(k)) == pytest.approx(worst, rel=1e-12)


@given(labelled())
def test_is_the_brier_score_averaged_over_the_labels(data):
    """Mean Brier over uniformly drawn labels = distance to uniform + that of uniform itself."""
    _, proba = data
    n, k = proba.shape
    over_labels = np.mean([brier_score(np.full(n, j), proba) for j in range(k)])
    np.testing.assert_allclose(ood_brier(proba) + (k - 1) / k, over_labels, **EXACT)


@given(labelled())
def test_shrinking_to_uniform_scales_by_the_square(data):
    """Mixing in a share u of the uniform multiplies the score by (1 - u)^2."""
    _, proba = data
    mixed = 0.7 * proba + 0.3 / proba.shape[1]
    np.testing.assert_allclose(ood_brier(mixed), 0.49 * ood_brier(proba), **EXACT)
