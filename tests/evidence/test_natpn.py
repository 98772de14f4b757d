"""The evidence of natural posterior networks, against a restatement of its scaler."""

import numpy as np
import pytest
from scipy import stats

from dipedl.evidence import NatPNBudget, log_evidence


@pytest.mark.parametrize(
    ("budget", "log_budget"),
    [("constant", 0.0), ("exp-half", 8.0), ("exp", 16.0), ("normal", 8 * np.log(4 * np.pi))],
)
def test_evidence_is_the_budget_times_the_density_whatever_n_and_gamma(budget, log_budget):
    scores = np.array([-100.0, -20.0, -3.0, 40.0])
    expected = np.array([max(-30.0, min(30.0, s + log_budget)) for s in scores])
    for n, gamma in ((10, 1.0), (50_000, 0.3)):
        z = NatPNBudget(16, budget).fit(scores, n=n, gamma=gamma).transform(scores)
        np.testing.assert_allclose(log_evidence(z, n, gamma), expected, atol=1e-12)
    free = NatPNBudget(16, budget, np.inf).fit(scores, n=1).transform(scores)
    np.testing.assert_allclose(free, scores + log_budget)


def test_the_normal_budget_at_the_centre_of_a_standard_normal():
    for dim in (2, 16):
        center = stats.multivariate_normal(np.zeros(dim)).logpdf(np.zeros(dim))
        z = NatPNBudget(dim, "normal").fit([center], n=1).transform([center])
        np.testing.assert_allclose(np.exp(z), 2 ** (dim / 2))


@pytest.mark.parametrize(
    ("normalizer", "n", "error", "message"),
    [
        (NatPNBudget(budget="huge"), 1, ValueError, "budget must be one of.*got 'huge'"),
        (NatPNBudget(budget="exp"), 1, TypeError, "dim must be a number > 0, got None"),
        (NatPNBudget(0, "exp"), 1, ValueError, "dim must be finite and > 0"),
        (NatPNBudget(limit=0), 1, ValueError, "limit must be > 0"),
        (NatPNBudget(), None, TypeError, "n must be a number > 0, got None"),
    ],
)
def test_what_it_refuses(normalizer, n, error, message):
    with pytest.raises(error, match=message):
        normalizer.fit([0.0], n=n)
