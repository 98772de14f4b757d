"""p-values, prediction sets and thresholds: definitions, and guarantees over repeated splits."""

import numpy as np
import pytest
from scipy import stats

from dipedl.decisions import (
    Rejection,
    conformal_p_values,
    conformal_quantile,
    expected_costs,
    prediction_sets,
    reject_curve,
    risk_upper_bound,
    unknown_probability,
)
from dipedl.evidence import alarm_threshold

REPETITIONS = 200


def test_matches_a_naive_count(rng):
    held, new = rng.integers(0, 20, 60).astype(float), rng.integers(-3, 23, 40).astype(float)
    held[:2], new[:2] = (-np.inf, np.inf), (np.inf, -np.inf)
    naive = [(1 + sum(c <= s for c in held)) / 61 for s in new]
    np.testing.assert_allclose(conformal_p_values(new, held), naive, rtol=1e-14)


def test_a_weight_counts_a_row_that_often(rng):
    held, new = rng.normal(size=30).round(1), rng.normal(size=50).round(1)
    w = rng.integers(0, 4, 30)
    expected = conformal_p_values(new, np.repeat(held, w))
    np.testing.assert_allclose(conformal_p_values(new, held, w), expected, rtol=1e-14)


def test_a_class_whose_rows_weigh_nothing_is_one_without_rows(rng):
    held, y, P = rng.normal(size=30), np.arange(30) % 3, rng.dirichlet(np.ones(3), 30)
    w = np.where(y == 1, 0.0, 2.0)
    some, counted = w > 0, {"weights": w[w > 0]}
    np.testing.assert_array_equal(
        conformal_p_values(held, held, w, labels=y),
        conformal_p_values(held, held[some], labels=y[some], **counted),
    )
    sets = prediction_sets(P, P, y, coverage=0.7, weights=w, by_class=True)
    of_some = prediction_sets(P, P[some], y[some], coverage=0.7, by_class=True, **counted)
    np.testing.assert_array_equal(sets, of_some)
    assert sets[:, 1].all() and not sets.all()


def test_the_probability_of_an_unknown_input_at_the_ends():
    p = np.array([0.0, 1e-300, 0.5, 1.0])
    q = unknown_probability(p, 0.1, 0.4)
    law = stats.beta(np.log(0.4) / np.log(0.05), 1)
    expected = 0.1 * law.pdf(p[1:]) / (0.1 * law.pdf(p[1:]) + 0.9)
    np.testing.assert_allclose(q, [1.0, *expected], rtol=1e-12)
    assert (unknown_probability(p, 0.0) == 0).all()


@pytest.mark.parametrize("rate", [0.05, 0.7])
@pytest.mark.parametrize("caught", [0.3, 0.5, 0.8, 0.99, 1.0])
def test_the_more_a_flag_catches_the_more_what_it_flags_is_unknown(caught, rate):
    share, u = 1e-9, np.arange(0.5, 20_000) / 20_000
    p, step = u**4, 4 * u**3 / len(u)

    def bayes_factor(q):
        return q * (1 - share) / (share * (1 - q))

    factor = bayes_factor(unknown_probability(p, share, caught, rate))
    assert step @ factor == pytest.approx(1, rel=0.001)  # a density
    assert step @ (factor * (p <= rate)) == pytest.approx(max(caught, rate), rel=0.001)
    assert (np.diff(factor) <= 1e-6 * factor[:-1]).all()
    if caught > 0.5:
        less = bayes_factor(unknown_probability(p, share, 0.5, rate))
        assert (factor[p <= rate] >= less[p <= rate]).all()
        assert (factor[p > rate] <= less[p > rate]).all()


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_against_a_loop(rng, method):
    P, held, y = rng.dirichlet(np.ones(5), 40), rng.dirichlet(np.ones(5), 99), np.arange(99) % 5

    def score(p, c):
        return 1 - p[c] if method == "lac" else sum(q for q in p if q > p[c])

    limit = sorted(score(p, c) for p, c in zip(held, y, strict=True))[79]  # 0.8 of 99 + 1
    expected = [[score(p, c) < limit for c in range(5)] for p in P]
    np.testing.assert_array_equal(
        prediction_sets(P, held, y, coverage=0.8, method=method), expected
    )


@pytest.mark.parametrize("random_state", [None, 7])
def test_uniform_on_id_inputs_over_repeated_splits(rng, random_state):
    """One new input a split: 200 independent p-values."""
    seeds = None if random_state is None else np.random.default_rng(random_state)
    p = [
        conformal_p_values(scores[:1], scores[1:], random_state=seeds)[0]
        for scores in rng.gamma(2.0, size=(REPETITIONS, 200))
    ]
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_random_ties_make_discrete_scores_uniform_and_the_default_keeps_the_level(rng):
    splits = rng.poisson(1.0, size=(REPETITIONS, 100)).astype(float)
    seeds = np.random.default_rng(0)
    p = [conformal_p_values(s[:1], s[1:])[0] for s in splits]
    randomised = [conformal_p_values(s[:1], s[1:], random_state=seeds)[0] for s in splits]
    assert stats.kstest(randomised, "uniform").pvalue > 0.01
    # Super-uniform: no one-sided evidence for p-values that are too small.
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.01
    assert stats.kstest(p, "uniform").pvalue < 1e-6


@pytest.mark.parametrize("weighted", [False, True])
def test_small_p_values_are_the_alarms(rng, weighted):
    for n in (3, 19, 20, 99, 250):
        held, new = rng.normal(size=n).round(1), np.append(rng.normal(size=200).round(1), -np.inf)
        w = rng.integers(1, 4, n).astype(float) if weighted else None
        for alpha in (0.01, 0.05, 0.1, 0.29, 0.5):
            flagged = new < alarm_threshold(held, alpha, w)
            np.testing.assert_array_equal(conformal_p_values(new, held, w) <= alpha, flagged)


@pytest.mark.parametrize("last_digits", [1 - 1e-14, 1 + 1e-14])
@pytest.mark.parametrize("random_state", [None, 0])
def test_what_differs_by_rounding_ties(rng, last_digits, random_state):
    # A row scored beside other rows may differ in its last digits from the same row held out.
    held = np.append(300 * rng.normal(size=150), [-np.inf, np.inf, 0.0])
    same = conformal_p_values(held, held, random_state=random_state)
    again = conformal_p_values(held * last_digits, held, random_state=random_state)
    np.testing.assert_array_equal(again, same)


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
    n, new, coverage = 80, 150, 0.85
    j = int(np.ceil(coverage * (n + 1)))
    shares = []
    for _ in range(REPETITIONS):
        P, y = draw(rng, n + new)
        sets = prediction_sets(P[n:], P[:n], y[:n], coverage=coverage, method=method)
        shares.append(sets[np.arange(new), y[n:]].mean())
    law = stats.beta(j, n + 1 - j)
    assert abs(np.mean(shares) - law.mean()) < 4 * law.std() / np.sqrt(REPETITIONS)
    assert np.std(shares) < 1.3 * np.hypot(law.std(), np.sqrt(0.15 * 0.85 / new))


def rare(rng, n):
    """Probabilities of three classes, the last with 6 % of the rows, and labels drawn from them."""
    P = rng.dirichlet([2.0, 1.5, 0.2], n)
    return P, (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_by_class_are_those_of_the_definition(rng, method):
    P, (held_out, labels) = rare(rng, 40)[0], rare(rng, 150)
    sets = prediction_sets(P, held_out, labels, coverage=0.8, method=method, by_class=True)
    own = np.array([naive_scores(p, method) for p in held_out])
    for c in range(3):
        threshold = conformal_quantile(own[labels == c, c], 0.8) + 1e-11
        expected = np.array([naive_scores(p, method)[c] for p in P]) <= threshold
        np.testing.assert_array_equal(sets[:, c], expected)
    w = rng.integers(0, 3, 150)
    repeated = (np.repeat(held_out, w, axis=0), np.repeat(labels, w))
    np.testing.assert_array_equal(
        prediction_sets(P, held_out, labels, weights=w, by_class=True),
        prediction_sets(P, *repeated, by_class=True),
    )


@pytest.mark.parametrize(("method", "exact"), [("lac", True), ("aps", False)])
def test_coverage_by_class_is_exact_within_each_class(rng, method, exact):
    """A new input of each class a split: a hit has probability ceil(c (N_c + 1)) / (N_c + 1)."""
    hits, expected, marginal = np.zeros(3), np.zeros((3, 2)), 0
    for _ in range(2 * REPETITIONS):
        P, y = rare(rng, 300)
        new = np.array([np.flatnonzero(y == c)[0] for c in range(3)])
        held_out, labels = np.delete(P, new, axis=0), np.delete(y, new)
        sets = prediction_sets(
            P[new], held_out, labels, coverage=0.85, method=method, by_class=True
        )
        hits += sets.diagonal()
        n = np.bincount(labels, minlength=3)
        share = np.minimum(np.ceil(0.85 * (n + 1) - 1e-9) / (n + 1), 1.0)
        expected += np.column_stack([share, share * (1 - share)])
        marginal += prediction_sets(P[new], held_out, labels, coverage=0.85, method="lac")[2, 2]
    deviation = (hits - expected[:, 0]) / np.sqrt(expected[:, 1])
    assert (deviation > -3.5).all() and (not exact or (deviation < 3.5).all())
    # Sets by the threshold of all rows hold the rare class far less often.
    assert marginal < 0.5 * hits[2]


def test_a_class_of_too_few_held_out_rows_is_in_every_set():
    held_out = np.tile([0.8, 0.15, 0.05], (40, 1))
    labels = np.repeat([0, 1], [37, 3])
    new = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    sets = prediction_sets(new, held_out, labels, coverage=0.9, by_class=True)
    assert sets.tolist() == [[True, True, True], [False, True, True]]


def test_p_values_by_class_keep_the_level_within_each_class(rng):
    """Scores of a class lie lower than those of the others, and are far apart."""
    rejected, alarms, n = np.zeros(2), np.zeros(2), 2 * REPETITIONS
    for _ in range(n):
        y = np.repeat([0, 1], [121, 41])
        scores = rng.normal(-3.0 * y, 1 + y)
        new = np.array([0, 121])
        held, labels = np.delete(scores, new), np.delete(y, new)
        p = conformal_p_values(scores[new], held, labels=labels)
        naive = [
            max((1 + (held[labels == c] <= s).sum()) / (1 + (labels == c).sum()) for c in (0, 1))
            for s in scores[new]
        ]
        np.testing.assert_allclose(p, naive, rtol=1e-12)
        rejected += p <= 0.1
        alarms += conformal_p_values(scores[new], held) <= 0.1
    assert (rejected <= stats.binom.ppf(0.9999, n, 0.1)).all()
    assert alarms[1] > 2.5 * rejected[1]


def test_quantile_at_the_edges():
    assert conformal_quantile(np.arange(9.0), 0.9) == 8.0
    assert conformal_quantile(np.arange(8.0), 0.9) == np.inf
    assert conformal_quantile(np.arange(19.0), 0.9) == 17.0
    assert conformal_quantile([4.0], 0.5) == 4.0
    assert conformal_quantile([0.0, np.inf], 0.5) == np.inf


def test_a_weight_counts_a_held_out_score_that_often(rng):
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


#: P(wrong | u) for u uniform on [0, 1], and its mean below t: the selective risk.
POPULATIONS = {
    "rising": (lambda u: 0.3 * u**2, lambda t: 0.1 * t**2),
    "no information": (lambda u: 0.06 + 0 * u, lambda t: 0.06 + 0 * t),
    "the most certain are wrong most often": (
        lambda u: 0.3 * np.exp(-5 * u) + 0.01,
        lambda t: 0.06 * (1 - np.exp(-5 * t)) / t + 0.01,
    ),
}


def risk_of(threshold, population):
    """Selective risk of a threshold in the population; answering nothing risks nothing."""
    if threshold < 0:
        return 0.0
    return float(POPULATIONS[population][1](min(threshold, 1.0)))


def test_upper_bound_is_the_rate_at_which_so_few_errors_are_rare():
    for errors, n in ((0, 10), (3, 50), (40, 41)):
        for confidence in (0.5, 0.9, 0.995):
            bound = float(risk_upper_bound(errors, n, confidence))
            assert stats.binom.cdf(errors, n, bound) == pytest.approx(1 - confidence, rel=1e-9)
    assert risk_upper_bound([0, 5], [0, 5], 0.9).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("population", POPULATIONS)
def test_risk_is_controlled_in_the_promised_share_of_repetitions(rng, population):
    broken = 0
    for _ in range(REPETITIONS):
        u = rng.random(600)
        wrong = rng.random(600) < POPULATIONS[population][0](u)
        threshold = reject_curve(u, wrong, confidence=0.9).threshold(0.05)
        broken += risk_of(threshold, population) > 0.05
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.1)


@pytest.mark.parametrize("population", POPULATIONS)
def test_all_bounds_hold_together_so_the_risk_may_be_chosen_after_looking(rng, population):
    broken = 0
    for _ in range(REPETITIONS):
        u = rng.random(300)
        wrong = rng.random(300) < POPULATIONS[population][0](u)
        curve = reject_curve(u, wrong, confidence=0.8)
        true = [risk_of(t, population) for t in curve.thresholds]
        broken += bool((true > curve.upper).any())
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.2)


def test_discrete_uncertainties_keep_the_promise(rng):
    """Ties everywhere: thresholds fall between the values, and bounds hold for what is answered."""
    rates, broken = np.array([0.01, 0.04, 0.2]), 0
    for _ in range(REPETITIONS):
        level = rng.integers(0, 3, 400)
        wrong = rng.random(400) < rates[level]
        curve = reject_curve(level.astype(float), wrong, confidence=0.8)
        true = [rates[np.arange(3) <= t].mean() for t in curve.thresholds]
        broken += bool((true > curve.upper).any())
    assert broken <= stats.binom.ppf(0.999, REPETITIONS, 0.2)


def test_it_is_of_use(rng):
    """5 % promised of a population whose selective risk is 5 % at coverage 0.71."""
    u = rng.random(3000)
    wrong = rng.random(3000) < POPULATIONS["rising"][0](u)
    threshold = reject_curve(u, wrong).threshold(0.05)
    assert 0.5 < threshold < np.sqrt(0.5)


def test_steps_match_a_naive_count(rng):
    u, wrong = rng.normal(size=37).round(1), rng.random(37) < 0.3
    curve = reject_curve(u, wrong, confidence=0.9)
    assert (np.diff(curve.thresholds) > 0).all() and curve.thresholds[-1] == np.inf
    for threshold, coverage, risk, upper in zip(
        curve.thresholds, curve.coverage, curve.risk, curve.upper, strict=True
    ):
        answered = u <= threshold
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(wrong[answered].mean())
        expected = risk_upper_bound(wrong[answered].sum(), answered.sum(), 1 - 0.1 / 20)
        assert upper == pytest.approx(expected)


def test_a_weight_counts_an_answer_that_often(rng):
    u, wrong, w = rng.random(50), rng.random(50) < 0.2, rng.integers(0, 4, 50)
    weighted = reject_curve(u, wrong, weights=w)
    repeated = reject_curve(np.repeat(u, w), np.repeat(wrong, w))
    for name in ("thresholds", "coverage", "risk", "upper"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


def test_few_rows_have_few_steps():
    curve = reject_curve([0.1, 0.2, 0.3], [False, False, True], confidence=0.9)
    assert curve.coverage.tolist() == [1 / 3, 2 / 3, 1.0]
    np.testing.assert_allclose(curve.upper[0], 1 - 0.1 / 3)
    assert curve.threshold(0.05) == -np.inf


def test_infinite_uncertainties_are_rejected_first():
    u = np.r_[np.zeros(300), np.full(20, np.inf)]
    curve = reject_curve(u, np.isinf(u))
    threshold = curve.threshold(0.03)
    assert 0 <= threshold < np.inf


def test_filled_puts_a_marker_of_any_type():
    accepted = np.array([True, False])
    numbers = Rejection(np.array([3, 4]), accepted, 0.1, "total", risk=0.05)
    assert numbers.fill(-1).tolist() == [3, -1] and numbers.fill(-1).dtype.kind == "i"
    assert numbers.fill(None).tolist() == [3, None]
    for dtype in (np.int8, np.uint8, np.int16):  # a marker that these cannot hold
        small = Rejection(np.array([3, 4], dtype), accepted, 0.1, "total", risk=0.05)
        assert small.fill(-99_999).tolist() == [3, -99_999]
        assert small.fill(70_000).tolist() == [3, 70_000]
    words = Rejection(np.array(["cat", "dog"]), accepted, 0.1, "total", coverage=0.9)
    assert words.fill("unknown").tolist() == ["cat", "unknown"]
    assert words.fill(-1).tolist() == ["cat", -1]
    assert len(words) == 2 and words.rejected.tolist() == [False, True]


@pytest.mark.parametrize("last_digits", [1 - 1e-14, 1 + 1e-14])
def test_rounding_changes_no_row_from_answered_to_rejected(rng, last_digits):
    u = rng.random(200)
    thresholds = reject_curve(u, rng.random(200) < u).thresholds[:, None]
    np.testing.assert_array_equal(u * last_digits <= thresholds, u <= thresholds)


NAN = float("nan")
SETS = {
    "proba": [[0.5, 0.5]],
    "held_out_proba": [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]],
    "held_out_labels": [0, 1, 1],
}

#: Function, its arguments, and a pattern with the named argument and what came.
CASES = [
    (conformal_p_values, ([0.0], []), "held_out is empty"),
    (conformal_p_values, ([NAN], [0.0]), "scores must not hold NaN, got it at row 0"),
    (conformal_p_values, ([0.0], [1.0, NAN]), "held_out must not hold NaN, got it at row 1"),
    (conformal_p_values, ([[0.0]], [0.0]), r"scores must hold one number a row.*\(1, 1\)"),
    (conformal_p_values, ([0.0], [0.0, 1.0], [1.0, -1.0]), "^weights must be >= 0"),
    (
        lambda: conformal_p_values([0.0], [0.0, 1.0], labels=[1]),
        (),
        r"labels must hold a class for each held-out score, shape \(2,\), got shape \(1,\)",
    ),
    (lambda: conformal_p_values([0.0], [0.0, 1.0], labels=[1, NAN]), (), "^labels must .*gaps"),
    (unknown_probability, ([-0.1], 0.5), r"p_values must lie in \[0, 1\], got -0.1"),
    (unknown_probability, ([NAN], 0.5), "p_values must not hold NaN"),
    (expected_costs, ([[0.5, 0.5]], np.eye(3)), r"costs must have shape \(2, 2\)"),
    (expected_costs, ([0.5, 0.5], np.eye(2)), r"proba must have shape \(n, k\)"),
    (conformal_quantile, ([0.0, 1.0], 0.5, [0.0, 0.0]), "^weights must have a positive sum"),
    (prediction_sets, {"weights": [1.0]}, "^weights must have"),
    (prediction_sets, {"coverage": 1.0}, "coverage must be strictly .*got 1.0"),
    (prediction_sets, {"method": "raps"}, r"method must be one of \['aps', 'lac'\], got 'raps'"),
    (
        prediction_sets,
        {"held_out_labels": [0, 1, 2]},
        r"^held_out_labels must .*got 0\.\.2",
    ),
    (prediction_sets, {"held_out_labels": [0, 1]}, "^held_out_labels must hold 3 integer"),
    (prediction_sets, {"held_out_labels": [0.0, 1.0, 1.0]}, "^held_out_labels must hold 3"),
    (prediction_sets, {"proba": [[0.2, 0.3, 0.5]]}, "the same classes, got 3 and 2 columns"),
    (prediction_sets, {"proba": [[3.0, -1.0]]}, "proba must hold finite probabilities >= 0"),
    (prediction_sets, {"held_out_proba": [[2.0, 1.0]] * 3}, "rows of held_out_proba must sum to 1"),
    (prediction_sets, {"proba": [0.5, 0.5]}, r"proba must have shape \(n, k\), got \(2,\)"),
    (reject_curve, ([], np.zeros(0, dtype=bool)), "uncertainty is empty"),
    (reject_curve, ([0.1, NAN], [True, False]), "uncertainty must not hold NaN, got it at row 1"),
    (reject_curve, ([0.1, 0.2], [1, 0]), r"wrong must be boolean of shape \(2,\), got int64"),
    (reject_curve, ([0.1, 0.2], [True]), r"wrong must be boolean of shape \(2,\), got bool of"),
    (
        lambda: reject_curve([0.1], [True], confidence=90),
        (),
        "confidence must be strictly .*got 90",
    ),
    (reject_curve([0.1], [False]).threshold, (0,), "risk must be strictly .*got 0"),
    (risk_upper_bound, (3, 2, 0.9), r"errors must lie in 0\.\.n, got 3 of 2"),
]


@pytest.mark.parametrize(("ask", "given", "message"), CASES)
def test_it_is_refused_by_name(ask, given, message):
    with pytest.raises(ValueError, match=message):
        ask(**{**SETS, **given}) if isinstance(given, dict) else ask(*given)
