"""Section 2.3: evidential learning as empirical risk minimisation, and the population optimum."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from theory_tools import (  # noqa: E402
    library_edl_loss,
    log_normaliser,
    minimise,
    one_hot,
    reference_kl_to_posterior,
)
from torch.distributions import Dirichlet as TorchDirichlet  # noqa: E402
from torch.distributions import kl_divergence  # noqa: E402

from dipedl import Dirichlet  # noqa: E402

PRIOR = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
#: P(Y | x) at four inputs, and how often each is seen; the last never is.
P_Y = torch.tensor(
    [[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4], [0.1, 0.1, 0.8]], dtype=torch.float64
)
P_X = torch.tensor([0.6, 0.3, 0.1, 0.0], dtype=torch.float64)


def empirical_risk(alpha, y, nu):
    return reference_kl_to_posterior(alpha, y, PRIOR, nu) / len(y)


def expected_risk(alpha, nu, prior=PRIOR):
    """E over X and Y of KL(q_X || posterior given Y), summed over all (x, y)."""
    each = torch.stack(
        [
            kl_divergence(TorchDirichlet(alpha), TorchDirichlet((prior + nu * label).expand(4, 3)))
            for label in torch.eye(3, dtype=torch.float64)
        ],
        dim=1,
    )
    return (P_X * (P_Y * each).sum(dim=1)).sum()


@pytest.mark.parametrize("nu", [0.3, 1.0, 50.0])
def test_theorem_2_14_risk_is_proportional_to_the_edl_loss(nu, rng):
    """Empirical risk = (nu / n) L^(1/nu) + a constant that no network can change.

    The theorem states it without the constant, mean_i log E_prior[p_y^nu].
    """
    y = torch.from_numpy(rng.integers(0, 3, 40))
    constant = log_normaliser(y, PRIOR, nu).mean()
    for scale in (0.1, 1.0, 30.0):
        alpha = torch.from_numpy(rng.uniform(0.2, scale + 1, (40, 3)))
        scaled = nu / 40 * library_edl_loss(alpha, y, PRIOR, 1 / nu)
        np.testing.assert_allclose(empirical_risk(alpha, y, nu), scaled + constant, rtol=1e-9)


def test_theorem_2_14_is_no_equality_without_the_constant(rng):
    """To the letter the equation is false: the risk can be 0, the loss cannot."""
    nu, y = 10.0, torch.tensor([0, 1, 2])
    best = PRIOR + nu * one_hot(y, 3)
    assert abs(float(empirical_risk(best, y, nu))) < 1e-10
    assert nu / 3 * float(library_edl_loss(best, y, PRIOR, 1 / nu)) > 1


@pytest.mark.parametrize("nu", [0.5, 1.0, 25.0, 400.0])
def test_theorem_2_15_population_optimum(nu):
    """The q that minimises the expected risk is Dir(alpha + nu P(Y | X)), found by L-BFGS."""
    best = minimise(lambda alpha: expected_risk(alpha, nu), (4, 3))
    np.testing.assert_allclose(best[:3], (PRIOR + nu * P_Y)[:3], rtol=1e-5)


def test_theorem_2_15_says_nothing_where_no_data_are():
    """Where P_X is zero the risk does not depend on q: an optimum may output anything there."""
    alpha = PRIOR + 9.0 * P_Y
    other = torch.cat([alpha[:3], 1000 * torch.ones(1, 3).double()])
    assert float(expected_risk(alpha, 9.0)) == float(expected_risk(other, 9.0))


def test_theorem_2_15_is_what_the_sample_optimum_tends_to(rng):
    """The optimum on n labels at one x is Dir(alpha + nu * shares); shares tend to P(Y | x)."""
    nu, n = 12.0, 40_000
    y = torch.from_numpy(rng.choice(3, n, p=P_Y[0].numpy()))
    shares = torch.bincount(y, minlength=3).double() / n

    def mean_loss(a):
        each = [library_edl_loss(a, torch.tensor([k]), PRIOR, 1 / nu) for k in range(3)]
        return (shares * torch.stack(each)).sum()

    best = minimise(mean_loss, (1, 3))
    np.testing.assert_allclose(best[0], PRIOR + nu * shares, rtol=1e-5)
    sd = torch.sqrt(P_Y[0] * (1 - P_Y[0]) / n)
    assert ((shares - P_Y[0]).abs() < 6 * sd).all()


def test_theorem_2_15_the_optimum_is_not_the_truth():
    """Even knowing P(Y | X) the mean is pulled to the prior, by alpha_0 / (alpha_0 + nu)."""
    nu = 5.0
    d = Dirichlet(PRIOR + nu * P_Y, prior=PRIOR)
    share = 3.0 / (3.0 + nu)
    np.testing.assert_allclose(d.mean, (1 - share) * P_Y + share * PRIOR / 3, rtol=1e-12)


@pytest.mark.parametrize("nu", [0.5, 25.0, 400.0])
def test_proposition_2_16_vacuity_of_the_population_optimum(nu):
    """K / (alpha_0 + nu) everywhere: at certain labels, at doubtful ones, at any sample size."""
    ones = torch.ones(3, dtype=torch.float64)
    best = minimise(lambda alpha: expected_risk(alpha, nu, ones), (4, 3))[:3]  # x that are seen
    d = Dirichlet(best, prior=ones)
    np.testing.assert_allclose(d.vacuity, 3 / (3 + nu), rtol=1e-5)
    assert float(d.aleatoric.max() - d.aleatoric.min()) > 0.1 * float(1 - d.vacuity[0])
