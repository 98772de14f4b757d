"""Temperature scaling: the minimiser of the held-out loss, and what it must refuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError

from dipedl import DIPClassifier
from dipedl.calibration.temperature import Temperature
from dipedl.density import GDADensity
from dipedl.evidence import CautionBudget
from dipedl.evidence_model import calibrate_in_share
from weekly import sample_of


def overconfident(rng, factor=3.0, m=3000, k=4):
    """Logits that are `factor` times too large, and labels of the right ones."""
    logits = 1.5 * rng.normal(size=(m, k))
    proba = softmax(logits)
    y = np.minimum((proba.cumsum(axis=1) < rng.random((m, 1))).sum(axis=1), k - 1)
    return factor * logits, y


def softmax(logits):
    return special.softmax(logits, axis=1)


def nll(t, logits, y, n):
    k = logits.shape[1]
    p = special.softmax(logits / t, axis=1)
    u = k / (k + n)
    return -np.mean([np.log((1 - u) * row[c] + u / k) for row, c in zip(p, y, strict=True)])


@pytest.mark.parametrize("factor", [0.4, 3.0])
def test_it_finds_the_factor_that_spoiled_the_logits(factor, rng):
    logits, y = overconfident(rng, factor)
    model = Temperature(confidence=0).fit(softmax(logits), y)
    assert model.temperature_ == model.minimiser_ == pytest.approx(factor, rel=0.06)
    best = optimize.minimize_scalar(
        nll, bounds=(0.05, 20), args=(logits, y, 3000), method="bounded"
    )
    assert model.temperature_ == pytest.approx(best.x, rel=1e-3)
    assert model.nll_ == pytest.approx(best.fun, rel=1e-9)
    assert model.bare_nll_ == pytest.approx(nll(1.0, logits, y, 3000))


def test_calibrated_probabilities_are_given_back_bit_for_bit(rng):
    kept = 0
    for seed in range(20):
        logits, y = overconfident(np.random.default_rng(seed), 1.0, m=400)
        proba = softmax(logits)
        model = Temperature().fit(proba, y)
        if model.temperature_ == 1:
            kept += 1
            np.testing.assert_array_equal(model.transform(proba), proba)
            assert model.nll_ == model.bare_nll_
    # The test keeps T = 1 for 95 % of calibrated models: P(fewer than 16 of 20) = 0.003.
    assert kept >= 16


def test_below_one_it_is_the_end_of_the_confidence_interval(rng):
    logits, y = overconfident(rng, 0.4, m=200)
    for confidence in (0.5, 0.95, 0.999):
        model = Temperature(confidence=confidence).fit(softmax(logits), y)
        lost = 200 * (model.nll_ - nll(model.minimiser_, logits, y, 200))
        assert lost == pytest.approx(stats.chi2.ppf(confidence, 1) / 2, abs=1e-5)
        assert model.minimiser_ < model.temperature_ < 1
    logits, y = overconfident(rng, 3.0, m=200)
    above = Temperature().fit(softmax(logits), y)
    assert above.temperature_ == above.minimiser_ > 1


def test_a_bound_is_never_the_temperature_of_few_perfect_rows():
    proba = np.tile([0.9, 0.1], (30, 1))
    model = Temperature().fit(proba, np.zeros(30, int))
    assert model.minimiser_ == pytest.approx(0.05, abs=1e-6)
    assert 0.1 < model.temperature_ < 1
    assert Temperature().fit(proba[:10], np.zeros(10, int)).temperature_ == 1


@pytest.mark.parametrize("m", sample_of([20, 80, 400], 0, 2))
@pytest.mark.parametrize("factor", [0.4, 1.0, 1.3, 2.5], ids=["timid", "right", "a little", "over"])
def test_new_rows_are_predicted_no_worse_than_by_the_bare_classifier(factor, m):
    new, labels = overconfident(np.random.default_rng(0), factor, m=2000)
    bare = nll(1.0, new, labels, m)
    gains = []
    for seed in range(25):
        logits, y = overconfident(np.random.default_rng(seed + 1), factor, m=m)
        t = Temperature().fit(softmax(logits), y).temperature_
        gains.append(bare - nll(t, new, labels, m) if t != 1 else 0.0)
    error = np.std(gains) / np.sqrt(len(gains))
    # Of a classifier that is nearly right a test at 5 % leaves a loss, of at most 1.5 % here.
    assert np.mean(gains) > -3 * error - (0.015 * bare if 1 <= factor <= 1.3 else 0)
    assert 1 <= factor <= 1.3 or np.mean(gains) > 3 * error


@pytest.mark.parametrize("t", [0.3, 1.0, 2.5])
def test_a_share_of_a_sharpening_lies_between_none_and_all(t, rng):
    proba = special.softmax(rng.normal(size=(40, 3)), axis=1)
    model = Temperature().fit(proba, np.arange(40) % 3)
    model.temperature_ = t
    every = model.transform(proba)
    full = calibrate_in_share(model, proba, np.ones(40), t)
    np.testing.assert_allclose(full, every, rtol=1e-12)
    bare = calibrate_in_share(model, proba, np.zeros(40), t)
    np.testing.assert_allclose(bare, proba if t < 1 else every, rtol=1e-12)
    half = calibrate_in_share(model, proba, np.full(40, 0.5), t).max(axis=1)
    assert (half <= every.max(axis=1) + 1e-15).all()
    assert (half >= bare.max(axis=1) - 1e-15).all()


@given(
    seed=st.integers(0, 1000),
    m=st.integers(1, 60),
    hard=st.booleans(),
    n=st.sampled_from([None, 5, 1e6]),
)
def test_never_worse_on_the_rows_it_saw_and_within_its_bounds(seed, m, hard, n):
    logits, y = overconfident(np.random.default_rng(seed), m=m)
    proba = softmax(logits)
    proba = np.eye(4)[proba.argmax(axis=1)] if hard else proba
    model = Temperature().fit(proba, y, n=n)
    assert 0.05 * (1 - 1e-9) <= model.temperature_ <= 20 * (1 + 1e-9)
    assert model.nll_ <= model.bare_nll_ < np.inf
    out = model.transform(proba)
    np.testing.assert_allclose(out.sum(axis=1), 1)
    np.testing.assert_array_equal(out == 0, proba == 0)
    np.testing.assert_array_equal(out.argmax(axis=1), proba.argmax(axis=1))


def test_zeros_cost_what_the_rule_of_succession_says():
    proba = np.tile([1.0, 0.0], (10, 1))
    y = np.array([0] * 9 + [1])
    model = Temperature().fit(proba, y, n=98)
    assert model.temperature_ == 1
    assert model.nll_ == pytest.approx(-(9 * np.log(0.99) + np.log(0.01)) / 10)


def test_a_weight_repeats_a_row(rng):
    logits, y = overconfident(rng, m=300)
    w = rng.integers(0, 3, 300)
    rows = np.repeat(np.arange(300), w)
    weighted = Temperature().fit(softmax(logits), y, w)
    repeated = Temperature().fit(softmax(logits[rows]), y[rows])
    assert weighted.temperature_ == pytest.approx(repeated.temperature_, rel=1e-6)
    assert weighted.n_ == repeated.n_ == w.sum()


GOOD = np.array([[0.9, 0.1], [0.2, 0.8]])


def test_it_is_a_plain_estimator():
    with pytest.raises(NotFittedError):
        Temperature().transform(GOOD)
    model = clone(Temperature(0.9))
    assert model.confidence == 0.9


def of_good(model=None, proba=GOOD, y=(0, 1), **options):
    """The call of a fit to two rows, with these changes."""
    model = Temperature() if model is None else model
    return lambda: model.fit(np.asarray(proba), np.asarray(y), **options)


#: Call, error, and a pattern with the named argument and what came.
REFUSED = [
    (of_good(proba=[[3.0, 1.0], [0.0, 1.0]]), ValueError, "proba must sum to 1, got .* softmax"),
    (of_good(proba=[[2.0, -1.0], [0.0, 1.0]]), ValueError, "proba must hold .* -1 in row 0.*soft"),
    (of_good(proba=[[np.nan, 1.0], [0.0, 1.0]]), ValueError, "proba must hold finite"),
    (of_good(proba=[[1.0], [1.0]]), ValueError, r"proba must .*\(n, k\).*got \(2, 1\)"),
    (of_good(proba=[0.5, 0.5]), ValueError, r"proba must .*shape \(n, k\).*got \(2,\)"),
    (of_good(proba=np.empty((0, 2)), y=[]), ValueError, r"proba must .*got \(0, 2\)"),
    (of_good(y=[0, 2]), ValueError, r"y must .*indices 0\.\.1, got 0\.\.2"),
    (of_good(y=[-1, 0]), ValueError, r"y must .*indices 0\.\.1, got -1"),
    *(
        (of_good(y=y), ValueError, "y must .*2 integer class")
        for y in (["a", "b"], [0.0, 1.0], [0])
    ),
    (of_good(n=0), ValueError, "n must be finite and > 0"),
    (of_good(sample_weight=[-1, 1]), ValueError, "sample_weight must be >= 0"),
    (of_good(Temperature(confidence=-0.1)), ValueError, "confidence must be"),
    (of_good(Temperature(confidence=1.0)), ValueError, "confidence must be"),
    (of_good(Temperature(confidence="high")), TypeError, "confidence must be a number"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("gamma", "prior"), [(0.02, 0.5), (50.0, 0.5), (0.02, 2.0)])
def test_the_calibrator_of_a_fit_counts_the_evidence_that_gamma_gives(gamma, prior):
    """Its likelihood is that of the mean of Dirichlet(prior + n gamma p), row by row.

    The forest has zeros, which cost what the prior leaves them.
    """
    X, y = make_classification(200, 4, n_informative=3, n_redundant=0, n_classes=3, random_state=0)
    clf = DIPClassifier(
        RandomForestClassifier(5, random_state=0),
        GDADensity(),
        prior=prior,
        gamma=gamma,
        calibrator=Temperature(0.0),
        spread=None,
    )
    model = clf.fit(X, y).evidence_
    held, own = model.held_out_, model.calibrator_
    assert (held.bare_proba == 0).any()

    def naive(t):
        total = 0.0
        for p, label in zip(held.bare_proba, held.labels, strict=True):
            alpha = prior + len(X) * gamma * p ** (1 / t) / sum(p ** (1 / t))
            total -= np.log(alpha[label] / sum(alpha))
        return total / len(held)

    assert own.bare_nll_ == pytest.approx(naive(1.0), rel=1e-9)
    assert own.nll_ == pytest.approx(naive(own.temperature_), rel=1e-9)
    assert own.nll_ <= min(map(naive, np.geomspace(0.05, 20, 60))) + 1e-9


def test_the_temperature_of_a_fit_is_that_of_the_posterior_mean():
    """Scanned: no other temperature gives the mean of the held-out rows a lower NLL.

    With a calibrator that takes the likeliest; of one that asks for proof, T is within one
    standard error above it.
    """
    X, y = make_classification(400, 6, n_informative=4, n_classes=3, random_state=1)
    clf = DIPClassifier(RandomForestClassifier(20, random_state=0), calibrator=Temperature(0.0))
    model = clf.fit(X, y).evidence_
    held, (low, high) = model.held_out_, model.sharpening_
    share = np.clip((held.scores - low) / (high - low), 0, 1)

    def means(t, u):
        steepness = 1 + share * (1 / t - 1) if t < 1 else np.full(len(held), 1 / t)
        P = held.bare_proba ** steepness[:, None]
        return (1 - u) * P / P.sum(axis=1, keepdims=True) + u / 3

    # The doubt that the temperature was fitted with: that of the classifier's own temperature.
    t0, t1 = model.calibrator_.temperature_, model.temperature_
    P = means(t0, 0.0)
    brier = (((P * 400 + 1 / 2) / 401.5 - np.eye(3)[held.labels]) ** 2).sum(axis=1).mean()
    price = model.price()
    caution = CautionBudget((price.allowed - brier) / brier)
    caution.fit(held.scores, proba=P, y=held.labels, n=400, prior=np.full(3, 0.5))
    u = 1.5 / (1.5 + 400 * np.exp(caution.transform(held.scores)))[:, None]

    def nll(t):
        return -np.log(means(t, u)[np.arange(len(held)), held.labels]).mean()

    assert t1 < t0 < 1
    # At full evidence 1.5 of 401.5 is the prior: 3 / (3 + 800).
    own = Temperature(0.0).fit(held.bare_proba, held.labels, n=800)
    assert t0 == pytest.approx(own.temperature_, rel=1e-9)
    assert nll(t1) < min(map(nll, np.geomspace(0.05, 20, 200))) + 1e-6
    np.testing.assert_allclose(held.proba, means(t1, 0.0), rtol=1e-9)
    cautious = clf.set_params(calibrator=Temperature()).fit(X, y).evidence_
    assert t1 < cautious.temperature_ < cautious.calibrator_.temperature_ < 1
