"""Regularisers of evidential losses, and their annealing."""

from __future__ import annotations

import torch
from torch import Tensor

from ...maths.dirichlet import kl_divergence
from .._checks import label_mask

__all__ = ["annealed_weight", "kl_misleading", "kl_to_prior"]


def kl_to_prior(alpha: Tensor, prior: Tensor | float = 1.0) -> Tensor:
    """KL(Dir(alpha) || Dir(prior)) in nats.

    Parameters
    ----------
    alpha : Tensor, shape (n, k)
        Concentrations, > 0.
    prior : float or Tensor of shape (k,) or (n, k), default=1.0
        Concentrations of the other Dirichlet, > 0; 1 is the uniform distribution.

    Returns
    -------
    Tensor, shape (n,)

    See Also
    --------
    dipedl.Dirichlet.kl_divergence : the same, checked, for numpy arrays too.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import kl_to_prior
    >>> kl_to_prior(torch.tensor([[1.0, 1.0], [2.0, 1.0]]))
    tensor([0.0000, 0.1931])
    """
    other = torch.as_tensor(prior, dtype=alpha.dtype, device=alpha.device)
    divergence: Tensor = kl_divergence(alpha, other.expand_as(alpha))
    return divergence


def kl_misleading(alpha: Tensor, y: Tensor, prior: float = 1.0) -> Tensor:
    """KL to the prior, of the Dirichlet without the evidence for the label.

    ``KL(Dir(alpha with alpha_y = prior) || Dir(prior, ..., prior))``, in nats: only evidence for
    the wrong classes costs.

    Parameters
    ----------
    alpha, y : Tensor, shapes (n, k) and (n,)
        As of `mse_bayes_risk`.
    prior : float, default=1.0
        Concentration of each class in the prior, > 0.

    Returns
    -------
    Tensor, shape (n,)

    References
    ----------
    Sensoy, Kaplan, Kandemir (2018), section 4; with another prior: Chen, Gao, Xu, "R-EDL: relaxing
    nonessential settings of evidential deep learning", ICLR 2024.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import kl_misleading
    >>> kl_misleading(torch.tensor([[50.0, 1.0], [50.0, 2.0]]), torch.tensor([0, 0]))
    tensor([0.0000, 0.1931])
    """
    label = label_mask(alpha, y)
    return kl_to_prior(alpha.masked_fill(label, prior), prior)


def annealed_weight(epoch: int, annealing_epochs: float) -> float:
    """Weight of a regulariser that grows linearly from 0 in epoch 0 to 1 and stays there.

    Parameters
    ----------
    epoch : int
        Epoch, counted from 0.
    annealing_epochs : float
        Epochs that it takes; 0 means full weight from the start.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from dipedl.nn import annealed_weight
    >>> [annealed_weight(epoch, 10) for epoch in (0, 3, 10, 40)]
    [0.0, 0.3, 1.0, 1.0]
    """
    return min(1.0, epoch / annealing_epochs) if annealing_epochs else 1.0
