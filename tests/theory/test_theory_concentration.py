"""Section 3: DIP-EDL concentrates, where P_X and P(Y | X) are known and densities are raw."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, Dirichlet
from dipedl.density import GDADensity, KernelDensity
from dipedl.evidence import Identity, log_evidence

#: Two classes, N(-1, 1) and N(1, 1), equally frequent: everything about them is known.
POINTS = np.array([-2.0, -0.7, 0.0, 0.4, 1.5])
REPEATS = 20


def density_of(x):
    return (stats.norm.pdf(x, -1) + stats.norm.pdf(x, 1)) / 2


def proba_of(x):
    """P(Y = k | x), shape (..., 2)."""
    return np.stack([expit(-2 * x), expit(2 * x)], axis=-1)


def sample(n, rng):
    y = rng.integers(0, 2, n)
    return (rng.normal(size=n) + 2 * y - 1)[:, None], y


def dip(n, rng, density=None):
    """DIP-EDL to the letter of Definition 3.1, both parts estimated from n observations."""
    if density is None:
        density = GDADensity("tied", shrinkage=None, class_weights="empirical")
    return DIPClassifier(
        LogisticRegression(C=1e8, solver="newton-cholesky"),
        density,
        prior=1.0,
        normalizer=Identity(),
        features="passthrough",
        cv="in-sample",
    ).fit(*sample(n, rng))


def oracle(n):
    """DIP-EDL whose density and classifier are the truth, at POINTS."""
    evidence = log_evidence(np.log(density_of(POINTS)), n)
    return Dirichlet.from_evidence(evidence, proba_of(POINTS))


def mean_bias(n):
    """Bound on how much the prior's share u of the mean moves P (1 - P), relative."""
    u = 2 / (2 + n * density_of(POINTS))
    return 0.5 * u / proba_of(POINTS).prod(axis=-1)


def estimates(n, rng):
    """Estimated density (r, m), mean and variance of p_1 (r, m), for r repeats at m points."""
    rows = [dip(n, rng).predict_dirichlet(POINTS[:, None]) for _ in range(REPEATS)]
    density = np.stack([np.exp(d.log_evidence) / n for d in rows])
    return density, np.stack([d.mean[:, 1] for d in rows]), np.stack([d.variance for d in rows])


def test_definition_3_1_pseudo_counts_are_n_times_density_times_probability(rng):
    """alpha = prior + n DE(x) NN(x), with the library's own density and classifier inside."""
    model = dip(500, rng)
    density = np.exp(model.density_.score_samples(POINTS[:, None]))
    proba = model.estimator_.predict_proba(POINTS[:, None])
    found = model.predict_dirichlet(POINTS[:, None]).concentration
    np.testing.assert_allclose(found, 1 + 500 * density[:, None] * proba, rtol=1e-12)


def test_section_3_pseudo_count_is_the_expected_count_in_a_cell_of_unit_volume(rng):
    """n p(x) h is the number of observations in a cell of width h: counted, with h = 0.1."""
    n, h = 200_000, 0.1
    X, y = sample(n, rng)
    inside = np.abs(X[:, 0, None] - POINTS) < h / 2
    expected = n * density_of(POINTS) * h
    # Poisson error of the counts, and curvature p'' h^2 / 24 of the density within the cell
    assert (np.abs(inside.sum(axis=0) - expected) < 6 * np.sqrt(expected) + 2e-3 * expected).all()
    ones = (inside & (y == 1)[:, None]).sum(axis=0)
    expected = expected * proba_of(POINTS)[:, 1]
    assert (np.abs(ones - expected) < 6 * np.sqrt(expected) + 2e-3 * expected).all()


def test_theorem_3_2_with_the_true_density_and_probabilities():
    """Mean -> P(Y | x), variance ~ P (1 - P) / (alpha_0 + n p(x) + 1), mass outside a ball -> 0.

    The mass is that of the marginal Beta, by scipy; Chebyshev's bound of the proof holds.
    """
    p, truth, outside = density_of(POINTS), proba_of(POINTS)[:, 1], []
    for n in (10**2, 10**4, 10**6):
        d = oracle(n)
        shrinkage = 2 / (2 + n * p)
        np.testing.assert_allclose(d.mean[:, 1] - truth, shrinkage * (0.5 - truth), atol=1e-12)
        limit = truth * (1 - truth) / (2 + n * p + 1)
        off = np.abs(d.variance[:, 1] / limit - 1)
        assert (off <= mean_bias(n) + 1e-9).all()
        beta = stats.beta(d.concentration[:, 1], d.concentration[:, 0])
        np.testing.assert_allclose(d.variance[:, 1], beta.var(), rtol=1e-9)
        centre, eps = d.mean[:, 1], 0.03
        outside.append(beta.cdf(centre - eps) + beta.sf(centre + eps))
        assert (outside[-1] <= d.variance[:, 1] / eps**2).all()
    assert (outside[0] > outside[1]).all() and (outside[2] < 1e-20).all()


def test_theorem_3_2_with_estimated_parts(rng):
    """Consistent parts: errors of DE and of the mean fall as 1 / sqrt(n).

    16 times the data, 16 times less squared error, within the F distribution of such a ratio.
    """
    small, large = estimates(250, rng), estimates(4000, rng)
    truth = density_of(POINTS), proba_of(POINTS)[:, 1]
    for few, many, true in zip(small[:2], large[:2], truth, strict=True):
        ratio = ((few - true) ** 2).mean(axis=0) / ((many - true) ** 2).mean(axis=0)
        low, high = stats.f.ppf([1e-6, 1 - 1e-6], REPEATS, REPEATS)
        assert ((ratio / 16 > low) & (ratio / 16 < high)).all()


def test_theorem_3_2_variance_vanishes_at_the_rate_of_the_proof(rng):
    """log Var against log(alpha_0 + n p + 1) has slope -1 and level P (1 - P)."""
    sizes = np.array([1000, 16_000])
    variance = np.stack([estimates(n, rng)[2][..., 1] for n in sizes])  # (sizes, repeats, points)
    strength = 3 + sizes[:, None] * density_of(POINTS)
    level = np.log(variance) + np.log(strength)[:, None]
    error = 6 * level.std(axis=1) / np.sqrt(REPEATS)
    bias = np.stack([mean_bias(n) for n in sizes])
    truth = np.log(proba_of(POINTS).prod(axis=-1))
    assert (np.abs(level.mean(axis=1) - truth) < error + bias).all()
    assert (bias[-1] < 0.05).all() and (error[-1] < 0.1).all()


def test_theorem_3_2_with_a_density_without_parameters(rng):
    """A kernel density is consistent too, slower: squared error falls as n^(-4/5)."""

    def squared_error(n):
        d = [dip(n, rng, KernelDensity()).predict_dirichlet(POINTS[:, None]) for _ in range(8)]
        density = np.stack([np.exp(each.log_evidence) / n for each in d])
        return ((density - density_of(POINTS)) ** 2).mean()

    gain = squared_error(150) / squared_error(1200)
    low, high = stats.f.ppf([1e-6, 1 - 1e-6], 8, 8)  # as if all points were one: conservative
    assert low < gain / 8**0.8 < high and gain > 2


def test_theorem_3_2_vacuity_vanishes_where_that_of_edl_stays():
    """alpha_0 / (alpha_0 + n p(x)) -> 0; Proposition 2.16 has the same for every n."""
    vacuity = np.stack([oracle(n).vacuity for n in (10**2, 10**4, 10**6)])
    expected = 2 / (2 + np.array([[10**2], [10**4], [10**6]]) * density_of(POINTS))
    np.testing.assert_allclose(vacuity, expected, rtol=1e-12)
    assert (vacuity[2] < 1e-3).all()


def test_theorem_3_2_is_pointwise_and_not_uniform():
    """Whatever n, where p(x) = alpha_0 / n half of the confidence is still prior."""
    for n in (10**3, 10**6, 10**9):
        x = 1 + np.sqrt(-2 * np.log(2 / n * 2 * np.sqrt(2 * np.pi)))  # the right-hand component's
        vacuity = Dirichlet.from_evidence(
            log_evidence(np.log([density_of(x)]), n), proba_of(np.array([x]))
        ).vacuity
        np.testing.assert_allclose(vacuity, 0.5, atol=0.01)


def test_theorem_3_2_needs_a_positive_density():
    """Where P_X(x) = 0 the posterior is the prior for every n: nothing concentrates."""
    log_p = np.log(stats.uniform.pdf([0.5, 1.5]), where=[True, False], out=np.full(2, -np.inf))
    for n in (10, 10**9):
        d = Dirichlet.from_evidence(log_evidence(log_p, n), np.full((2, 2), [0.9, 0.1]))
        np.testing.assert_array_equal(d.concentration[1], [1.0, 1.0])
    assert d.vacuity[0] < 1e-8


def test_section_3_distributional_awareness_contracts_to_the_prior(rng):
    """The predictive goes to the prior's mean where there are no data, at any fixed n."""
    far = np.array([[0.0], [6.0], [9.0], [40.0]])
    d = dip(5000, rng).predict_dirichlet(far)
    assert (np.diff(d.vacuity) >= 0).all()
    np.testing.assert_allclose(d.mean[-1], [0.5, 0.5], atol=1e-12)


def swapped(n, rng):
    """A classifier that is not consistent: the theorem's condition broken on purpose."""
    X, y = sample(n, rng)
    model = dip(n, rng)
    model.estimator_ = LogisticRegression(C=1e8, solver="newton-cholesky").fit(X, 1 - y)
    return model.predict_dirichlet(POINTS[:, None])


def test_theorem_3_2_fails_without_a_consistent_classifier(rng):
    """The variance still vanishes: DIP-EDL is then certain of the wrong probabilities."""
    d = swapped(4000, rng)
    wrong = np.abs(d.mean[:, 1] - proba_of(POINTS)[:, 1])[[0, 1, 4]]
    assert (wrong > 50 * np.sqrt(d.variance[[0, 1, 4], 1])).sum() >= 1
    assert (wrong > 6 * np.sqrt(d.variance[[0, 1, 4], 1])).all()


@pytest.mark.parametrize("n", [10**3, 10**5])
def test_section_3_postnet_factorises_the_same_counts(n):
    """n p(x) P(k | x) = n P(k) p(x | k): with the truth, DIP-EDL and PostNet agree (Bayes)."""
    per_class = n / 2 * np.stack([stats.norm.pdf(POINTS, -1), stats.norm.pdf(POINTS, 1)], axis=1)
    np.testing.assert_allclose(oracle(n).concentration, 1 + per_class, rtol=1e-12)


class Normals:
    """k equally frequent normal classes with unit covariance in d dimensions, k <= d + 1."""

    def __init__(self, k, d):
        self.k, self.d = k, d
        self.centres = 1.5 * np.eye(k, d)  # the last of d + 1 classes lies in the origin

    def logs(self, X):
        """Log-density of each class, shape (n, k)."""
        unit = stats.multivariate_normal(np.zeros(self.d))
        return np.stack([unit.logpdf(X - centre).reshape(-1) for centre in self.centres], axis=1)

    def density(self, X):
        return np.exp(self.logs(X)).mean(axis=1)

    def proba(self, X):
        return softmax(self.logs(X), axis=1)

    def points(self):
        """Class centres, and the point that lies evenly between all of them."""
        return np.vstack([self.centres, self.centres.mean(axis=0)])

    def oracle(self, n, X):
        """DIP-EDL whose density and classifier are the truth."""
        evidence = log_evidence(np.log(self.density(X)), n)
        return Dirichlet.from_evidence(evidence, self.proba(X))


WORLDS = [Normals(3, 2), Normals(4, 5)]
ids = pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.k} classes, {w.d} dimensions")


@ids
def test_section_3_asymptotic_consistency(world):
    """Epistemic -> (k - 1) / (2 n p(x)) -> 0; aleatoric -> the entropy of P(Y | x), which persists.

    The rate is the delta method's for the mutual information of a concentrated Dirichlet.
    """
    X = world.points()
    entropy = stats.entropy(world.proba(X), axis=1)
    for n in (10**6, 10**8):
        d = world.oracle(n, X)
        strength = n * world.density(X)
        # next orders of the expansion: sum 1 / P_k and (k - 1)(k + ..) over the squared strength
        off = 2 * (1 / world.proba(X)).sum(axis=1) * world.k / strength
        rate = (world.k - 1) / (2 * strength)
        assert (np.abs(d.epistemic / rate - 1) < off).all() and off[-1] < 0.3
        prior_share = world.k / strength
        assert (np.abs(d.aleatoric - entropy) < rate + prior_share * np.log(world.k) + 1e-9).all()
    assert (d.epistemic < 1e-3 * entropy).all() and entropy[-1] > 0.9 * np.log(world.k)


@ids
def test_theorem_3_2_with_many_classes(world):
    """Every class: mean -> P_k, variance ~ P_k (1 - P_k) / (alpha_0 + n p + 1), ball by ball."""
    X, outside = world.points(), []
    p, truth = world.density(X), world.proba(X)
    for n in (10**3, 10**5, 10**7):
        d = world.oracle(n, X)
        share = (world.k / (world.k + n * p))[:, None]
        np.testing.assert_allclose(d.mean - truth, share * (1 / world.k - truth), atol=1e-12)
        limit = truth * (1 - truth) / (world.k + n * p + 1)[:, None]
        # the prior's share moves P (1 - P) by its slope, at most |1 - 2P| / (P (1 - P)) times 1
        assert (np.abs(d.variance / limit - 1) <= share / (truth * (1 - truth)) + 1e-9).all()
        beta = stats.beta(d.concentration, d.concentration.sum(axis=1)[:, None] - d.concentration)
        np.testing.assert_allclose(d.variance, beta.var(), rtol=1e-9)
        outside.append((beta.cdf(d.mean - 0.02) + beta.sf(d.mean + 0.02)).max(axis=1))
    assert (outside[0] > outside[1]).all() and (outside[2] < 1e-6).all()
