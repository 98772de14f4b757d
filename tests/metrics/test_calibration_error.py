import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_strategies import EXACT, labelled

from dipedl.metrics import accuracy, ece


def naive_ece(y, proba, n_bins):
    """Bin by bin: confidences in (b/n_bins, (b+1)/n_bins]; all positive, so bin 0 needs no care."""
    confidence, total = proba.max(axis=1), 0.0
    for b in range(n_bins):
        inside = [i for i, c in enumerate(confidence) if b / n_bins < c <= (b + 1) / n_bins]
        if b == n_bins - 1:  # sums of floats may end a rounding above 1
            inside += [i for i, c in enumerate(confidence) if c > 1]
        if inside:
            acc = np.mean([proba[i].argmax() == y[i] for i in inside])
            total += len(inside) / len(y) * abs(acc - np.mean(confidence[inside]))
    return total


def binary(confidence, hit):
    """Labels and probabilities with these confidences (all > 1/2) and these hits."""
    c = np.asarray(confidence, dtype=float)
    return 1 - np.asarray(hit, dtype=int), np.column_stack([c, 1 - c])


@given(labelled(), st.integers(1, 30))
def test_agrees_with_a_loop(data, n_bins):
    y, proba = data
    np.testing.assert_allclose(ece(y, proba, n_bins=n_bins), naive_ece(y, proba, n_bins), **EXACT)


@given(labelled())
def test_one_bin_is_the_gap_of_the_means_and_more_bins_are_not_below_it(data):
    y, proba = data
    gap = abs(accuracy(y, proba) - proba.max(axis=1).mean())
    np.testing.assert_allclose(ece(y, proba, n_bins=1), gap, **EXACT)
    assert ece(y, proba, n_bins=15) >= gap - 1e-12


def test_default_is_fifteen_bins(rng):
    y, proba = binary(rng.uniform(0.5, 1, 300), rng.random(300) < 0.7)
    assert ece(y, proba) == ece(y, proba, n_bins=15) != ece(y, proba, n_bins=14)


@pytest.mark.parametrize("n_bins", [2, 3, 7, 15, 59])
def test_an_edge_belongs_to_the_bin_below(n_bins):
    """A hit on the edge and a miss just below cancel in one bin; a miss just above is apart."""
    for i in range(n_bins // 2 + 1, n_bins):
        edge = i / n_bins
        below = ece(*binary([edge, np.nextafter(edge, 0)], [True, False]), n_bins=n_bins)
        above = ece(*binary([edge, np.nextafter(edge, 1)], [True, False]), n_bins=n_bins)
        assert below == pytest.approx(abs(0.5 - edge), abs=1e-12)
        assert above == pytest.approx(0.5, abs=1e-12)


def test_constant_confidence():
    y, proba = binary(np.full(10, 0.8), [True] * 6 + [False] * 4)
    assert ece(y, proba) == pytest.approx(0.2, rel=1e-12)


def test_calibrated_model_scores_near_zero_and_an_overconfident_one_its_excess(rng):
    n, n_bins = 20_000, 15
    confidence = rng.uniform(0.5, 0.8, n)
    y, proba = binary(confidence, rng.random(n) < confidence)
    # E[ECE] <= sqrt(n_bins / n) / 2 by Jensen; a row moves it by 1/n at most: sd <= 1/(2 sqrt n)
    bias, sd = np.sqrt(n_bins / n) / 2, 0.5 / np.sqrt(n)
    assert ece(y, proba, n_bins=n_bins) < bias + 5 * sd
    boasting = np.column_stack([confidence + 0.2, 0.8 - confidence])
    assert ece(y, boasting, n_bins=n_bins) == pytest.approx(0.2, abs=bias + 5 * sd)
