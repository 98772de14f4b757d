"""The best possible network of a sample (section 2.2) and of the population (section 2.3)."""

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
from torch.distributions import Dirichlet as TorchDirichlet  # noqa: E402
from torch.distributions import kl_divergence  # noqa: E402

from dipedl import Dirichlet  # noqa: E402
from dipedl.networks import (  # noqa: E402
    kl_misleading,
    mse_bayes_risk,
)

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
