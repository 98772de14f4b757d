"""What the theory tests share: sampling errors, the objective of section 2, an optimiser."""

from itertools import pairwise

import numpy as np
import torch
from torch.distributions import Dirichlet as TorchDirichlet
from torch.distributions import kl_divergence

from dipedl import Dirichlet
from dipedl.networks import expected_cross_entropy, kl_to_prior

#: Allowed standard errors: a true statement fails once in 5e8 comparisons of a normal mean.
SDS = 6.0


def assert_mean(draws, expected, weights=None):
    """The (self-normalised, weighted) mean over axis 0 is `expected` within its sampling error."""
    draws = np.asarray(draws, dtype=np.float64)
    w = np.ones(len(draws)) if weights is None else np.asarray(weights, dtype=np.float64)
    w = (w / w.sum()).reshape(-1, *[1] * (draws.ndim - 1))
    mean = (w * draws).sum(axis=0)
    error = np.sqrt((w**2 * (draws - mean) ** 2).sum(axis=0))
    off = np.abs(mean - np.asarray(expected)) / np.maximum(error, 1e-300)
    assert np.all(off < SDS), f"{off.max():.1f} standard errors away"


def icd_posterior(y, prior, nu=1.0):
    """Dir(prior + nu e_y) for each label: every observation has class probabilities of its own."""
    rows = np.broadcast_to(prior, (len(y), len(prior)))
    return Dirichlet(rows, prior=prior).update(np.eye(len(prior))[y], nu=nu)


def one_hot(y, k):
    return torch.nn.functional.one_hot(torch.as_tensor(y), k).double()


def library_edl_loss(alpha, y, prior, weight):
    """``sum_i E[-log p_y] + weight * KL(q_i || Dir(prior))``, eq. (1), by the library."""
    return (expected_cross_entropy(alpha, y) + weight * kl_to_prior(alpha, prior)).sum()


def reference_kl_to_posterior(alpha, y, prior, nu):
    """``KL(q || tempered posterior)`` of all rows, by torch.distributions alone."""
    posterior = TorchDirichlet(prior + nu * one_hot(y, len(prior)))
    return kl_divergence(TorchDirichlet(alpha), posterior).sum()


def log_normaliser(y, prior, nu):
    """``log E_prior[p_y^nu]`` of each row: what the posterior divides by."""
    prior = torch.as_tensor(prior)
    raised = prior[y] + nu
    whole = prior.sum()
    return torch.lgamma(raised) - torch.lgamma(prior[y]) + whole.lgamma() - (whole + nu).lgamma()


def minimise(objective, shape, seed=0, start=1.0):
    """Concentration (shape) with the smallest objective: L-BFGS over its logarithm, float64."""
    generator = torch.Generator().manual_seed(seed)
    log_alpha = start * torch.randn(shape, generator=generator, dtype=torch.float64)
    log_alpha.requires_grad_(True)
    optimizer = torch.optim.LBFGS(
        [log_alpha],
        max_iter=300,
        history_size=50,
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimizer.zero_grad()
        loss = objective(log_alpha.exp())
        loss.backward()
        return loss

    optimizer.step(closure)
    return log_alpha.detach().exp()


class Evidence(torch.nn.Module):
    """A small network with outputs >= 0 and its initial weights from a seed."""

    def __init__(self, d, k, seed, width=16):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        sizes = [d, width, width, k]
        self.weights = torch.nn.ParameterList(
            torch.randn(a + 1, b, generator=generator, dtype=torch.float64) / a**0.5
            for a, b in pairwise(sizes)
        )

    def forward(self, X):
        for weight in self.weights:
            X = torch.nn.functional.softplus(X @ weight[:-1] + weight[-1])
        return X


def gradient(loss, module):
    """Gradient of a scalar with respect to all parameters of `module`, as one vector."""
    parts = torch.autograd.grad(loss, list(module.parameters()))
    return torch.cat([part.reshape(-1) for part in parts])
