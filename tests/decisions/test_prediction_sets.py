import numpy as np
import pytest
from scipy import stats

from dipedl.decisions import conformal_quantile, prediction_sets

REPETITIONS = 200


def draw(rng, n, k=5):
    """Probabilities and labels drawn from distorted ones: a miscalibrated classifier."""
    P = rng.dirichlet(np.full(k, 0.6), n)
    true = P**0.7 / (P**0.7).sum(axis=1, keepdims=True)
    return P, np.array([rng.choice(k, p=p) for p in true])


def naive_scores(p, method):
    """Loops, straight from the definitions."""
    if method == "lac":
        return [1 - q for q in p]
    return [sum(other for other in p if other > q) for q in p]


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.3, 0.5, 0.7, 0.9])
def test_sets_are_those_of_the_definition_with_ties(rng, method, coverage):
    P = np.vstack([rng.dirichlet(np.ones(6), 20), rng.multinomial(4, np.ones(6) / 6, 40) / 4])
    held_out, order = rng.multinomial(4, np.ones(6) / 6, 50) / 4, rng.permutation(6)
    labels = rng.integers(0, 6, 50)
    of_label = [naive_scores(p, method)[y] for p, y in zip(held_out, labels, strict=True)]
    threshold = conformal_quantile(of_label, coverage) + 1e-11
    expected = np.array([naive_scores(p, method) for p in P]) <= threshold
    sets = prediction_sets(P, held_out, labels, coverage=coverage, method=method)
    np.testing.assert_array_equal(sets, expected)
    moved = np.argsort(order)[labels]
    sets = prediction_sets(P[:, order], held_out[:, order], moved, coverage=coverage, method=method)
    np.testing.assert_array_equal(sets, expected[:, order])


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.8, 0.9])
def test_coverage_lies_within_its_binomial_interval(rng, method, coverage):
    """One new input a split: 200 independent hits, each with probability ceil(c (N+1)) / (N+1)."""
    n, hits = 100, 0
    for _ in range(REPETITIONS):
        P, y = draw(rng, n + 1)
        sets = prediction_sets(P[:1], P[1:], y[1:], coverage=coverage, method=method)
        hits += sets[0, y[0]]
    exact = np.ceil(coverage * (n + 1)) / (n + 1)
    low, high = stats.binom.interval(0.99, REPETITIONS, exact)
    assert low <= hits <= high


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_coverage_of_one_split_follows_its_beta_law(rng, method):
    """Given the held-out rows coverage is Beta(j, N + 1 - j): Vovk 2012."""
    n, coverage = 80, 0.85
    j = int(np.ceil(coverage * (n + 1)))
    shares = []
    for _ in range(REPETITIONS):
        P, y = draw(rng, n + 400)
        sets = prediction_sets(P[n:], P[:n], y[:n], coverage=coverage, method=method)
        shares.append(sets[np.arange(400), y[n:]].mean())
    law = stats.beta(j, n + 1 - j)
    assert abs(np.mean(shares) - law.mean()) < 4 * law.std() / np.sqrt(REPETITIONS)
    assert np.std(shares) < 1.3 * np.hypot(law.std(), np.sqrt(0.15 * 0.85 / 400))


def test_quantile_at_the_edges():
    assert conformal_quantile(np.arange(9.0), 0.9) == 8.0
    assert conformal_quantile(np.arange(8.0), 0.9) == np.inf
    assert conformal_quantile(np.arange(19.0), 0.9) == 17.0
    assert conformal_quantile([4.0], 0.5) == 4.0
    assert conformal_quantile([0.0, np.inf], 0.5) == np.inf


def test_a_weight_counts_a_row_that_often(rng):
    values, w = rng.normal(size=40), rng.integers(0, 4, 40)
    for coverage in (0.1, 0.5, 0.9, 0.99):
        repeated = conformal_quantile(np.repeat(values, w), coverage)
        assert conformal_quantile(values, coverage, w) == repeated


@pytest.mark.parametrize("row", [[1 - 1e-9, 1e-9, 0.0], [0.4, 0.4, 0.2], [1 / 3, 1 / 3, 1 / 3]])
@pytest.mark.parametrize("method", ["lac", "aps"])
def test_rounding_takes_no_class_out_of_a_set(method, row):
    held = np.tile(row, (99, 1))
    labels = np.zeros(99, dtype=int)
    whole = prediction_sets([row], held, labels, method=method)
    for moved in ([-1e-16, 1e-16, 0.0], [-1e-16, 0.0, 1e-16]):
        rounded = np.array(row) + moved
        np.testing.assert_array_equal(
            prediction_sets([rounded], held, labels, method=method), whole
        )
