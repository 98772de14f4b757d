from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, answers

from dipedl.metrics import errors_avoided


def by_every_order(correct, uncertainty, m):
    """Mean share of the errors among the m most uncertain, over all orders of tied inputs."""
    shares = []
    for order in permutations(range(len(correct))):
        ranked = [uncertainty[i] for i in order]
        if all(a >= b for a, b in pairwise(ranked)):
            wrong = [not correct[i] for i in order]
            shares.append(sum(wrong[:m]) / sum(wrong))
    return np.mean(shares)


@given(answers(max_n=6), st.integers(1, 6))
def test_agrees_with_every_order_of_ties(data, m):
    correct, uncertainty = data
    m = min(m, len(correct))
    expected = 1.0 if correct.all() else by_every_order(correct, uncertainty, m)
    found = errors_avoided(correct, uncertainty, rejected=m / len(correct))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(answers())
def test_never_less_for_more_rejected_and_all_for_all(data):
    shares = [errors_avoided(*data, rejected=q) for q in (0.05, 0.1, 0.33, 0.7, 1.0)]
    assert all(b >= a - 1e-12 for a, b in pairwise(shares))
    np.testing.assert_allclose(shares[-1], 1.0, **EXACT)


@pytest.mark.parametrize("rejected", [0.1, 0.25, 0.9])
def test_a_constant_avoids_the_share_it_rejects(rejected):
    correct = np.arange(37) % 5 > 0
    assert errors_avoided(correct, np.ones(37), rejected=rejected) == pytest.approx(rejected)


def test_part_of_an_input_counts_in_part():
    correct = np.array([False, True, True, True, True])
    assert errors_avoided(correct, [9.0, 1, 2, 3, 4], rejected=0.1) == pytest.approx(0.5)


def test_nothing_to_avoid():
    assert errors_avoided([True, True], [0.1, 0.2]) == 1.0


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"rejected must be in \(0, 1\]"):
        errors_avoided([True, False], [0.1, 0.2], rejected=0.0)
    with pytest.raises(TypeError, match="correct must be boolean"):
        errors_avoided([1, 0], [0.1, 0.2])
