"""Tests of differences: naive loops, Monte Carlo, scipy, and the example of Demšar's paper."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dipedl.metrics import ood_auroc
from dipedl_bench.results.significance import (
    adjust_holm,
    average_ranks,
    compare_aurocs,
    compare_over_data_sets,
    compare_over_seeds,
    rank_methods,
)


def scores(rng, n_in=30, n_out=20, apart=1.0):
    """Two methods on the same rows, correlated and with ties."""
    rows_in, rows_out = rng.normal(size=n_in), rng.normal(apart, 1, n_out)
    return [
        (
            np.round(rows_in + noise * rng.normal(size=n_in), 1),
            np.round(rows_out + noise * rng.normal(size=n_out), 1),
        )
        for noise in (0.3, 1.0)
    ]


def covariance_by_loops(methods):
    """DeLong 1988, equations 4 to 6: psi of every pair, then covariances of row means."""
    psi = [
        [[1.0 if x > y else 0.5 if x == y else 0.0 for y in u_in] for x in u_out]
        for u_in, u_out in methods
    ]
    by_out = [[np.mean(row) for row in of] for of in psi]
    by_in = [[np.mean(column) for column in zip(*of, strict=True)] for of in psi]
    return np.cov(by_out) / len(by_out[0]) + np.cov(by_in) / len(by_in[0])


def test_delong_agrees_with_loops_over_all_pairs(rng):
    first, second = scores(rng)
    found = compare_aurocs([[first]], [[second]])
    assert found.difference == pytest.approx(ood_auroc(*first) - ood_auroc(*second))
    contrast, S = np.array([1, -1]), covariance_by_loops([first, second])
    error = np.sqrt(contrast @ S @ contrast)
    assert found.standard_error == pytest.approx(error)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(found.difference) / error))


def test_delong_of_means_over_seeds_and_sets_has_the_spread_of_resamples(rng):
    """The bootstrap draws known rows once for all sets and seeds, OOD rows once for all seeds."""
    sizes = {"in": 80, "near": 60, "far": 50}
    rows = {name: rng.normal(size=n) for name, n in sizes.items()}
    methods = [
        [
            {name: of + shift[name] + noise * rng.normal(size=len(of)) for name, of in rows.items()}
            for shift in ({"in": 0.0, "near": 0.8, "far": 1.5},) * 2
        ]
        for noise in (0.4, 1.2)
    ]

    def nested(method, draw):
        return [
            [(seed["in"][draw["in"]], seed[name][draw[name]]) for seed in method]
            for name in ("near", "far")
        ]

    def mean(method, draw):
        return np.mean([ood_auroc(*pair) for of in nested(method, draw) for pair in of])

    everything = {name: np.arange(n) for name, n in sizes.items()}
    found = compare_aurocs(*(nested(method, everything) for method in methods))
    assert found.difference == pytest.approx(
        mean(methods[0], everything) - mean(methods[1], everything)
    )
    gaps = []
    for _ in range(400):
        draw = {name: rng.integers(n, size=n) for name, n in sizes.items()}
        gaps.append(mean(methods[0], draw) - mean(methods[1], draw))
    assert found.standard_error == pytest.approx(np.std(gaps), rel=0.15)


def test_delong_rejects_equal_methods_as_often_as_the_level_says(rng):
    p = []
    for _ in range(400):
        rows = rng.normal(size=60), rng.normal(1, 1, 50)
        noisy = [tuple(of + rng.normal(size=len(of)) for of in rows) for _ in range(2)]
        p.append(compare_aurocs([[noisy[0]]], [[noisy[1]]]).p_value)
    assert stats.binomtest(int(np.sum(np.array(p) < 0.1)), 400, 0.1).pvalue > 1e-3
    same = compare_aurocs([[noisy[0]]], [[noisy[0]]])
    assert (same.difference, same.standard_error, same.p_value) == (0.0, 0.0, 1.0)


def rejected_step_by_step(p, level):
    """Holm 1979: from the smallest on, until one is above its share of the level."""
    rejected = [False] * len(p)
    for step, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if p[i] > level / (len(p) - step):
            break
        rejected[i] = True
    return rejected


def test_holm_agrees_with_the_procedure(rng):
    for _ in range(50):
        p = np.round(rng.random(6) ** 3, 3)
        for level in (0.01, 0.05, 0.2):
            margin = 1e-12  # a product of floats may end beside the bound
            found = (adjust_holm(p) <= level + margin).tolist()
            assert found == rejected_step_by_step(p, level + margin)


#: AUCs of Demšar 2006, table 6: C4.5, with m, with cf, with both tuned, on 14 data sets.
#: Two of the last row but one are printed alike; the paper's ranks tell them apart.
DEMSAR = """
.763 .768 .771 .798
.599 .591 .590 .569
.954 .971 .968 .967
.628 .661 .654 .657
.882 .888 .886 .898
.936 .931 .916 .931
.661 .668 .609 .685
.583 .583 .563 .625
.775 .838 .866 .875
1.00 1.00 1.00 1.00
.940 .962 .965 .962
.619 .666 .614 .669
.972 .981 .97501 .975
.957 .978 .946 .970
"""


def iman_davenport(ranks, n):
    """Demšar 2006, the two formulas of section 3.2.1, without ties."""
    k = len(ranks)
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(ranks**2) - k * (k + 1) ** 2 / 4)
    return (n - 1) * chi2 / (n * (k - 1) - chi2)


def test_friedman_without_ties_is_the_formula_and_p_that_of_permutations(rng):
    values = rng.normal([0, 0.2, 0.5, 1.0], size=(12, 4))
    found = rank_methods(values, higher_is_better=False)
    assert found.statistic == pytest.approx(iman_davenport(found.ranks, 12))
    ranks = stats.rankdata(values, axis=1)
    null = [iman_davenport(rng.permuted(ranks, axis=1).mean(axis=0), 12) for _ in range(2000)]
    p = np.mean(np.array(null) >= found.statistic)
    assert found.p_value == pytest.approx(p, abs=4 * np.sqrt(p / 2000) + 0.005)


def test_the_example_of_demsar():
    values = np.array([line.split() for line in DEMSAR.split("\n") if line], dtype=float)
    found = rank_methods(values, higher_is_better=True)
    assert found.ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert found.n_data_sets == 14
    assert found.critical_difference == pytest.approx(1.25, abs=0.01)
    by_paper = iman_davenport(found.ranks, 14)
    assert by_paper == pytest.approx(3.69, abs=0.02)
    # the paper does not correct for ties, which makes the test more careful
    assert found.statistic > by_paper
    assert 0.001 < found.p_value < stats.f.sf(by_paper, 3, 39)
    np.testing.assert_allclose(average_ranks(-values, False), found.ranks)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (4, 2.569), (7, 2.949), (10, 3.164)])
def test_critical_values_are_those_of_demsar_s_table(k, q):
    if k > 2:
        found = rank_methods(np.tile(np.arange(k), (5, 1)), True).critical_difference
        assert found == pytest.approx(q * np.sqrt(k * (k + 1) / 30), abs=2e-3)


def test_paired_tests_agree_with_permutations_of_signs(rng):
    gaps = rng.normal(0.4, 1, 9)
    signs = np.array(list(itertools.product([-1, 1], repeat=9)))
    ranks = stats.rankdata(np.abs(gaps))
    exact = np.mean(np.abs(signs @ ranks) >= abs(np.sign(gaps) @ ranks) - 1e-9)
    assert compare_over_data_sets(gaps, np.zeros(9)) == pytest.approx(exact)
    t = gaps.mean() / gaps.std(ddof=1) * 3
    by_hand = 2 * stats.t.sf(abs(t), 8)
    assert compare_over_seeds(gaps, np.zeros(9)) == pytest.approx(by_hand)


def test_values_without_a_difference():
    assert compare_over_seeds([0.5, 0.6], [0.5, 0.6]) == 1.0
    assert compare_over_seeds([0.6, 0.7], [0.5, 0.6]) < 0.01
    assert compare_over_data_sets([0.5] * 4, [0.5] * 4) == 1.0
    assert rank_methods(np.ones((4, 3)), True).p_value == 1.0
    with pytest.raises(ValueError, match=r"values must have .* got shape \(4, 2\)"):
        rank_methods(np.ones((4, 2)), True)
