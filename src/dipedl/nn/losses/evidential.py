"""Losses of evidential deep learning, one number per row, in PyTorch.

All are functions of concentrations or evidence and of class indices. They are accurate in float32
for concentrations from 1e-6 to 1e8: logarithms of ratios in place of differences of logarithms (see
`dipedl.maths.special`). NaN is passed on; the training loop stops. Labels that are no class indices
are a TypeError or a ValueError.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...maths.dirichlet import differential_entropy
from ...maths.special import digamma_excess
from .._checks import label_mask

__all__ = [
    "expected_cross_entropy",
    "marginal_likelihood_loss",
    "mse_bayes_risk",
    "projected_mse",
    "uce",
]


def mse_bayes_risk(alpha: Tensor, y: Tensor) -> Tensor:
    r"""Expected squared error of the class probabilities: bias and variance, in [0, 2].

    .. math:: E \sum_k (y_k - p_k)^2 = \sum_k (y_k - m_k)^2 + \frac{m_k (1 - m_k)}{S + 1},
        \quad m = \alpha / S

    Parameters
    ----------
    alpha : Tensor, shape (n, k)
        Concentrations, > 0.
    y : Tensor, shape (n,)
        Class indices 0..k-1, int64.

    Returns
    -------
    Tensor, shape (n,)

    References
    ----------
    Sensoy, Kaplan, Kandemir, "Evidential deep learning to quantify classification uncertainty",
    NeurIPS 2018, eq. 5.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import mse_bayes_risk
    >>> mse_bayes_risk(torch.tensor([[1.0, 1.0], [9.0, 1.0]]), torch.tensor([0, 0]))
    tensor([0.6667, 0.0364])
    """
    strength = alpha.sum(dim=1, keepdim=True)
    mean = alpha / strength
    variance = mean * (1 - mean) / (strength + 1)
    return ((_one_hot(alpha, y) - mean).square() + variance).sum(dim=1)


def marginal_likelihood_loss(alpha: Tensor, y: Tensor) -> Tensor:
    """Negative log of the expected probability of the label: log S - log alpha_y, in nats.

    Parameters
    ----------
    alpha, y : Tensor, shapes (n, k) and (n,)
        As of `mse_bayes_risk`.

    Returns
    -------
    Tensor, shape (n,)

    References
    ----------
    Sensoy, Kaplan, Kandemir (2018), eq. 3, "type II maximum likelihood".

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import marginal_likelihood_loss
    >>> marginal_likelihood_loss(torch.tensor([[1.0, 1.0]]), torch.tensor([0]))
    tensor([0.6931])
    """
    target, others = _split(alpha, y)
    return torch.log1p(others / target)


def expected_cross_entropy(alpha: Tensor, y: Tensor) -> Tensor:
    """Expected negative log-probability of the label: psi(S) - psi(alpha_y), in nats.

    The digamma loss of evidential learning, and the first part of `uce`.

    Parameters
    ----------
    alpha, y : Tensor, shapes (n, k) and (n,)
        As of `mse_bayes_risk`.

    Returns
    -------
    Tensor, shape (n,)

    References
    ----------
    Sensoy, Kaplan, Kandemir (2018), eq. 4; Carlotti, Gligić, Farahi, the loss L_EDL of section 2.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import expected_cross_entropy
    >>> expected_cross_entropy(torch.tensor([[1.0, 1.0], [9.0, 1.0]]), torch.tensor([0, 0]))
    tensor([1.0000, 0.1111])
    """
    target, others = _split(alpha, y)
    strength = target + others
    gap = digamma_excess(strength) - digamma_excess(target)
    # 1/a - 1/S, without cancellation where the label has nearly all concentration
    loss: Tensor = torch.log1p(others / target) + gap + others / target / strength
    return loss


def projected_mse(
    evidence: Tensor, y: Tensor, lambda1: float = 1.0, lambda2: float = 0.1
) -> Tensor:
    r"""Squared error of the projected probability, the R-EDL loss; no variance term.

    .. math:: \sum_k \left(y_k - \frac{e_k + \lambda_2}
        {e_k + \lambda_1 \sum_{j \ne k} e_j + K \lambda_2}\right)^2

    Parameters
    ----------
    evidence : Tensor, shape (n, k)
        Evidence, >= 0.
    y : Tensor, shape (n,)
        Class indices 0..k-1, int64.
    lambda1 : float, default=1.0
        Weight of the other classes' evidence; 1 makes it the posterior mean.
    lambda2 : float, default=0.1
        Concentration of each class in the prior, > 0.

    Returns
    -------
    Tensor, shape (n,)

    References
    ----------
    Chen, Gao, Xu, "R-EDL", ICLR 2024, eq. 9 and 11.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import projected_mse
    >>> projected_mse(torch.tensor([[8.8, 0.8]]), torch.tensor([0]), lambda2=0.2)
    tensor([0.0200])
    """
    others = evidence.sum(dim=1, keepdim=True) - evidence
    scale = evidence + lambda1 * others + evidence.shape[1] * lambda2
    return (_one_hot(evidence, y) - (evidence + lambda2) / scale).square().sum(dim=1)


def uce(alpha: Tensor, y: Tensor, entropy_weight: float = 1e-5) -> Tensor:
    """Uncertain cross-entropy: `expected_cross_entropy` less a share of the Dirichlet's entropy.

    Parameters
    ----------
    alpha, y : Tensor, shapes (n, k) and (n,)
        As of `mse_bayes_risk`.
    entropy_weight : float, default=1e-5
        Weight of the differential entropy, >= 0.

    Returns
    -------
    Tensor, shape (n,)
        In nats; may be negative.

    References
    ----------
    Charpentier, Zügner, Günnemann, "Posterior network: uncertainty estimation without OOD samples
    via density-based pseudo-counts", NeurIPS 2020, eq. 9.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import uce
    >>> uce(torch.tensor([[9.0, 1.0]]), torch.tensor([0]), entropy_weight=0.0)
    tensor([0.1111])
    """
    loss: Tensor = expected_cross_entropy(alpha, y) - entropy_weight * differential_entropy(alpha)
    return loss


def _one_hot(like: Tensor, y: Tensor) -> Tensor:
    return label_mask(like, y).to(like.dtype)


def _split(alpha: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Concentration of the label and of all others together, shapes (n,)."""
    label = label_mask(alpha, y)
    target = alpha.gather(1, y[:, None])[:, 0]
    return target, alpha.masked_fill(label, 0.0).sum(dim=1)
