"""Evidential deep learning weighted by Fisher information, I-EDL."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..answers import Decisions
from ..networks.checks import label_mask
from ..networks.torch_classifier import TorchEstimator
from .evidential import Evidential

__all__ = ["IEDL"]


@dataclass(eq=False, repr=False, kw_only=True)
class IEDL(Evidential, Decisions, TorchEstimator):
    r"""EDL whose squared errors are weighted by the Fisher information of the Dirichlet.

    .. math:: L = \sum_k \psi_1(\alpha_k) \left[(y_k - m_k)^2 + \frac{m_k (1 - m_k)}{S + 1}\right]
        - \lambda \log |I(\alpha)| + w_t \, KL(\mathrm{Dir}(\tilde\alpha) \| \mathrm{Dir}(1)),

    with :math:`\alpha = 1 + e(\mathrm{logits})`, m its mean, and the information
    :math:`I(\alpha) = \mathrm{diag}(\psi_1(\alpha)) - \psi_1(S) 1 1^T`, :math:`\psi_1` the
    trigamma function. Classes with much evidence are informative of little, and weigh less.

    Parameters
    ----------
    backbone, training, image_shape, random_state, class_weight : optional
        As of `EDL`.
    evidence : {"softplus", "exp", "relu"}, default="softplus"
        From outputs to evidence.
    fisher_weight : float, default=0.005
        lambda, >= 0. The released code has 0.005 on MNIST and 0.05 on CIFAR-10.
    kl_weight, annealing_epochs : float and int or float, default=1.0
        As of `EDL`. The released code anneals over 10 epochs.

    Attributes
    ----------
    classes_, class_weight_, module_, image_shape_, n_features_in_, history_
        As of `EDL`.

    Notes
    -----
    The loss is computed in float64: of strong Dirichlets the determinant is a small difference.

    References
    ----------
    Deng, Chen, Yu, Liu, Heng, "Uncertainty estimation by Fisher information-based evidential deep
    learning", ICML 2023, equations 10 to 12.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import IEDL
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> IEDL(training=Training(epochs=30, batch_size=16)).fit(X, y).score(X, y) > 0.9
    True
    """

    evidence: str = "softplus"
    fisher_weight: float = 0.005
    kl_weight: float = 1.0
    annealing_epochs: float = 1.0

    def _risk(self, evidence: Tensor, target: Tensor) -> Tensor:
        alpha = 1 + evidence.double()
        strength = alpha.sum(dim=1, keepdim=True)
        mean = alpha / strength
        own, whole = torch.polygamma(1, alpha), torch.polygamma(1, strength)
        label = label_mask(alpha, target).to(alpha.dtype)
        errors = own * ((label - mean).square() + mean * (1 - mean) / (strength + 1))
        log_det = own.log().sum(dim=1) + torch.log1p(-(whole / own).sum(dim=1))
        return errors.sum(dim=1) - self.fisher_weight * log_det
