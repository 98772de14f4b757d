"""The budget is spent to the last digit, on rows scored by the definition of the Dirichlet."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.base import clone

from dipedl.evidence import CautionBudget, QuantileEvidence, log_evidence
from dipedl.evidence.caution_budget import brier_loss, log_loss


def held_out(rng, m=400, k=4, sharpness=2.0):
    """Scores (m,), probabilities (m, k) and labels (m,) drawn from them."""
    logits = sharpness * rng.normal(size=(m, k))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (proba.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1)
    return rng.normal(size=m), proba, np.minimum(y, k - 1)


def shrunk_mean(z, proba, n, prior, gamma=1.0):
    """The posterior mean, row by row, by the definition of the Dirichlet."""
    mean = []
    for zi, p in zip(z, proba, strict=True):
        alpha = prior + n * gamma * np.exp(zi) * p
        mean.append(alpha / alpha.sum())
    return np.array(mean)


def brier(mean, y):
    return sum(((m - np.eye(len(m))[c]) ** 2).sum() for m, c in zip(mean, y, strict=True)) / len(y)


def nll(mean, y):
    return -sum(np.log(m[c]) for m, c in zip(mean, y, strict=True)) / len(y)


MEASURES = {"brier": brier, "nll": nll}


FLAT = np.ones(4)


def worth(loss, proba, y, n=1000, prior=FLAT, gamma=1.0):
    """Loss at full evidence, and what a budget is a share of: that loss or its gain, the lower."""
    full = loss(shrunk_mean(np.zeros(len(y)), proba, n, prior, gamma), y)
    return full, min(full, loss(np.tile(prior / prior.sum(), (len(y), 1)), y) - full)


def fitted(caution, s, proba, y, n=1000, prior=FLAT, weights=None, gamma=1.0):
    return caution.fit(s, weights, proba=proba, y=y, n=n, prior=prior, gamma=gamma)


@pytest.mark.parametrize("measure", list(MEASURES))
@given(
    seed=st.integers(0, 10_000),
    budget=st.floats(1e-4, 0.1),
    slope=st.floats(0.5, 5),
    n=st.sampled_from([60, 1000, 1e6]),
    gamma=st.sampled_from([0.3, 1.0]),
    alpha0=st.sampled_from([0.4, 4.0, 8.0]),
    sharpness=st.sampled_from([1.0, 2.0, 5.0]),
)
def test_the_budget_is_spent_exactly(measure, seed, budget, slope, n, gamma, alpha0, sharpness):
    s, proba, y = held_out(np.random.default_rng(seed), 200, sharpness=sharpness)
    prior = np.array([0.4, 0.3, 0.2, 0.1]) * alpha0
    caution = fitted(CautionBudget(budget, measure, slope), s, proba, y, n, prior, gamma=gamma)
    loss = MEASURES[measure]
    full, unit = worth(loss, proba, y, n, prior, gamma)
    assume(unit > full / 20)
    spent = loss(shrunk_mean(caution.transform(s), proba, n, prior, gamma), y)
    np.testing.assert_allclose(caution.full_loss_, full, rtol=1e-12)
    np.testing.assert_allclose(caution.loss_, spent, rtol=1e-10)
    assert caution.exhausted_ and caution.lowest_loss_ <= full * (1 + 1e-12)
    np.testing.assert_allclose(spent, caution.lowest_loss_ + budget * unit, rtol=1e-9)


def test_on_noisy_labels_doubt_takes_a_share_of_the_gain_over_the_prior(rng):
    """That gain is E |p - m|^2 and the cost E u^2 |p - m|^2, if p is calibrated: u^2 is .02."""
    s, proba, y = held_out(rng, 100_000, sharpness=1.0)
    z = fitted(CautionBudget(0.02), s, proba, y, n=1e9).transform(s)
    u = 4 / (4 + np.exp(log_evidence(z, 1e9)))
    mean_square = np.average(u**2, weights=((proba - 0.25) ** 2).sum(axis=1))
    np.testing.assert_allclose(mean_square, 0.02, rtol=0.1)


def test_the_half_point_is_where_a_root_finder_puts_it(rng):
    s, proba, y = held_out(rng, 500, sharpness=4.0)
    unit = (np.median(s) - np.quantile(s, 0.01, method="inverted_cdf")) / 2.3263478740408408
    bare = brier(proba, y)

    def cost(t):
        u = 1 / (1 + np.exp(2 * (s - t) / unit))
        return brier((1 - u)[:, None] * proba + u[:, None] / 4, y)

    # With very many rows full evidence is the bare classifier, and u a plain logistic curve.
    caution = fitted(CautionBudget(), s, proba, y, n=1e12)
    np.testing.assert_allclose(caution.scale_, unit, rtol=0.01)
    unit = caution.scale_
    grid = np.linspace(-30, caution.location_, 150)
    near = grid[np.argmin([cost(t) for t in grid])] + np.array([-1, 1]) * (grid[1] - grid[0])
    lowest = optimize.minimize_scalar(cost, bounds=near, method="bounded").fun
    end = optimize.brentq(lambda t: cost(t) - lowest - 0.02 * bare, caution.location_ - 1, 0)
    np.testing.assert_allclose(caution.location_, end, rtol=1e-5)
    assert lowest < bare


def test_vacuity_is_one_half_at_the_half_point_and_evidence_is_bounded_by_n(rng):
    s, proba, y = held_out(rng)
    caution = fitted(CautionBudget(), s, proba, y, n=1000, gamma=0.5)
    evidence = np.exp(log_evidence(caution.transform([caution.location_, 1e3]), 1000, 0.5))
    np.testing.assert_allclose(evidence, [4.0, 500.0], rtol=1e-12)


def test_below_the_half_point_the_log_odds_fall_by_slope_per_unit(rng):
    s, proba, y = held_out(rng)
    caution = fitted(CautionBudget(slope=3.0), s, proba, y, n=1e9)
    x = caution.location_ - caution.scale_ * np.array([0.0, 1.0, 2.0, 100.0])
    np.testing.assert_allclose(np.diff(caution.transform(x)), [-3, -3, -294], rtol=1e-6)


@given(
    seed=st.integers(0, 1000),
    shift=st.floats(-1e4, 1e4),
    scale=st.floats(1e-3, 1e3),
    measure=st.sampled_from(["brier", "nll"]),
)
def test_the_unit_and_the_origin_of_the_scores_do_not_matter(seed, shift, scale, measure):
    s, proba, y = held_out(np.random.default_rng(seed), 100)
    x = np.linspace(-8, 3, 50)
    one = fitted(CautionBudget(0.05, measure), s, proba, y)
    other = fitted(CautionBudget(0.05, measure), shift + scale * s, proba, y)
    np.testing.assert_allclose(
        other.transform(shift + scale * x), one.transform(x), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("measure", ["brier", "nll"])
def test_a_weight_repeats_a_row_and_zero_removes_it(measure, rng):
    s, proba, y = held_out(rng, 150)
    w = rng.integers(0, 4, 150)
    weighted = fitted(CautionBudget(0.05, measure), s, proba, y, weights=w)
    rows = np.repeat(np.arange(150), w)
    repeated = fitted(CautionBudget(0.05, measure), s[rows], proba[rows], y[rows])
    for name in ("location_", "scale_", "full_loss_", "loss_", "allowed_loss_", "n_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


def test_one_weight_is_that_of_every_row(rng):
    rows = held_out(rng, 150)
    one, each = (fitted(CautionBudget(0.05), *rows, weights=w) for w in (2.0, np.full(150, 2.0)))
    assert one.loss_ == each.loss_ and one.n_ == 300


@pytest.mark.parametrize("measure", list(MEASURES))
def test_a_budget_of_zero_spends_nothing(measure, rng):
    s, proba, y = held_out(rng, 1000)
    caution = fitted(CautionBudget(0.0, measure), s, proba, y)
    assert caution.loss_ <= caution.full_loss_ * (1 + 2e-12)
    far = caution.transform([s.min() - 40 * caution.scale_])
    assert np.exp(log_evidence(far, 1000))[0] < 1e-6


@pytest.mark.parametrize("far", [-50.0, -1e9])
@pytest.mark.parametrize("m", [60, 400])
@pytest.mark.parametrize("measure", ["brier", "nll"])
def test_a_row_like_no_other_does_not_spend_the_budget_of_all(measure, m, far, rng):
    """Answered rightly and surely, it alone costs more than the budget."""
    s, proba, y = held_out(rng, m, sharpness=20.0)
    odd = np.append(s, far), np.vstack([proba, np.eye(4)[:1]]), np.append(y, 0)
    budget = CautionBudget(measure=measure)
    without, caution = fitted(clone(budget), s, proba, y), fitted(budget, *odd)
    for name in ("location_", "scale_", "full_loss_", "loss_"):
        np.testing.assert_allclose(getattr(caution, name), getattr(without, name), rtol=1e-9)
    assert np.exp(log_evidence(caution.transform([far]), 1000))[0] < 1e-6


def test_rows_far_away_count_if_they_are_many_or_if_new_rows_were_promised(rng):
    s, proba, y = held_out(rng, 400, sharpness=20.0)
    right = np.flatnonzero(proba.argmax(axis=1) == y)[:5]
    s[right] = -1000.0 - np.arange(5)
    assert fitted(CautionBudget(), s, proba, y).location_ < -900
    s[right[1:]] = 0.0
    assert fitted(CautionBudget(), s, proba, y).location_ > -10
    assert fitted(CautionBudget(confidence=0.8), s, proba, y).location_ < -900


def test_what_doubt_gains_is_kept_and_not_spent(rng):
    """Rows of low score answered wrongly and surely: doubt there lowers the loss, and stays so."""
    s = np.linspace(-3, 3, 200)
    y = np.zeros(200, dtype=int)
    proba = np.where(s[:, None] < -2, [[0.02, 0.98]], [[0.9, 0.1]])
    free = fitted(CautionBudget(0.0), s, proba, y, prior=np.ones(2))
    assert free.location_ > -2.5
    np.testing.assert_allclose(free.loss_, free.lowest_loss_, rtol=1e-9)
    assert free.loss_ < 0.8 * free.full_loss_
    bought = fitted(CautionBudget(0.02), s, proba, y, prior=np.ones(2))
    assert free.location_ < bought.location_ < -1.0
    unit = worth(brier, proba, y, prior=np.ones(2))[1]
    np.testing.assert_allclose(bought.loss_ - bought.lowest_loss_, 0.02 * unit)


def test_the_first_crossing_is_taken():
    """Wrong rows in the middle: above a dear stretch the loss falls below the budget once more."""
    s = np.linspace(-10, 10, 2001)
    wrong = s > -2
    y = np.zeros(2001, dtype=int)
    proba = np.where(wrong[:, None], [[0.05, 0.95]], [[0.99, 0.01]])
    caution = fitted(CautionBudget(0.01), s, proba, y, n=1e9, prior=np.ones(2))

    def loss(t):
        z = -np.logaddexp(0, -(caution.log_odds_ + 2 * (s - t) / caution.scale_))
        return brier(shrunk_mean(z, proba, 1e9, np.ones(2)), y)

    path = np.array([loss(t) for t in np.linspace(-30, caution.location_, 40)])
    assert max(path[path.argmin() :]) <= caution.allowed_loss_ * (1 + 1e-9)
    np.testing.assert_allclose(min(path), caution.lowest_loss_, rtol=1e-4)
    assert loss(caution.location_ + 1) > caution.allowed_loss_
    assert loss(9.0) < caution.lowest_loss_


@pytest.mark.parametrize("n", [100, 1000, 40_000])
def test_a_perfect_classifier_is_charged_as_one_row_that_only_the_prior_answers(n):
    s = np.random.default_rng(0).normal(size=5000)
    y = np.arange(5000) % 4
    caution = fitted(CautionBudget(0.02), s, np.eye(4)[y], y, n=n)
    full = 0.75 * (4 / (4 + n)) ** 2
    np.testing.assert_allclose(caution.full_loss_, full, rtol=1e-9)
    unit = max(full, 0.75 / 5000)
    np.testing.assert_allclose(caution.loss_, full + 0.02 * unit, rtol=1e-9)
    assert s.min() - 4 * caution.scale_ < caution.location_ < s.min()


def test_a_classifier_no_better_than_the_prior_may_be_doubted_throughout(rng):
    s, _, y = held_out(rng)
    caution = fitted(CautionBudget(), s, np.full((400, 4), 0.25), y)
    assert not caution.exhausted_ and caution.location_ == pytest.approx(s.max())


def test_no_ties_far_below_and_none_above_until_evidence_is_full(rng):
    s, proba, y = held_out(rng)
    caution = fitted(CautionBudget(), s, proba, y, n=40_000)
    below = -np.geomspace(1, 1e300, 3000)
    assert (np.diff(caution.transform(below)) < 0).all()
    above = np.linspace(caution.location_, caution.location_ + 300 * caution.scale_, 1000)
    assert (np.diff(caution.transform(above)) > 0).all()
    np.testing.assert_array_equal(caution.transform([-np.inf, -1.7e308]), [-np.inf, -np.inf][:2])


def test_where_the_prior_outweighs_the_data_the_half_point_halves_the_evidence(rng):
    s, proba, y = held_out(rng)
    caution = fitted(CautionBudget(), s, proba, y, n=5)
    assert caution.log_odds_ == 0
    np.testing.assert_allclose(np.exp(caution.transform([caution.location_])), 0.5)


def test_few_rows_of_zero_density_are_paid_from_the_budget_and_many_are_refused(rng):
    s, proba, y = held_out(rng, 1000, sharpness=4.0)
    s[:2] = -np.inf
    caution = fitted(CautionBudget(), s, proba, y)
    mean = shrunk_mean(caution.transform(s), proba, 1000, FLAT)
    np.testing.assert_allclose(brier(mean, y), 1.02 * caution.full_loss_, rtol=1e-9)
    s[:300] = -np.inf
    with pytest.raises(ValueError, match=r"300 of 1000 .* are -inf, and these rows alone cost"):
        fitted(CautionBudget(), s, proba, y)


@pytest.mark.parametrize("m", [1, 2, 5, 30])
def test_a_handful_of_rows(m, rng):
    s, proba, y = held_out(rng, m)
    if m == 1:
        with pytest.raises(ValueError, match="must vary to fit CautionBudget"):
            fitted(CautionBudget(), s, proba, y)
    else:
        assert np.isfinite(fitted(CautionBudget(), s, proba, y).location_)


def test_a_budget_of_one_may_double_the_loss_and_no_more(rng):
    s, proba, y = held_out(rng, 500, sharpness=5.0)
    caution = fitted(CautionBudget(1), s, proba, y)
    assert caution.loss_ <= caution.allowed_loss_ * (1 + 1e-9)
    np.testing.assert_allclose(caution.allowed_loss_, caution.lowest_loss_ + caution.full_loss_)


def test_the_budget_holds_on_new_rows_in_the_mean():
    """With 1,000 held-out rows new ones cost 2.1 % (sd .7): some fits overspend, by little."""
    rng = np.random.default_rng(0)
    s, proba, y = held_out(rng, 20_000)
    loss, (full, unit) = brier_loss(proba, y, FLAT / 4), worth(brier, proba, y)
    costs, n = [], 25
    for _ in range(n):
        z = fitted(CautionBudget(0.02), *held_out(rng, 1000)).transform(s)
        costs.append((loss(4 / (4 + 1000 * np.exp(z))).mean() - full) / unit)
    assert abs(np.mean(costs) - 0.02) < 4 * np.std(costs) / np.sqrt(n) + 0.001
    assert 0.003 < np.std(costs) < 0.009


def test_the_stated_confidence_is_that_of_keeping_the_budget_on_new_rows():
    """Overspending is a binomial event of probability at most 1 - confidence, to 4 sd."""
    rng = np.random.default_rng(1)
    s, proba, y = held_out(rng, 10_000)
    loss, repetitions = brier_loss(proba, y, FLAT / 4), 40
    full, unit = worth(brier, proba, y)
    for confidence in (0.8, 0.95):
        overspent = 0
        for _ in range(repetitions):
            caution = fitted(CautionBudget(0.02, confidence=confidence), *held_out(rng, 300))
            u = 4 / (4 + 1000 * np.exp(caution.transform(s)))
            overspent += loss(u).mean() > full + 0.02 * unit
        rate = 1 - confidence
        assert overspent <= repetitions * rate + 4 * np.sqrt(repetitions * rate * confidence)
        assert confidence > 0.8 or overspent > 0


def test_confidence_costs_caution_and_asks_for_rows(rng):
    s, proba, y = held_out(rng)
    places = [
        fitted(CautionBudget(0.02, confidence=c), s, proba, y).location_ for c in (0.5, 0.9, 0.99)
    ]
    assert (np.diff(places) < 0).all()
    one_miss = np.array([[0.99, 0.01, 0.0, 0.0]] * 2 + [[0.28, 0.52, 0.1, 0.1]])
    with pytest.raises(ValueError, match=r"3 rows from .* are too few to keep budget=0.02"):
        fitted(CautionBudget(confidence=0.95), s[:3], one_miss, np.zeros(3, dtype=int))


@pytest.mark.parametrize("loss", [brier_loss, log_loss])
def test_losses_in_closed_form_are_those_of_the_mean(loss, rng):
    _, proba, y = held_out(rng, 30)
    base = np.array([0.1, 0.2, 0.3, 0.4])
    u = rng.random(30)
    mean = (1 - u)[:, None] * proba + u[:, None] * base
    measure = brier if loss is brier_loss else nll
    naive = [measure(mean[[i]], y[[i]]) for i in range(30)]
    np.testing.assert_allclose(loss(proba, y, base)(u), naive, rtol=1e-12)


def test_quantile_evidence_puts_its_half_point_at_the_quantile(rng):
    s = rng.normal(size=1000)
    for q in (0.01, 0.3):
        evidence = QuantileEvidence(q).fit(s, n=500, prior=[1.0, 2.0])
        assert np.mean(s <= evidence.location_) == q
        np.testing.assert_allclose(500 * np.exp(evidence.transform([evidence.location_])), 3.0)
    alone = QuantileEvidence().fit(s)
    np.testing.assert_allclose(np.exp(alone.transform([alone.location_])), 0.5)
    assert clone(QuantileEvidence(0.2)).quantile == 0.2
