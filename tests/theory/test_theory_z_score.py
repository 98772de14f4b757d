"""Where the evaluated method, with its z-scored log-density, leaves the theory of section 3."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier
from dipedl.density import GaussianDensity
from dipedl.evidence import Identity, ZScore

pytest.importorskip("torch")

from theory_tools import assert_mean

from weekly import sample_of

REPEATS = 20


def sample(n, d, rng):
    """X ~ N(0, I_d) and P(Y = 1 | x) = sigmoid(2 x_0)."""
    X = rng.normal(size=(n, d))
    return X, (rng.random(n) < expit(2 * X[:, 0])).astype(int)


def model(X, y, normalizer):
    return DIPClassifier(
        make_pipeline(StandardScaler(), LogisticRegression(C=1e8)),
        GaussianDensity(shrinkage=None),
        normalizer=normalizer,
        features="passthrough",
        cv="in-sample",
    ).fit(X, y)


def tempered(x, d):
    """Limit of exp(z) for n -> infinity: log p has mean -d/2 log(2 pi e), variance d / 2."""
    return np.exp((d - (x**2).sum(axis=-1)) / (2 * np.sqrt(d / 2)))


def log_density_factor(n, d, x, rng, normalizer):
    """log(evidence / n) at x, shape (repeats, m)."""
    fitted = (model(*sample(n, d, rng), normalizer) for _ in range(REPEATS))
    return np.stack([each.predict_dirichlet(x).log_evidence - np.log(n) for each in fitted])


@pytest.mark.parametrize("d", sample_of([1, 8], 1))
def test_z_scored_evidence_tends_to_a_tempered_density_and_not_to_p(d, rng):
    """DE -> const p^(1/s) with s the sd of log p: the condition DE -> P_X of Theorem 3.2 fails."""
    x = np.stack([np.zeros(d), np.full(d, 1.2)])
    raw = log_density_factor(4000, d, x, rng, Identity())
    scored = log_density_factor(4000, d, x, rng, ZScore())
    log_p = stats.norm.logpdf(x).sum(axis=1)
    for found, limit in ((raw, log_p), (scored, np.log(tempered(x, d)))):
        error = 6 * found.std(axis=0) / np.sqrt(REPEATS)
        # the Gaussian fit itself has a bias of order d^2 / n
        assert (np.abs(found.mean(axis=0) - limit) < error + d**2 / 4000).all()
    assert (np.abs(scored - log_p) > 1.0).all()


def test_z_scored_slope_is_one_over_the_spread_of_the_log_density(rng):
    """log DE is affine in log p with slope 1/s: flatter than p if s > 1 nat, steeper if s < 1."""
    for d, flatter in ((1, False), (30, True)):
        X, y = sample(3000, d, rng)
        fitted = model(X, y, ZScore())
        log_p = fitted.score_samples(X)
        slope = np.polyfit(log_p, fitted.predict_dirichlet(X).log_evidence, 1)[0]
        assert slope == pytest.approx(1 / log_p.std(), rel=1e-9)
        assert slope == pytest.approx(1 / np.sqrt(d / 2), rel=0.15)
        assert (slope < 1) == flatter


@pytest.mark.parametrize("d", [1, 2])
def test_z_scored_density_does_not_integrate_to_one(d):
    """The integral of exp(z) over space is exp(sqrt(d/2)) (2 pi sqrt(d/2))^(d/2): 4.3, 17 ..."""
    radius = np.sqrt(stats.chi2.ppf((np.arange(200_000) + 0.5) / 200_000, d))
    scorer = ZScore().fit(-(radius**2) / 2)
    edge = np.linspace(0, 12, 20_001)
    shell = {1: 2.0, 2: 2 * np.pi * edge}[d]
    integral = np.trapezoid(np.exp(scorer.transform(-(edge**2) / 2)) * shell, edge)
    s = np.sqrt(d / 2)
    np.testing.assert_allclose(integral, np.exp(s) * (2 * np.pi * s) ** (d / 2), rtol=5e-3)
    assert integral > 4


@pytest.mark.parametrize("d", sample_of([1, 8], 0))
def test_z_scored_evidence_still_concentrates_at_another_rate(d, rng):
    """The theorem's conclusion survives: any DE > 0 does. Var n -> P (1 - P) / q(x), not / p(x)."""
    x = np.stack([np.zeros(d), np.full(d, 0.8)])
    truth = expit(2 * x[:, 0])
    level = []
    for n in (2000, 16_000):
        found = [model(*sample(n, d, rng), ZScore()).predict_dirichlet(x) for _ in range(8)]
        variance = np.mean([each.variance[:, 1] for each in found], axis=0)
        np.testing.assert_allclose(
            np.mean([each.mean[:, 1] for each in found], axis=0), truth, atol=0.06
        )
        level.append(n * variance)
    np.testing.assert_allclose(level[0], level[1], rtol=0.15)  # so the rate is 1 / n
    np.testing.assert_allclose(level[1], truth * (1 - truth) / tempered(x, d), rtol=0.15)
    by_theorem = truth * (1 - truth) / np.exp(stats.norm.logpdf(x).sum(axis=1))
    assert (np.abs(np.log(level[1] / by_theorem)) > 1).all()


@pytest.mark.parametrize("scale", [1000.0, 0.01])
def test_raw_evidence_depends_on_the_units_of_x(scale, rng):
    """n p(x) is a count per unit volume: other units divide it by scale^d; z ignores them."""
    d, (X, y) = 3, sample(500, 3, rng)
    raw, rescaled = (model(b * X, y, Identity()).predict_dirichlet(b * X) for b in (1.0, scale))
    shift = rescaled.log_evidence - raw.log_evidence
    np.testing.assert_allclose(shift, -d * np.log(scale), rtol=1e-9)
    z, rescaled = (model(b * X, y, ZScore()).predict_dirichlet(b * X) for b in (1.0, scale))
    np.testing.assert_allclose(z.log_evidence, rescaled.log_evidence, atol=1e-9)


def test_concentration_is_not_calibration(rng):
    """The 95 % interval of P(Y | x) covers the truth always or hardly ever, as the units will.

    Theorem 3.2 says that intervals shrink, not that they shrink as fast as the error does.
    """
    x, truth = np.array([[0.5]]), expit(1.0)
    covered = {1e-3: 0, 1e3: 0}
    for _ in range(REPEATS):
        X, y = sample(400, 1, rng)
        for b in covered:
            d = model(b * X, y, Identity()).predict_dirichlet(b * x)
            low, high = d.credible_interval(0.95)
            covered[b] += int(low[0, 1] < truth < high[0, 1])
    assert covered[1e3] == REPEATS
    # 5 of 20 or fewer: under a coverage of 95 % as likely as 1e-15
    assert covered[1e-3] <= 5


def test_raw_evidence_vanishes_in_many_dimensions(rng):
    """At a typical x, n p(x) = n (2 pi e)^(-d/2): 4,000 points in 50 dimensions are none at all.

    Definition 3.1 to the letter then answers with its prior at its own training points; the
    z-score gives about n everywhere. The theorem's n would have to exceed 1e30.
    """
    X, y = sample(4000, 50, rng)
    raw = model(X, y, Identity()).predict_dirichlet(X)
    expected = np.log(4000) - 25 * np.log(2 * np.pi * np.e)
    # mean of log p over N(0, I): sd sqrt(d / 2), in-sample bias of the fit below d^2 / n
    assert abs(raw.log_evidence.mean() - expected) < 6 * 5 / np.sqrt(4000) + 50**2 / 4000
    assert (raw.vacuity > 1 - 1e-15).all()
    scored = model(X, y, ZScore()).predict_dirichlet(X)
    assert_mean(scored.log_evidence, np.log(4000))
    assert np.median(scored.vacuity) < 3 * 2 / 4000


@pytest.mark.parametrize("normalizer", [Identity(), ZScore()])
def test_neither_changes_the_ranking(normalizer, rng):
    """Whatever is lost, the order of inputs by vacuity is that of the log-density."""
    X, y = sample(300, 2, rng)
    fitted = model(X, y, normalizer)
    order = np.argsort(fitted.score_samples(X))
    assert (np.diff(fitted.predict_dirichlet(X).log_evidence[order]) >= 0).all()
