"""Evidence against "no change": exact expectations, naive references, Ville's bound."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from dipedl.apps.monitor.bets import ReferenceRanks, Wealth, log_urn, mean_gains, upper_bound


@pytest.fixture(scope="module")
def ranks():
    rng = np.random.default_rng(0)
    return ReferenceRanks.of(rng.normal(size=300), None, rng, both=True)


def counted(places, k):
    return np.bincount(places, minlength=k).astype(float)


def test_urn_against_a_loop_over_rows(ranks):
    urn = ranks.sizes + 1.0
    places = np.random.default_rng(1).integers(0, len(urn), 40)
    expected, now = 0.0, urn.copy()
    for place in places:
        expected += np.log(now[place] / now.sum())
        now[place] += 1
    assert log_urn(urn, counted(places, len(urn))) == pytest.approx(expected, rel=1e-12)


def test_no_bettor_gains_on_average_over_all_sequences(ranks):
    """The mean wealth after two more rows, over every pair of ranges, is 1 for each bettor."""
    k = len(ranks.sizes)
    seen = np.random.default_rng(2).integers(0, 30, k).astype(float)
    batches = np.array([counted(pair, k) for pair in product(range(k), repeat=2)])
    chance = np.exp(log_urn(ranks.sizes + seen, batches))
    assert chance.sum() == pytest.approx(1.0)
    means = chance @ np.exp(ranks.gains(np.broadcast_to(seen, batches.shape), batches))
    np.testing.assert_allclose(means, np.ones(ranks.bettors), rtol=1e-10)


def test_ranks_of_exchangeable_rows_are_the_urn():
    """The share of new rows in the lowest gap is beta distributed, whatever the distribution."""
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(400):
        reference = rng.standard_cauchy(99)
        made = ReferenceRanks.of(reference, None, rng, both=False)
        below = made.cuts[0] if made.sizes[0] == 1 else np.nan
        shares.append(stats.cauchy.cdf(below))
    assert stats.kstest(shares, stats.beta(1, 99).cdf).pvalue > 1e-3


def test_ties_are_broken_evenly():
    """Of rows that all are equal each gap is as probable as any other."""
    rng = np.random.default_rng(4)
    lowest = []
    for _ in range(300):
        made = ReferenceRanks.of(np.zeros(200), None, rng, both=True)
        lowest.append((made.place(np.zeros(50), rng.random(50)) == 0).mean() / made.sizes[0] * 201)
    assert np.mean(lowest) == pytest.approx(1.0, abs=5 * np.std(lowest) / np.sqrt(300))


def test_weights_that_count_rows_twice_leave_the_cuts():
    rng, values = np.random.default_rng(5), np.random.default_rng(6).normal(size=500)
    once = ReferenceRanks.of(values, None, rng, both=True)
    twice = ReferenceRanks.of(values, np.full(500, 2.0), rng, both=True)
    np.testing.assert_array_equal(once.cuts, twice.cuts)
    np.testing.assert_allclose(once.sizes, twice.sizes)


def test_ville_by_monte_carlo():
    """Two bettors on a fair coin: few of 4,000 streams ever reach 20, and the mean stays 1."""
    rng, wealth = np.random.default_rng(7), Wealth.of(2)
    for _ in range(150):
        won = rng.random(4000) < 0.5
        gains = np.log(np.where(won[:, None], [1.4, 0.6], [0.6, 1.4]))
        wealth = wealth.after(gains)
    ever = (wealth.highest >= np.log(20)).mean()
    assert 0.0 < ever <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


def test_wealth_against_a_loop_without_logarithms():
    rng, wealth = np.random.default_rng(8), Wealth.of(3)
    parts, shares = np.array([1, 1, 1, 3]) / 6, np.array([1, 1, 1, 3]) / 6
    for step in range(20):
        factors = rng.uniform(0.5, 2.0, 3)
        if step:
            jump = 1 / (step + 1)
            parts = (1 - jump) * parts + jump * parts.sum() * shares
        parts = parts * np.append(factors, 1.0)
        wealth = wealth.after(np.log(factors))
    assert wealth.log_total == pytest.approx(np.log(parts.sum()))


@pytest.mark.parametrize("most", [0.03, 0.4, 0.97])
def test_bets_on_a_mean_at_its_bound_are_fair(most):
    one, none = mean_gains(np.array([1.0, 0.0]), most).T
    np.testing.assert_allclose(most * np.exp(one) + (1 - most) * np.exp(none), 1.0)


@pytest.mark.parametrize("n", [60, 600])
def test_upper_bound_holds_for_rare_large_values(n):
    """Of 200 references, at most 10 % have a bound below the mean; and it is not far above."""
    values = (np.random.default_rng(9).random((200, n)) < 0.02) * 0.9
    bounds = np.array([upper_bound(v, None, 0.1) for v in values])
    assert (bounds < 0.018).mean() <= 0.1 + 3 * np.sqrt(0.09 / 200)
    exact = stats.binom.ppf(0.999, n, 0.02) / n
    assert np.median(bounds) < 3 * exact


def test_upper_bound_counts_weights_as_rows():
    values = np.random.default_rng(10).random(80) ** 4
    assert upper_bound(values, np.full(80, 3.0), 0.01) == upper_bound(values, None, 0.01)
    assert upper_bound(np.ones(50), None, 0.01) == pytest.approx(1.0)
