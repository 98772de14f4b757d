from itertools import permutations

import numpy as np
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
