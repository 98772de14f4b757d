"""Losses of evidential deep learning in PyTorch: one number per row."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..dirichlet import differential_entropy, kl_divergence
from ..maths.arrays import check_choice
from ..maths.gamma import digamma_excess
from .checks import label_mask

__all__ = [
    "evidence_from_logits",
    "expected_cross_entropy",
    "kl_misleading",
    "kl_to_prior",
    "log_evidence_from_logits",
    "marginal_likelihood_loss",
    "mse_bayes_risk",
    "projected_mse",
    "uce",
]

# Cap of exp: beyond it a sum over classes overflows float32 (float64). The log of the evidence
# stays exact.
_TOP = {torch.float32: 80.0, torch.float64: 300.0}
# Below this log(softplus(x)) is x to the last bit.
_SOFTPLUS_LINEAR = -40.0


def _log_softplus(logits: Tensor) -> Tensor:
    above = F.softplus(logits.clamp(min=_SOFTPLUS_LINEAR)).log()
    return torch.where(logits > _SOFTPLUS_LINEAR, above, logits)


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "softplus": F.softplus,
    "exp": lambda logits: logits.clamp(max=_TOP[logits.dtype]).exp(),
}
_LOG: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda logits: F.relu(logits).log(),
    "softplus": _log_softplus,
    "exp": lambda logits: logits,
}


def evidence_from_logits(logits: Tensor, function: str = "softplus") -> Tensor:
    """Evidence for each class, >= 0.

    Parameters
    ----------
    logits : Tensor, shape (n, k)
        Outputs of a network, float32 or float64.
    function : {"relu", "softplus", "exp"}, default="softplus"
        With "relu" an output below zero gets no gradient: a class whose unit is dead for every
        input is lost, with about a tenth of MNIST's accuracy. "exp" is capped at exp(80) (float64:
        exp(300)), so it never overflows.

    Returns
    -------
    Tensor, shape (n, k)

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import evidence_from_logits
    >>> evidence_from_logits(torch.tensor([[-1.0, 2.0]]), "relu")
    tensor([[0., 2.]])
    """
    check_choice("evidence", function, _FUNCTIONS)
    return _FUNCTIONS[function](logits)


def log_evidence_from_logits(logits: Tensor, function: str = "softplus") -> Tensor:
    """Log of the total evidence of each row, without ties far from the data.

    Parameters
    ----------
    logits : Tensor, shape (n, k)
        Outputs of a network, float32 or float64.
    function : {"relu", "softplus", "exp"}, default="softplus"
        As for `evidence_from_logits`; with "relu" a row without evidence gives ``-inf``.

    Returns
    -------
    Tensor, shape (n,)

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import log_evidence_from_logits
    >>> log_evidence_from_logits(torch.tensor([[-900.0, -900.0]]), "exp")
    tensor([-899.3068])
    """
    check_choice("evidence", function, _LOG)
    return torch.logsumexp(_LOG[function](logits), dim=1)


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
    >>> from dipedl.networks import mse_bayes_risk
    >>> mse_bayes_risk(torch.tensor([[1.0, 1.0], [9.0, 1.0]]), torch.tensor([0, 0]))
    tensor([0.6667, 0.0364])
    """
    strength = alpha.sum(dim=1, keepdim=True)
    mean = alpha / strength
    variance = mean * (1 - mean) / (strength + 1)
    label = label_mask(alpha, y).to(alpha.dtype)
    return ((label - mean).square() + variance).sum(dim=1)


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
    >>> from dipedl.networks import marginal_likelihood_loss
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
    >>> from dipedl.networks import expected_cross_entropy
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
    >>> from dipedl.networks import projected_mse
    >>> projected_mse(torch.tensor([[8.8, 0.8]]), torch.tensor([0]), lambda2=0.2)
    tensor([0.0200])
    """
    others = evidence.sum(dim=1, keepdim=True) - evidence
    scale = evidence + lambda1 * others + evidence.shape[1] * lambda2
    label = label_mask(evidence, y).to(evidence.dtype)
    return (label - (evidence + lambda2) / scale).square().sum(dim=1)


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
    >>> from dipedl.networks import uce
    >>> uce(torch.tensor([[9.0, 1.0]]), torch.tensor([0]), entropy_weight=0.0)
    tensor([0.1111])
    """
    loss: Tensor = expected_cross_entropy(alpha, y) - entropy_weight * differential_entropy(alpha)
    return loss


def _split(alpha: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Concentration of the label and of all others together, shapes (n,)."""
    label = label_mask(alpha, y)
    target = alpha.gather(1, y[:, None])[:, 0]
    return target, alpha.masked_fill(label, 0.0).sum(dim=1)


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
    >>> from dipedl.networks import kl_to_prior
    >>> kl_to_prior(torch.tensor([[1.0, 1.0], [2.0, 1.0]]))
    tensor([0.0000, 0.1931])
    """
    if isinstance(prior, float | int):  # a copy to a GPU would wait for it
        other = alpha.new_full((), prior)
    else:
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
    >>> from dipedl.networks import kl_misleading
    >>> kl_misleading(torch.tensor([[50.0, 1.0], [50.0, 2.0]]), torch.tensor([0, 0]))
    tensor([0.0000, 0.1931])
    """
    label = label_mask(alpha, y)
    return kl_to_prior(alpha.masked_fill(label, prior), prior)
