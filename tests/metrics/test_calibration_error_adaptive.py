from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, labelled

from dipedl.metrics import accuracy, adaptive_ece, ece


def naive_adaptive_ece(y, proba, n_bins):
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


def binary(confidence, hit):
    c = np.asarray(confidence, dtype=float)
    return 1 - np.asarray(hit, dtype=int), np.column_stack([c, 1 - c])


@given(labelled(), st.integers(1, 30))
def test_agrees_with_a_loop(data, n_bins):
    y, proba = data
    expected = naive_adaptive_ece(y, proba, n_bins)
    np.testing.assert_allclose(adaptive_ece(y, proba, n_bins=n_bins), expected, **EXACT)


@pytest.mark.parametrize("n_bins", [1, 2, 4, 5, 20])
def test_without_ties_it_is_a_split_of_the_sorted_rows(rng, n_bins):
    confidence, hit = rng.uniform(0.5, 1, 20), rng.random(20) < 0.6
    order = np.argsort(confidence)
    parts = np.array_split(order, n_bins)
    expected = sum(abs(hit[p].sum() - confidence[p].sum()) for p in parts) / 20
    assert adaptive_ece(*binary(confidence, hit), n_bins=n_bins) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize(("n", "n_bins"), [(7, 3), (10, 4), (23, 15), (100, 15), (99, 7)])
def test_bins_end_at_the_rounded_up_shares_of_the_rows(rng, n, n_bins):
    """Bin b ends at row ceil(b n / n_bins) of the sorted rows, so sizes differ by one at most."""
    ends = [-(-b * n // n_bins) for b in range(n_bins + 1)]
    confidence = np.linspace(0.6, 0.9, n)
    for _ in range(20):
        hit = rng.random(n) < 0.5
        gaps = [abs((hit - confidence)[a:b].sum()) for a, b in pairwise(ends)]
        value = adaptive_ece(*binary(confidence, hit), n_bins=n_bins)
        assert value == pytest.approx(sum(gaps) / n, rel=1e-12)


def test_tied_confidences_stay_in_one_bin():
    """Three of four right at confidence 0.75: any cut through the tie would find a gap."""
    y, proba = binary(np.full(8, 0.75), [True] * 6 + [False] * 2)
    assert adaptive_ece(y, proba, n_bins=4) == 0
    assert adaptive_ece(y[::-1], proba[::-1], n_bins=4) == 0


@given(labelled())
def test_one_bin_is_the_gap_of_the_means(data):
    y, proba = data
    gap = abs(accuracy(y, proba) - proba.max(axis=1).mean())
    np.testing.assert_allclose(adaptive_ece(y, proba, n_bins=1), gap, **EXACT)
    assert adaptive_ece(y, proba) >= gap - 1e-12


@given(labelled())
def test_as_many_bins_as_rows_separate_every_distinct_confidence(data):
    y, proba = data
    confidence = proba.max(axis=1)
    hit = proba.argmax(axis=1) == y
    groups = [confidence == c for c in np.unique(confidence)]
    expected = sum(abs(hit[g].sum() - confidence[g].sum()) for g in groups) / len(y)
    np.testing.assert_allclose(adaptive_ece(y, proba, n_bins=len(y)), expected, **EXACT)


def test_resolves_what_equal_width_hides(rng):
    """All confidences in (14/15, 1]: too high in one half, too low in the other, cancels in ECE."""
    confidence = np.concatenate([np.full(500, 0.94), np.full(500, 0.99)])
    hit = np.concatenate([np.ones(500), rng.permutation(500) >= 35])  # 100 % and 93 %
    y, proba = binary(confidence, hit)
    assert ece(y, proba) == pytest.approx(0.0, abs=1e-12)
    assert adaptive_ece(y, proba) == pytest.approx(0.06, rel=1e-9)
