"""Evidential learning as variational inference, and the best possible network (2.2, 2.3)."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from theory_tools import (  # noqa: E402
    Evidence,
    assert_mean,
    gradient,
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
from dipedl.networks import kl_misleading, mse_bayes_risk  # noqa: E402
from weekly import sample_of  # noqa: E402

PRIOR = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float64)
NUS = [0.3, 1.0, 8.0, 500.0]


def problem(n=25, seed=1):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return X, torch.randint(0, 3, (n,), generator=generator)


def check_gradients_are_proportional(edl_loss, nu):
    """At random parameters the gradient of KL(q || posterior) is nu times that of the EDL loss."""
    X, y = problem()
    for seed in range(4):
        net = Evidence(2, 3, seed)
        ours = gradient(edl_loss(PRIOR + net(X), y, nu), net)
        theirs = gradient(reference_kl_to_posterior(PRIOR + net(X), y, PRIOR, nu), net)
        np.testing.assert_allclose(nu * ours, theirs, rtol=1e-7, atol=1e-9 * float(theirs.norm()))


def test_proposition_2_4_predictive_of_amortised_inference():
    """Y at a new x is Cat((alpha + NN) / (alpha_0 + S)): draws of p ~ q, then of Y ~ Cat(p)."""
    X, _ = problem(n=3, seed=2)
    alpha = (PRIOR + Evidence(2, 3, seed=0)(X)).detach()
    rng = np.random.default_rng(0)
    gammas = rng.standard_gamma(np.broadcast_to(alpha.numpy(), (100_000, 3, 3)))
    P = gammas / gammas.sum(axis=-1, keepdims=True)
    Y = (rng.random((100_000, 3, 1)) > P.cumsum(axis=-1)).sum(axis=-1)
    assert_mean(np.eye(3)[Y.clip(0, 2)], Dirichlet(alpha, prior=PRIOR).mean)


def test_proposition_2_5_kl_expansion_of_the_icd_model():
    """KL(q || posterior) is sum_i E_q[-log p_y] + KL(q_i || prior), up to a constant.

    The left side by Monte Carlo from the definition of KL, the right side by the library; the
    constant is the log evidence of the labels, sum_i log(alpha_y / alpha_0).
    """
    X, y = problem(n=4)
    rng = np.random.default_rng(3)
    constant = (PRIOR[y] / PRIOR.sum()).log().sum()
    for seed in range(3):
        alpha = (PRIOR + Evidence(2, 3, seed)(X)).detach()
        gammas = rng.standard_gamma(np.broadcast_to(alpha.numpy(), (100_000, 4, 3)))
        P = torch.from_numpy(gammas / gammas.sum(axis=-1, keepdims=True))
        posterior = TorchDirichlet(PRIOR + one_hot(y, 3))
        draws = (TorchDirichlet(alpha).log_prob(P) - posterior.log_prob(P)).sum(dim=1)
        assert_mean(draws, library_edl_loss(alpha, y, PRIOR, 1.0) + constant)


def test_proposition_2_5_kl_expansion_has_the_same_gradient():
    """The two objectives of the proposition have the same gradient in the network's parameters."""
    check_gradients_are_proportional(
        lambda alpha, y, nu: library_edl_loss(alpha, y, PRIOR, 1.0), nu=1.0
    )


@pytest.mark.parametrize("nu", NUS)
def test_theorem_2_9_edl_is_amortised_inference_with_lambda_one_over_nu(nu):
    """Minimising KL(q || tempered posterior) is minimising the EDL loss with lambda = 1 / nu."""
    check_gradients_are_proportional(
        lambda alpha, y, nu: library_edl_loss(alpha, y, PRIOR, 1 / nu), nu
    )


@pytest.mark.parametrize("nu", [0.3, 8.0])
def test_theorem_2_9_fails_for_the_lambda_of_its_proof(nu):
    """The proof's last lines write L^nu for L^(1/nu): with lambda = nu the check goes red."""

    def as_in_the_proof(alpha, y, nu):
        return library_edl_loss(alpha, y, PRIOR, nu)

    with pytest.raises(AssertionError):
        check_gradients_are_proportional(as_in_the_proof, nu)
    check_gradients_are_proportional(as_in_the_proof, nu=1.0)  # where the two agree


@pytest.mark.parametrize("nu", [0.3, 8.0])
def test_theorem_2_9_the_lambda_of_its_proof_learns_evidence_one_over_nu(nu):
    """Minimiser of L^nu: Dir(alpha + e_y / nu), so a larger nu would mean less evidence."""
    y = torch.tensor([0, 1, 2])
    best = minimise(lambda alpha: library_edl_loss(alpha, y, PRIOR, nu), (3, 3))
    np.testing.assert_allclose(best, PRIOR + one_hot(y, 3) / nu, rtol=1e-5)


def test_equation_1_is_the_same_from_a_dirichlet_and_from_the_training_losses():
    """`dipedl.networks` (used in training) and `Dirichlet` (what is reported) agree."""
    X, y = problem()
    alpha = (PRIOR + 30 * Evidence(2, 3, seed=0)(X)).detach()
    d = Dirichlet(alpha, prior=PRIOR)
    of_label = d.concentration[torch.arange(len(y)), y]
    reported = torch.digamma(d.strength) - torch.digamma(of_label)
    reported = reported + 0.2 * d.kl_divergence(PRIOR)
    np.testing.assert_allclose(library_edl_loss(alpha, y, PRIOR, 0.2), reported.sum(), rtol=1e-12)


def test_theorem_2_9_holds_for_families_that_cannot_interpolate():
    """The same minimiser also where no network fits: evidence exp(t) for everyone, one t."""
    _, y = problem()
    t = torch.linspace(-6, 6, 301, dtype=torch.float64)
    for nu in (0.5, 20.0):
        kl, edl = (
            torch.stack([f(PRIOR + s.exp() * torch.ones(len(y), 3)) for s in t])
            for f in (
                lambda a, nu=nu: reference_kl_to_posterior(a, y, PRIOR, nu),
                lambda a, nu=nu: library_edl_loss(a, y, PRIOR, 1 / nu),
            )
        )
        assert 0 < int(kl.argmin()) == int(edl.argmin()) < len(t) - 1


def test_theorem_2_9_the_tempered_constant_is_the_log_normaliser():
    """KL = nu L^(1/nu) + sum_i log E_prior[p_y^nu], the last by Monte Carlo over the prior."""
    _, y = problem(n=6)
    nu, rng = 2.5, np.random.default_rng(5)
    alpha = torch.from_numpy(rng.uniform(0.5, 9.0, (6, 3)))
    constant = reference_kl_to_posterior(alpha, y, PRIOR, nu) - nu * library_edl_loss(
        alpha, y, PRIOR, 1 / nu
    )
    np.testing.assert_allclose(constant, log_normaliser(y, PRIOR, nu).sum(), rtol=1e-9)
    P = rng.dirichlet(PRIOR.numpy(), 200_000)
    for k in range(3):
        assert_mean(P[:, k] ** nu, log_normaliser(torch.tensor([k]), PRIOR, nu).exp()[0])


Y = torch.tensor([0, 2, 1, 1])


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


@pytest.mark.parametrize("nu", sample_of(NUS, 0, len(NUS) - 1))
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
