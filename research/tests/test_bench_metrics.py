"""Metrics of the tables against plain loops and scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_curve

from dipedl_bench.results.metrics import adaptive_ece, aupr_in, caught_at_5, ood_brier


def naive_adaptive_ece(y, proba, n_bins):
    """Bin b holds the rows of which b in n_bins are less sure: ties stay together."""
    confidence, n = proba.max(axis=1), len(y)
    bins = {}
    for i, c in enumerate(confidence):
        less_sure = sum(other < c for other in confidence)
        bins.setdefault(less_sure * n_bins // n, []).append(i)
    total = 0.0
    for rows in bins.values():
        acc = np.mean([proba[i].argmax() == y[i] for i in rows])
        total += len(rows) / n * abs(acc - np.mean(confidence[rows]))
    return total


def some_rows(rng, n=25, k=3):
    """Labels and probabilities with many ties."""
    counts = rng.integers(1, 5, size=(n, k)).astype(float)
    return rng.integers(k, size=n), counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_bins", [1, 4, 15, 30])
def test_the_calibration_error_agrees_with_a_loop(rng, n_bins):
    for n in (1, 7, 25):
        y, proba = some_rows(rng, n)
        value = adaptive_ece(y, proba, n_bins=n_bins)
        assert value == pytest.approx(naive_adaptive_ece(y, proba, n_bins), rel=1e-12, abs=1e-13)


def binary(confidence, hit):
    """Labels and probabilities with these confidences (all > 1/2) and these hits."""
    return 1 - np.asarray(hit, dtype=int), np.column_stack([confidence, 1 - confidence])


@pytest.mark.parametrize(("n", "n_bins"), [(20, 1), (20, 20), (7, 3), (23, 15), (99, 7)])
def test_adaptive_bins_end_at_the_rounded_up_shares_of_the_rows(rng, n, n_bins):
    """Bin b ends at row ceil(b n / n_bins) of the sorted rows, so sizes differ by one at most."""
    ends = [-(-b * n // n_bins) for b in range(n_bins + 1)]
    confidence, hit = np.linspace(0.6, 0.9, n), rng.random(n) < 0.5
    gaps = [abs((hit - confidence)[a:b].sum()) for a, b in pairwise(ends)]
    value = adaptive_ece(*binary(confidence, hit), n_bins=n_bins)
    assert value == pytest.approx(sum(gaps) / n, rel=1e-12)


def test_aupr_of_known_inputs_is_that_of_scikit_learn(rng):
    u_in, u_out = rng.integers(0, 9, 40) / 8, rng.integers(3, 15, 30) / 8
    labels, u = np.repeat([1, 0], [40, 30]), np.concatenate([u_in, u_out])
    assert aupr_in(u_in, u_out) == pytest.approx(average_precision_score(labels, -u), rel=1e-12)
    assert aupr_in(np.zeros(40), np.zeros(30)) == aupr_in.baseline(u_in, u_out) == 40 / 70


def test_brier_of_unknown_inputs_agrees_with_a_loop(rng):
    _, proba = some_rows(rng)
    loop = sum(sum((p - 1 / 3) ** 2 for p in row) for row in proba) / len(proba)
    assert ood_brier(proba) == pytest.approx(loop, rel=1e-12)


def test_power_is_the_height_of_the_roc_curve_at_one_false_alarm_in_twenty(rng):
    for n_in, n_out in ((20, 30), (200, 7), (19, 5)):
        u_in, u_out = rng.integers(0, 40, n_in) / 8, rng.integers(10, 60, n_out) / 8
        labels = np.repeat([0, 1], [n_in, n_out])
        false, true, _ = roc_curve(labels, np.r_[u_in, u_out], drop_intermediate=False)
        # 0.05 is one of 20 rows, but for rounding
        expected = true[false <= 0.05 + 1e-9].max()
        assert caught_at_5(u_in, u_out) == pytest.approx(expected, rel=1e-12)
    assert caught_at_5(np.zeros(40), np.zeros(30)) == 0
