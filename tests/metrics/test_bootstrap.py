import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dipedl.metrics import (
    accuracy,
    aupr_out,
    bootstrap_ci,
    brier_score,
    fpr_at_tpr,
    nll,
    ood_auroc,
)


def mean(x):
    return x.mean()


def test_covers_the_true_mean_as_often_as_it_says(rng):
    """400 samples of 100 normals; the percentile interval of a mean is short by a factor of about
    sqrt(1 - 1/n) and uses z for t, which costs well under 0.01 of coverage at n = 100."""
    level, repeats, n = 0.9, 400, 100
    intervals = [
        bootstrap_ci(mean, rng.normal(3, 2, n), level=level, n_resamples=200, random_state=rng)
        for _ in range(repeats)
    ]
    covered = np.mean([ci.low <= 3 <= ci.high for ci in intervals])
    sd = math.sqrt(level * (1 - level) / repeats)
    assert covered == pytest.approx(level, abs=4 * sd + 0.01)


def test_agrees_with_scipy(rng):
    """Another implementation of the percentile interval, on a skewed statistic of paired rows."""
    x = rng.exponential(size=60)
    y = x + rng.normal(size=60)

    def slope(a, b):
        return np.cov(a, b)[0, 1] / a.var(ddof=1)

    resamples = 3000
    ours = bootstrap_ci(slope, x, y, n_resamples=resamples, random_state=0)
    theirs = stats.bootstrap(
        (x, y),
        slope,
        paired=True,
        vectorized=False,
        n_resamples=resamples,
        method="percentile",
        rng=1,
    )
    drawn = np.sort(theirs.bootstrap_distribution)
    # both ends are order statistics of independent draws: compare their ranks, sd of a difference
    for end, share in ((ours.low, 0.025), (ours.high, 0.975)):
        rank = np.searchsorted(drawn, end) / resamples
        assert rank == pytest.approx(share, abs=5 * math.sqrt(2 * share * (1 - share) / resamples))


def rows_stay_together(a, b):
    return float(np.array_equal(a, -b))


def share_of_pairs_kept(a, b):
    return float(np.mean(a == -b))


def two_samples(a, b):
    return share_of_pairs_kept(a, b)


two_samples.kind = "ood"


def test_arrays_of_the_same_rows_keep_them():
    a = np.arange(50)
    assert bootstrap_ci(rows_stay_together, a, -a, random_state=0).low == 1


@pytest.mark.parametrize("metric", [two_samples, partial(partial(two_samples))])
def test_two_samples_are_drawn_separately(metric):
    a = np.arange(50)
    ci = bootstrap_ci(metric, a, -a, random_state=0)
    assert ci.estimate == 1
    assert ci.high < 0.2  # a pair survives with probability 1/50; P(10 or more of 50) < 1e-6


def test_draws_with_replacement_and_keeps_the_size():
    sizes, distinct = [], []

    def look(x):
        sizes.append(len(x))
        distinct.append(len(set(x)))
        return 0.0

    bootstrap_ci(look, np.arange(1000), n_resamples=100, random_state=0)
    assert set(sizes) == {1000}
    expected = 1 - (1 - 1 / 1000) ** 1000
    sd = math.sqrt(expected * (1 - expected) / 1000 / 100)  # rows are negatively correlated
    assert np.mean(distinct[1:]) / 1000 == pytest.approx(expected, abs=5 * sd)


def drawn_by_hand(metric, data, separate):
    """95 % interval of 50 resamples of random_state 3: their extremes but one."""
    rng, values = np.random.default_rng(3), []
    for _ in range(50):
        if separate:
            values.append(metric(*(a[rng.integers(len(a), size=len(a))] for a in data)))
        else:
            rows = rng.integers(len(data[0]), size=len(data[0]))
            values.append(metric(*(a[rows] for a in data)))
    return sorted(values)[1], sorted(values)[-2]


@pytest.mark.parametrize("metric", [accuracy, brier_score, partial(brier_score)])
def test_metrics_of_labelled_rows_keep_them(metric, rng):
    data = rng.integers(3, size=80), rng.dirichlet(np.ones(3), size=80)
    ci = bootstrap_ci(metric, *data, n_resamples=50, random_state=3)
    assert (ci.low, ci.high) == drawn_by_hand(metric, data, separate=False)


@pytest.mark.parametrize("metric", [ood_auroc, aupr_out, partial(partial(fpr_at_tpr, tpr=0.8))])
def test_ood_metrics_resample_the_two_sets_separately(metric, rng):
    data = rng.normal(size=60), rng.normal(1, 1, size=40)
    ci = bootstrap_ci(metric, *data, n_resamples=50, random_state=3)
    assert (ci.low, ci.high) == drawn_by_hand(metric, data, separate=True)


def test_same_seed_same_interval_and_another_seed_another(rng):
    x = rng.normal(size=50)
    first, again, other = (bootstrap_ci(mean, x, random_state=s) for s in (1, 1, 2))
    assert first == again != other
    assert first.estimate == other.estimate == x.mean()


def test_ends_are_order_statistics_rounded_outwards():
    """40 resamples at 95 %: the ends are the extremes; 41 at 90 %: two are beyond each end."""
    values = iter([0.0, *range(40), 0.0, *range(41)])

    def scripted(_):
        return float(next(values))

    assert dataclasses.astuple(bootstrap_ci(scripted, [1], n_resamples=40)) == (0, 0, 39, 0.95, 40)
    ci = bootstrap_ci(scripted, [1], level=0.9, n_resamples=41)
    assert (ci.low, ci.high) == (2, 38)


def test_infinite_values_give_infinite_ends_not_nan():
    y, proba = np.array([0, 1]), np.array([[1.0, 0.0], [1.0, 0.0]])
    ci = bootstrap_ci(nll, y, proba, random_state=0)
    assert (ci.estimate, ci.low, ci.high) == (math.inf, 0.0, math.inf)
