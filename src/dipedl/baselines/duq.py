"""Deterministic uncertainty quantification (DUQ): distance to a centroid of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor, nn

from ..answers import Decisions
from ..maths.arrays import check_integer, check_number, check_positive_number
from ..networks.backbones import in_float32
from ..networks.checks import label_mask
from ..networks.torch_classifier import TorchEstimator
from ..networks.training import Training
from .evidential import TRAINING

__all__ = ["DUQ"]

#: Rows that a centroid counts before the first batch, and the spread of the first centroids.
_FIRST_COUNT, _FIRST_SPREAD = 13.0, 0.05
#: A kernel closer to one than this counts as this close.
_CLOSEST = -1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class DUQ(Decisions, TorchEstimator):
    r"""A network with a kernel per class, about a centroid that moves with its training rows.

    .. math:: K_c = \exp\left(-\frac{|W_c z - e_c|^2}{2 n \sigma^2}\right), \qquad
        L = \sum_c BCE(K_c, y_c) + \lambda \left(|\nabla_x \sum_c K_c|^2 - 1\right)^2,

    with z the features and n the length of the embeddings W_c z. A centroid e_c is a moving average
    of the embeddings of its class. Uncertainty is the distance to the nearest centroid.

    Parameters
    ----------
    backbone : backbone, optional
        One of `dipedl.networks`; None is ``MLP()``. Dropout blurs the centroids.
    embedding : int, default=256
        n.
    length_scale : float, default=0.1
        sigma > 0.
    momentum : float, default=0.999
        Weight of the past in the moving averages, in [0, 1), per step.
    gradient_penalty : float, default=0.05
        lambda, >= 0. All four are the released code's for FashionMNIST; for CIFAR-10 it has a
        gradient penalty of 0.5.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, module_, image_shape_, n_features_in_, history_
        As of `dipedl.networks.TorchClassifier`. The outputs of the network are ``log K_c``.

    Notes
    -----
    The kernels are no probabilities: ``predict_proba`` divides them by their sum. The averages take
    the embeddings of the pass before a step, the released code those of another pass after it.
    A `training` with ``compile`` is refused: the penalty differentiates a gradient.

    References
    ----------
    van Amersfoort, Smith, Teh, Gal, "Uncertainty estimation using a single deep deterministic
    neural network", ICML 2020, equations 1 to 7.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import DUQ
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> duq = DUQ(training=Training(epochs=30, batch_size=16), embedding=16).fit(X, y)
    >>> near, far = duq.uncertainty([X[0], 10 * X[0]])
    >>> duq.score(X, y) > 0.9, bool(near < far)
    (True, True)
    """

    _default_training: ClassVar[Training] = TRAINING

    embedding: int = 256
    length_scale: float = 0.1
    momentum: float = 0.999
    gradient_penalty: float = 0.05

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("embedding", self.embedding)
        check_positive_number("length_scale", self.length_scale)
        check_number("momentum", self.momentum, "in [0, 1)", lambda m: 0 <= m < 1)
        check_number("gradient_penalty", self.gradient_penalty, ">= 0", lambda w: w >= 0)
        compiled = self.training_settings().compile
        if compiled:
            raise ValueError(f"training must have compile=False for DUQ, got compile={compiled!r}")
        super().check_parameters()

    def build_network(self, n_outputs: int, seed: int) -> Any:
        """Return an untrained backbone with a kernel per class."""
        generator = torch.Generator("cpu").manual_seed(seed)
        backbone = self.resolve_backbone().build(self.image_shape_, n_outputs, generator)
        kernels = _Kernels(
            backbone.n_features, n_outputs, self.embedding, self.length_scale, generator
        )
        backbone.head = kernels
        return _WithInputs(backbone)

    def _loss(self, outputs: Tensor, target: Tensor, *, epoch: int) -> Tensor:
        label = label_mask(outputs, target)
        others = (-torch.expm1(outputs.clamp(max=_CLOSEST))).log()
        losses = -torch.where(label, outputs, others).sum(dim=1)
        network: Any = self.module_
        if outputs.requires_grad:
            inputs = network.__dict__.pop("inputs")  # not kept after the training
            if self.gradient_penalty > 0:
                losses = losses + self.gradient_penalty * _penalty(outputs, inputs)
            network.backbone.head.move(label, self.momentum)
        return self.weighted_mean(losses, target)

    _score: ClassVar[Any] = TorchEstimator.error_rate

    def predict_proba(self, X: Any) -> np.ndarray:
        """Kernels of inputs X (n, d) over their sum, shape (n, k)."""
        return np.asarray(softmax(self.logits(X), axis=1))

    def uncertainty(self, X: Any) -> np.ndarray:
        """``-log max_c K_c`` of each input X (n, d), >= 0, shape (n,)."""
        return np.asarray(-self.logits(X).max(axis=1))


def _penalty(outputs: Tensor, inputs: Tensor) -> Tensor:
    """Two-sided penalty (n,) of the squared gradient of the summed kernels by each input."""
    total = outputs.exp().sum()
    (gradient,) = torch.autograd.grad(total, inputs, create_graph=True)
    penalty: Tensor = (gradient.flatten(1).square().sum(dim=1) - 1).square()
    return penalty


class _WithInputs(nn.Module):
    """A network that keeps the inputs of a training pass, to derive its outputs by them."""

    def __init__(self, backbone: Any) -> None:
        super().__init__()
        self.backbone = backbone

    def features(self, X: Tensor) -> Tensor:
        features: Tensor = self.backbone.features(X)
        return features

    def forward(self, X: Tensor) -> Tensor:
        if self.training and torch.is_grad_enabled():
            X = X.detach().requires_grad_()
            self.__dict__["inputs"] = X
        outputs: Tensor = self.backbone(X)
        return outputs


class _Kernels(nn.Module):
    """Features (n, p) to log-kernels (n, k), with centroids that move."""

    sums: Tensor
    counts: Tensor

    def __init__(
        self, p: int, k: int, n: int, length_scale: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        # of unit variance for features of unit variance, as He's normal weights are
        self.weight = nn.Parameter((2 / p) ** 0.5 * torch.randn(k, n, p, generator=generator))
        self.length_scale = length_scale
        self.register_buffer("counts", torch.full((k,), _FIRST_COUNT))
        centroids = _FIRST_SPREAD * torch.randn(k, n, generator=generator)
        self.register_buffer("sums", _FIRST_COUNT * centroids)

    @in_float32
    def forward(self, features: Tensor) -> Tensor:
        embedded = torch.einsum("np,kep->nke", features, self.weight)
        distances = (embedded - self.sums / self.counts[:, None]).square().mean(dim=2)
        if self.training:
            self.__dict__["embedded"] = embedded.detach()
        return -distances / (2 * self.length_scale**2)

    @torch.no_grad()
    def move(self, label: Tensor, momentum: float) -> None:
        """Move the centroids to the last embeddings of their class, by `label` (n, k)."""
        label, embedded = label.to(self.sums.dtype), self.__dict__.pop("embedded")
        self.counts.lerp_(label.sum(dim=0), 1 - momentum)
        self.sums.lerp_(torch.einsum("nke,nk->ke", embedded, label), 1 - momentum)
