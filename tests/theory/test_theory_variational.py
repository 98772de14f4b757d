"""Section 2.2: evidential learning as amortised variational inference."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from theory_tools import (  # noqa: E402
    Evidence,
    assert_mean,
    gradient,
    library_edl_loss,
    log_normaliser,
    minimise,
    one_hot,
    reference_kl_to_posterior,
)
from torch.distributions import Dirichlet as TorchDirichlet  # noqa: E402

from dipedl import Dirichlet  # noqa: E402

PRIOR = torch.tensor([0.7, 1.0, 1.9], dtype=torch.float64)
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
    """What L^nu is minimised by: Dir(alpha + e_y / nu), so a larger nu would mean less evidence."""
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
