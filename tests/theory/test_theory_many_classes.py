"""Section 3 beyond two classes on a line: three and four normal classes in several dimensions."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, Dirichlet
from dipedl.density import GDADensity
from dipedl.evidence import Identity, log_evidence

REPEATS = 12


class Normals:
    """k equally frequent normal classes with unit covariance in d dimensions, k <= d + 1."""

    def __init__(self, k, d):
        self.k, self.d = k, d
        self.centres = 1.5 * np.eye(k, d)  # the last of d + 1 classes lies in the origin

    def sample(self, n, rng):
        y = rng.integers(0, self.k, n)
        return rng.normal(size=(n, self.d)) + self.centres[y], y

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

    def fitted(self, n, rng):
        parts = GDADensity("tied", shrinkage=None, class_weights="empirical")
        return DIPClassifier(
            LogisticRegression(C=1e8),
            parts,
            normalizer=Identity(),
            features="passthrough",
            cv="in-sample",
        ).fit(*self.sample(n, rng))


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
