"""Section 2.2: what the best possible network outputs, and the vacuity it is left with."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from theory_tools import (  # noqa: E402
    icd_posterior,
    library_edl_loss,
    log_normaliser,
    minimise,
    one_hot,
    reference_kl_to_posterior,
)

from dipedl import Dirichlet  # noqa: E402
from dipedl.networks import kl_misleading, mse_bayes_risk  # noqa: E402

PRIOR = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
Y = torch.tensor([0, 2, 1, 1])
NUS = [0.5, 1.0, 10.0, 500.0]


def check_optimum(weight, nu, starts=(0, 1, 2)):
    """Free concentrations of four training points, trained with this weight, end at the claim."""
    for seed in starts:
        best = minimise(lambda a: library_edl_loss(a, Y, PRIOR, weight), (4, 3), seed)
        np.testing.assert_allclose(best, PRIOR + nu * one_hot(Y, 3), rtol=1e-5)


def test_lemma_c_4_kl_is_positive_and_zero_only_at_equality(rng):
    """KL(f || g) >= 0, with equality exactly where f = g."""
    a, b = rng.uniform(0.1, 20, (2, 5000, 4))
    assert (Dirichlet(a).kl_divergence(b) > 0).all()
    np.testing.assert_array_equal(Dirichlet(a).kl_divergence(a), 0.0)


@pytest.mark.parametrize("nu", NUS)
def test_proposition_2_10_interpolation_learns_nu_times_the_label(nu):
    """The global minimum is NN(x_i) = nu e_{y_i}: reached by an optimiser from random starts."""
    check_optimum(1 / nu, nu)


def test_proposition_2_10_check_fails_with_lambda_nu():
    """The check above is red for the lambda that the proof's text writes."""
    with pytest.raises(AssertionError):
        check_optimum(10.0, nu=10.0, starts=(0,))


@pytest.mark.parametrize("nu", NUS)
def test_proposition_2_10_smallest_kl_is_zero_but_smallest_loss_is_not(nu):
    """At the optimum KL = 0; the loss there is -(1/nu) sum_i log E_prior[p_y^nu] > 0.

    The proof writes min L = (1/nu) min KL, without this constant.
    """
    best = PRIOR + nu * one_hot(Y, 3)
    assert abs(float(reference_kl_to_posterior(best, Y, PRIOR, nu))) < 1e-9
    loss = float(library_edl_loss(best, Y, PRIOR, 1 / nu))
    assert loss == pytest.approx(-float(log_normaliser(Y, PRIOR, nu).sum()) / nu, rel=1e-9)
    assert loss > 0


def test_proposition_2_10_needs_distinct_inputs():
    """Two labels at one x cannot both be interpolated: the optimum is nu times their shares."""
    nu, labels = 6.0, torch.tensor([0, 0, 0, 1])
    best = minimise(lambda a: library_edl_loss(a.expand(4, 3), labels, PRIOR, 1 / nu), (1, 3))
    np.testing.assert_allclose(best[0], PRIOR + nu * torch.tensor([0.75, 0.25, 0.0]), rtol=1e-5)


def test_proposition_2_10_is_a_limit_for_evidence_that_cannot_be_zero():
    """With exp or softplus evidence the minimum is not attained: its evidence for a wrong class
    would have to be 0, so halving that always lowers the loss."""
    nu = 10.0
    losses = [
        float(
            library_edl_loss(PRIOR + nu * one_hot(Y, 3) + off * (1 - one_hot(Y, 3)), Y, PRIOR, 0.1)
        )
        for off in 0.5 ** np.arange(1, 20)
    ]
    assert (np.diff(losses) < 0).all()


@pytest.mark.parametrize("nu", NUS)
def test_proposition_2_12_vacuity_under_interpolation(nu):
    """K / (alpha_0 + nu) at every training point, whatever its label and wherever it lies.

    In closed form, and for what an optimiser of the loss with lambda = 1 / nu ends at.
    """
    ones = torch.ones(3, dtype=torch.float64)
    d = icd_posterior(Y.numpy(), ones.numpy(), nu=nu)
    np.testing.assert_allclose(d.vacuity, 3 / (3 + nu), rtol=1e-12)
    found = minimise(lambda alpha: library_edl_loss(alpha, Y, ones, 1 / nu), (4, 3))
    np.testing.assert_allclose(Dirichlet(found, prior=ones).vacuity, 3 / (3 + nu), rtol=1e-5)


def test_proposition_2_12_with_a_prior_that_does_not_sum_to_k():
    """The paper's K / S exceeds 1 for a weak prior; ours is alpha_0 / S, alpha_0 / K as large."""
    weak, nu = np.full(3, 0.1), 0.2
    d = icd_posterior(Y.numpy(), weak, nu=nu)
    paper = 3 / d.strength
    np.testing.assert_allclose(paper, 3 / (0.3 + nu), rtol=1e-12)
    assert (paper > 1).all()
    np.testing.assert_allclose(d.vacuity, paper * 0.3 / 3, rtol=1e-12)
    assert (d.vacuity < 1).all()


@pytest.mark.parametrize("nu", [1.0, 10.0, 500.0])
def test_the_edl_baseline_of_the_experiments_is_not_the_loss_of_the_theory(nu):
    """Its KL leaves the target's evidence alone, so more of it always helps: no nu, no optimum.

    The constant vacuity of Proposition 2.12 is therefore not a property of that baseline.
    """
    for evidence in (nu, 10 * nu, 1000 * nu):
        alpha = (1 + evidence * one_hot(Y, 3)).requires_grad_(True)
        (mse_bayes_risk(alpha, Y) + kl_misleading(alpha, Y) / nu).sum().backward()
        assert (alpha.grad[one_hot(Y, 3) == 1] < 0).all()
    alpha = (1 + nu * one_hot(Y, 3)).requires_grad_(True)
    library_edl_loss(alpha, Y, torch.ones(3).double(), 1 / nu).backward()
    np.testing.assert_allclose(alpha.grad, 0, atol=1e-10)
