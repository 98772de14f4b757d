import math

import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, scores, stacked
from sklearn.metrics import roc_auc_score

from dipedl.metrics import ood_auroc


@given(scores(), scores())
def test_agrees_with_sklearn(u_in, u_out):
    np.testing.assert_allclose(
        ood_auroc(u_in, u_out), roc_auc_score(*stacked(u_in, u_out)), **EXACT
    )


@given(scores(), scores())
def test_agrees_with_counting_pairs(u_in, u_out):
    won = sum((o > i) + 0.5 * (o == i) for o in u_out for i in u_in)
    np.testing.assert_allclose(ood_auroc(u_in, u_out), won / (len(u_in) * len(u_out)), **EXACT)


@given(scores(), scores())
def test_exchanging_or_negating_the_classes_gives_one_minus_it(u_in, u_out):
    value = ood_auroc(u_in, u_out)
    np.testing.assert_allclose(ood_auroc(u_out, u_in), 1 - value, **EXACT)
    np.testing.assert_allclose(ood_auroc(-u_in, -u_out), 1 - value, **EXACT)


@given(scores(), scores())
def test_depends_on_order_only(u_in, u_out):
    _, rank = stacked(u_in, u_out)
    for monotone in (rank, rank**3 - 40, -np.exp(-rank / 8)):
        assert ood_auroc(monotone[: len(u_in)], monotone[len(u_in) :]) == ood_auroc(u_in, u_out)


def test_known_values():
    assert ood_auroc([0, 1], [2, 3]) == 1
    assert ood_auroc([2, 3], [0, 1]) == 0
    assert ood_auroc([5, 5, 5], [5, 5]) == 0.5
    assert ood_auroc([-np.inf, np.inf], [np.inf]) == 0.75
    assert ood_auroc([-np.inf], [-1e300]) == 1


def test_two_normals(rng):
    """P(N(d, 1) > N(0, 1)) = Phi(d / sqrt 2)."""
    n, d = 4000, 1.0
    expected = 0.5 * (1 + math.erf(d / 2))
    value = ood_auroc(rng.normal(0, 1, n), rng.normal(d, 1, n))
    # the variance of a Mann-Whitney estimate is at most A (1 - A) / min(n_in, n_out)
    assert value == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / n))
