from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from metric_strategies import EXACT, answers

from dipedl.metrics import aurc, risk_coverage_curve


def curve_of_order(correct):
    """Error rates of answers already in order, one prefix at a time."""
    wrong = [not c for c in correct]
    return [sum(wrong[:m]) / m for m in range(1, len(wrong) + 1)]


def naive_curve(correct, uncertainty):
    """Mean over every order of the rows, each then sorted stably: ties come in every order."""
    curves = []
    for order in permutations(range(len(correct))):
        by_certainty = sorted(order, key=lambda i: uncertainty[i])
        curves.append(curve_of_order([correct[i] for i in by_certainty]))
    return np.mean(curves, axis=0)


@given(answers(max_n=6))
def test_curve_is_the_mean_over_all_orders_of_ties(data):
    curve = risk_coverage_curve(*data)
    np.testing.assert_allclose(curve.risk, naive_curve(*data), **EXACT)
    n = len(data[0])
    np.testing.assert_allclose(curve.coverage, [m / n for m in range(1, n + 1)], **EXACT)


@given(answers(max_n=6))
def test_areas_against_all_orders(data):
    correct, uncertainty = data
    expected = naive_curve(correct, uncertainty).mean()
    best = min(np.mean(curve_of_order(order)) for order in permutations(correct))
    np.testing.assert_allclose(aurc(correct, uncertainty), expected, **EXACT)
    np.testing.assert_allclose(aurc(correct, ~np.asarray(correct)), best, **EXACT)


@given(answers())
def test_without_ties_it_is_the_plain_curve(data):
    correct, uncertainty = data
    position = np.argsort(np.argsort(uncertainty, kind="stable"))
    ordered = correct[np.argsort(position)]
    np.testing.assert_allclose(
        risk_coverage_curve(correct, position).risk, curve_of_order(ordered), **EXACT
    )


@given(answers())
def test_depends_on_order_only(data):
    correct, uncertainty = data
    _, rank = np.unique(uncertainty, return_inverse=True)
    assert aurc(correct, uncertainty) == aurc(correct, rank)


@given(answers())
def test_ends_at_the_error_rate_and_stays_in_range(data):
    correct, uncertainty = data
    curve = risk_coverage_curve(correct, uncertainty)
    np.testing.assert_allclose(curve.risk[-1], 1 - correct.mean(), **EXACT)
    assert 0 <= aurc(correct, uncertainty) <= 1


def test_constant_uncertainty_has_the_flat_curve_of_the_error_rate():
    correct = np.array([True, False, True, True, False])
    np.testing.assert_allclose(risk_coverage_curve(correct, np.zeros(5)).risk, 0.4, rtol=1e-12)
    assert aurc(correct, np.full(5, np.inf)) == pytest.approx(0.4, rel=1e-12)


@pytest.mark.parametrize(("right", "wrong"), [(7, 3), (1, 1), (5, 0), (0, 5)])
def test_perfect_order_has_the_known_area(right, wrong):
    correct = np.repeat([True, False], [right, wrong])
    uncertainty = np.arange(right + wrong)
    errors = np.arange(1, wrong + 1)
    expected = (errors / (right + errors)).sum() / (right + wrong)
    assert aurc(correct, uncertainty) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("error_rate", [0.05, 0.3, 0.9])
def test_best_area_tends_to_the_closed_form_of_the_paper(error_rate):
    """r + (1 - r) log(1 - r), up to the 1/n of a Riemann sum of a curve that rises from 0 to r."""
    n = 10_000
    wrong = round(error_rate * n)
    correct = np.repeat([True, False], [n - wrong, wrong])
    closed = error_rate + (1 - error_rate) * np.log(1 - error_rate)
    assert aurc(correct, ~correct) == pytest.approx(closed, abs=1 / n)


def test_infinities_are_ranked_at_the_ends():
    assert aurc([False, True], [np.inf, 1e300]) == aurc([False, True], [1, 0]) == 0.25
    assert aurc([False, True], [-np.inf, -1e300]) == aurc([False, True], [0, 1]) == 0.75
