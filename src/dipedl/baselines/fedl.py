"""Flexible evidential deep learning, F-EDL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..answers import Decisions
from ..maths.arrays import check_choice, check_integer
from ..networks.backbones import Network, linear_layer
from ..networks.checks import label_mask
from ..networks.evidential_losses import evidence_from_logits
from ..networks.torch_classifier import TorchEstimator
from ..networks.training import Training
from .evidential import TRAINING

__all__ = ["FEDL"]


def moments_of_outputs(outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and variance (n, k) of the flexible Dirichlets of outputs (n, 2 k + 1), and p (n, k)."""
    k = outputs.shape[1] // 2
    alpha = evidence_from_logits(outputs[:, :k], "exp")
    p, tau = outputs[:, k : 2 * k].softmax(dim=1), softplus(outputs[:, 2 * k :])
    strength = alpha.sum(dim=1, keepdim=True) + tau
    mean = (alpha + tau * p) / strength
    variance = mean * (1 - mean) + tau.square() * p * (1 - p) / strength
    return mean, variance / (strength + 1), p


@dataclass(eq=False, repr=False, kw_only=True)
class FEDL(Decisions, TorchEstimator):
    r"""A network whose outputs are a flexible Dirichlet: a mixture of one Dirichlet per class.

    .. math:: \pi \mid x \sim \sum_k p_k \, \mathrm{Dir}(\alpha + \tau e_k), \qquad
        \mu = \frac{\alpha + \tau p}{\alpha_0 + \tau}, \quad
        v = \frac{\mu (1 - \mu)}{\alpha_0 + \tau + 1} +
        \frac{\tau^2 p (1 - p)}{(\alpha_0 + \tau)(\alpha_0 + \tau + 1)},

    with :math:`\alpha = \exp`, :math:`p = \mathrm{softmax}` and
    :math:`\tau = \mathrm{softplus}` of three heads on the same features. The loss is
    :math:`\sum_k (y_k - \mu_k)^2 + v_k + (y_k - p_k)^2`.

    Parameters
    ----------
    backbone : backbone, optional
        As of `EDL`; its head gives alpha. The authors' networks are spectrally normalised.
    hidden : int, default=256
        Width of the hidden layers of the heads of p and tau.
    n_layers : int, default=2
        Number of their hidden layers; both are the released code's.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, module_, image_shape_, n_features_in_, history_
        As of `EDL`.

    Notes
    -----
    A flexible Dirichlet is no Dirichlet: there is no ``predict_dirichlet``. With
    :math:`\tau = 1` and p the mean of :math:`\alpha` it would be one. ``logits`` are all outputs:
    log alpha, the logits of p, and tau before the softplus.

    References
    ----------
    Yoon, Kim, "Uncertainty estimation by flexible evidential deep learning", NeurIPS 2025;
    Ongaro, Migliorati, "A generalization of the Dirichlet distribution", Journal of Multivariate
    Analysis 114 (2013).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import FEDL
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> FEDL(training=Training(epochs=30, batch_size=16)).fit(X, y).score(X, y) > 0.9
    True
    """

    _default_training: ClassVar[Training] = TRAINING

    hidden: int = 256
    n_layers: int = 2

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("hidden", self.hidden)
        check_integer("n_layers", self.n_layers)
        super().check_parameters()

    def build_network(self, n_outputs: int, seed: int) -> Network:
        """Return an untrained network with three heads on the features of the backbone."""
        generator = torch.Generator("cpu").manual_seed(seed)
        network = self.resolve_backbone().build(self.image_shape_, n_outputs, generator)
        others = [self._head(network.n_features, m, generator) for m in (n_outputs, 1)]
        network.head = _Heads([network.head, *others])
        return network

    def _head(self, n_features: int, n_outputs: int, generator: torch.Generator) -> nn.Module:
        layers: list[nn.Module] = []
        for width in [self.hidden] * self.n_layers:
            layers += [linear_layer(n_features, width, generator), nn.ReLU()]
            n_features = width
        return nn.Sequential(*layers, linear_layer(n_features, n_outputs, generator))

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        mean, variance, p = moments_of_outputs(outputs)
        label = label_mask(mean, target).to(mean.dtype)
        losses = (label - mean).square() + variance + (label - p).square()
        return self.weighted_mean(losses.sum(dim=1), target)

    def _score(self, outputs: Tensor, target: Tensor) -> Tensor:
        return self.error_rate(moments_of_outputs(outputs)[0], target)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d), the means mu, shape (n, k)."""
        return self._moments(X)[0]

    def uncertainty(self, X: Any, kind: str = "epistemic") -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        kind : {"epistemic", "aleatoric", "total"}, default="epistemic"
            ``sum v``; "total", ``1 - sum mu^2``, less that; and "total" itself.
        """
        mean, variance = self._moments(X)
        epistemic, total = variance.sum(axis=1), (mean * (1 - mean)).sum(axis=1)
        kinds = {"epistemic": epistemic, "aleatoric": total - epistemic, "total": total}
        check_choice("kind", kind, kinds)
        return np.asarray(kinds[kind])

    def _moments(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        mean, variance, _ = moments_of_outputs(torch.from_numpy(self.logits(X)))
        return mean.numpy(), variance.numpy()


class _Heads(nn.ModuleList):
    """Outputs of several heads side by side."""

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([head(features) for head in self], dim=1)
