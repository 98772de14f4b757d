"""Losses against Monte Carlo over Dirichlet samples, torch.distributions, autograd and limits."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.distributions import Dirichlet as TorchDirichlet  # noqa: E402
from torch.distributions import kl_divergence  # noqa: E402

from dipedl import Dirichlet  # noqa: E402
from dipedl.networks import (  # noqa: E402
    evidence_from_logits,
    expected_cross_entropy,
    kl_misleading,
    kl_to_prior,
    log_evidence_from_logits,
    marginal_likelihood_loss,
    mse_bayes_risk,
    projected_mse,
    uce,
)

LOSSES = {
    "mse": mse_bayes_risk,
    "log": marginal_likelihood_loss,
    "digamma": expected_cross_entropy,
    "misleading": kl_misleading,
    "misleading to 0.1": lambda alpha, y: kl_misleading(alpha, y, 0.1),
    "prior": lambda alpha, y: kl_to_prior(alpha, torch.tensor([0.5, 1.0, 2.0, 3.0]).to(alpha)),
    "projected": lambda alpha, y: projected_mse(alpha, y, 0.7, 0.1),
    "uce": lambda alpha, y: uce(alpha, y, 0.3),
}
EXTREME = [1e-6, 1e-3, 1.0, 1e4, 1e8]


@pytest.fixture
def rows(rng):
    """Concentrations (8, 4) and labels (8,)."""
    alpha = torch.from_numpy(rng.uniform(0.4, 12, (8, 4)))
    return alpha, torch.from_numpy(rng.integers(0, 4, 8))


@pytest.fixture
def sampled(rows):
    """Class probabilities drawn from each row's Dirichlet, (size, 8, 4)."""
    return torch.from_numpy(Dirichlet(rows[0].numpy()).sample(40_000, 3))


def close_to_mean(values, exact):
    """The mean over samples (size, n) is `exact` (n,) within 5 standard errors."""
    error = values.std(dim=0) / len(values) ** 0.5
    assert ((values.mean(dim=0) - exact).abs() < 5 * error).all()


def one_hot(y, k=4):
    return torch.nn.functional.one_hot(y, k).double()


def test_mse_is_the_expected_squared_error(rows, sampled):
    alpha, y = rows
    close_to_mean((one_hot(y) - sampled).square().sum(dim=2), mse_bayes_risk(alpha, y))


def test_marginal_likelihood_is_that_of_the_mean_probability(rows, sampled):
    alpha, y = rows
    of_label = sampled[:, torch.arange(8), y]
    close_to_mean(of_label, torch.exp(-marginal_likelihood_loss(alpha, y)))


def test_digamma_loss_is_the_expected_cross_entropy(rows, sampled):
    alpha, y = rows
    of_label = sampled[:, torch.arange(8), y]
    close_to_mean(-of_label.log(), expected_cross_entropy(alpha, y))
    naive = torch.digamma(alpha.sum(dim=1)) - torch.digamma(alpha[torch.arange(8), y])
    torch.testing.assert_close(expected_cross_entropy(alpha, y), naive, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "prior", [1.0, 2, torch.tensor([1, 1, 2, 30]), [0.5, 1.0, 2.0, 30.0], np.array([1, 2, 3, 4])]
)
def test_kl_against_monte_carlo_and_torch(rows, sampled, prior):
    alpha, _ = rows
    b = torch.as_tensor(prior, dtype=torch.float64).expand_as(alpha)
    p, q = TorchDirichlet(alpha), TorchDirichlet(b)
    inside = sampled.clamp(min=1e-300)
    got = kl_to_prior(alpha, prior)
    close_to_mean(p.log_prob(inside) - q.log_prob(inside), got)
    torch.testing.assert_close(got, kl_divergence(p, q), rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(got, Dirichlet(alpha).kl_divergence(b), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("prior", [1.0, 0.1])
def test_misleading_kl_ignores_the_evidence_for_the_label(rows, prior):
    alpha, y = rows
    evidence = alpha
    left = (1 - one_hot(y)) * evidence + prior  # the formula as published, on evidence
    expected = kl_divergence(TorchDirichlet(left), TorchDirichlet(torch.full_like(left, prior)))
    got = kl_misleading(evidence + prior, y, prior)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10)
    more = evidence + prior + 1e4 * one_hot(y)
    torch.testing.assert_close(kl_misleading(more, y, prior), got, rtol=1e-14, atol=0)


def test_projected_mse_against_a_loop(rows):
    e, y = rows
    for lambda1, lambda2 in ((1.0, 0.1), (0.3, 0.8), (0.0, 2.0)):
        expected = torch.zeros(8, dtype=torch.float64)
        for i in range(8):
            for k in range(4):
                rest = sum(float(e[i, j]) for j in range(4) if j != k)
                p = (float(e[i, k]) + lambda2) / (float(e[i, k]) + lambda1 * rest + 4 * lambda2)
                expected[i] += (float(y[i] == k) - p) ** 2
        torch.testing.assert_close(projected_mse(e, y, lambda1, lambda2), expected)


def test_uce_takes_the_entropy_of_the_dirichlet_off(rows):
    alpha, y = rows
    got = expected_cross_entropy(alpha, y) - uce(alpha, y, 0.3)
    torch.testing.assert_close(got, 0.3 * TorchDirichlet(alpha).entropy(), rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(uce(alpha, y, 0.0), expected_cross_entropy(alpha, y))


@pytest.mark.parametrize("name", LOSSES)
def test_gradients(name, rows):
    alpha, y = rows[0][:3].clone().requires_grad_(), rows[1][:3]
    assert torch.autograd.gradcheck(lambda a: LOSSES[name](a, y), (alpha,))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_concentrations_are_finite_and_float32_agrees(name, dtype):
    grid = torch.cartesian_prod(*[torch.tensor(EXTREME, dtype=dtype)] * 4)
    alpha, y = grid.requires_grad_(), torch.arange(len(grid)) % 4
    loss = LOSSES[name](alpha, y)
    assert loss.dtype == dtype and loss.shape == (len(grid),)
    assert torch.isfinite(loss).all()
    (slope,) = torch.autograd.grad(loss.sum(), alpha)
    assert torch.isfinite(slope).all()
    exact = LOSSES[name](grid.detach().double(), y)
    size = exact.abs().clamp(min=1.0)
    assert ((loss.double() - exact).abs() / size).max() < 5e-5


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_are_finite_as_far_as_evidence_goes(name):
    """exp(80) is where evidence stops; its square is beyond float32."""
    logits = torch.cartesian_prod(*[torch.tensor([-30.0, 0.0, 35.0, 44.0, 90.0])] * 4)
    logits, y = logits.requires_grad_(), torch.arange(len(logits)) % 4
    loss = LOSSES[name](1 + evidence_from_logits(logits, "exp"), y)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    assert torch.isfinite(loss).all() and torch.isfinite(slope).all()


@pytest.mark.parametrize("name", sorted(LOSSES.keys() - {"prior"}))
def test_labels_that_are_no_classes_are_refused(name):
    alpha = torch.ones(3, 4)
    for bad, error, message in [
        (
            torch.tensor([0, 4, 1]),
            ValueError,
            r"y must be class indices 0\.\.3, got 0\.\.4",
        ),
        (torch.tensor([0, -1, 1]), ValueError, r"got -1\.\.1"),
        (torch.tensor([0, 1]), ValueError, r"one label per row, shape \(3,\), got \(2,\)"),
        (torch.eye(4)[:3], TypeError, "y must be a tensor of int64, got torch.float32"),
        ([0, 1, 2], TypeError, "y must be a tensor of int64, got <class 'list'>"),
    ]:
        with pytest.raises(error, match=message):
            LOSSES[name](alpha, bad)


@pytest.mark.parametrize("name", LOSSES)
def test_a_row_does_not_see_the_others_and_nan_stays_nan(name, rows):
    alpha, y = rows
    single = torch.cat([LOSSES[name](alpha[i : i + 1], y[i : i + 1]) for i in range(8)])
    torch.testing.assert_close(LOSSES[name](alpha, y), single, rtol=1e-13, atol=1e-14)
    broken = alpha.clone()
    broken[2, (int(y[2]) + 1) % 4] = torch.nan
    got = LOSSES[name](broken, y)
    assert torch.isnan(got).tolist() == [i == 2 for i in range(8)]


def test_the_digamma_loss_with_its_kl_has_the_optimum_of_the_theory():
    """L = E[-log p_y] + KL(. || prior) / nu is least at prior + nu e_y."""
    nu, y = 7.0, torch.tensor([1])
    prior = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    best = prior.clone()
    best[1] += nu
    alpha = best[None].requires_grad_()
    loss = expected_cross_entropy(alpha, y) + kl_to_prior(alpha, prior) / nu
    (slope,) = torch.autograd.grad(loss.sum(), alpha)
    assert slope.abs().max() < 1e-12


FUNCTIONS = ["relu", "softplus", "exp"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_log_of_the_total_is_that_of_the_evidence(name, rng):
    logits = torch.from_numpy(rng.normal(0, 8, (50, 4)))
    evidence = evidence_from_logits(logits, name)
    assert (evidence >= 0).all()
    total = evidence.sum(dim=1).log()
    torch.testing.assert_close(log_evidence_from_logits(logits, name), total)


def test_evidence_by_hand():
    x = torch.tensor([[-2.0, 0.0, 3.0]], dtype=torch.float64)
    np.testing.assert_allclose(evidence_from_logits(x, "relu"), [[0, 0, 3]])
    np.testing.assert_allclose(evidence_from_logits(x), np.log1p(np.exp(x.numpy())))
    np.testing.assert_allclose(evidence_from_logits(x, "exp"), np.exp(x.numpy()))


@pytest.mark.parametrize("name", ["softplus", "exp"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_rows_do_not_tie_and_do_not_overflow(name, dtype):
    levels = torch.tensor([-1e4, -800, -200, -41, -39, -20, 0, 50, 200, 1e4], dtype=dtype)
    logits = levels[:, None].expand(-1, 3)
    log_evidence = log_evidence_from_logits(logits, name)
    assert (log_evidence.diff() > 0).all() and torch.isfinite(log_evidence).all()
    assert torch.isfinite(evidence_from_logits(logits, name).sum(dim=1)).all()


def test_no_evidence_of_relu_has_no_log():
    assert log_evidence_from_logits(torch.full((1, 3), -1.0), "relu").item() == -np.inf


@pytest.mark.parametrize("function", [evidence_from_logits, log_evidence_from_logits])
def test_unknown_function(function):
    with pytest.raises(ValueError, match=r"one of \['exp', 'relu', 'softplus'\], got 'tanh'"):
        function(torch.zeros(1, 2), "tanh")
