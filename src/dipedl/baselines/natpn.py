"""Natural posterior networks (NatPN), for classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..answers import Decisions
from ..maths.arrays import check_integer
from ..networks.backbones import in_float32, linear_layer
from ..networks.evidential_losses import uce
from ..networks.torch_classifier import TorchEstimator
from ..networks.training import train
from .evidential import TRAINING, Evidential
from .postnet import RadialFlow

__all__ = ["NatPN"]

#: The log of the evidence is kept within these bounds, as released.
_MOST = 30.0


@dataclass(eq=False, repr=False, kw_only=True)
class NatPN(Evidential, Decisions, TorchEstimator):
    r"""Natural posterior network: one density gives the evidence, a linear layer its classes.

    .. math:: \alpha_c = 1 + N_H \, q(z) \, \mathrm{softmax}_c(W z + b), \qquad
        z = \mathrm{encoder}(x),

    with q a radial flow on a latent space of dimension H and the budget
    :math:`\log N_H = \tfrac{H}{2} \log 4 \pi`, trained together by the uncertain cross-entropy.
    `PostNet` has a density per class instead.

    Parameters
    ----------
    backbone : backbone, optional
        Encoder, one of `dipedl.networks`; None is ``MLP()``. For images: ``LeNet5(dropout=0.0)``.
    latent_dim : int, default=16
        H.
    n_layers : int, default=8
        Radial layers of the flow.
    entropy_weight : float, default=1e-5
        Weight of the Dirichlet's entropy in the loss, >= 0. All three are the released code's.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, image_shape_, n_features_in_
        As of `dipedl.networks.TorchClassifier`.
    module_ : torch.nn.Module
        The trained encoder, flow and linear layer. Its outputs are the logs of the evidence for
        each class, in nats; its features are z.
    history_ : History
        Loss, score and seconds of every epoch. The score is the loss on validation data.

    Notes
    -----
    After the training the flow alone is trained as long again, by the likelihood of the latent
    points of the training rows, as published; trained together only, the encoder draws unknown
    inputs to where the flow is densest. The published epochs of the flow alone before the training
    are left out.

    References
    ----------
    Charpentier, Borchert, Zügner, Geisler, Günnemann, "Natural posterior network: deep Bayesian
    predictive uncertainty for exponential family distributions", ICLR 2022, sections 3.1 and 3.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import NatPN
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> settings = Training(
    ...     epochs=40, batch_size=16, learning_rate=1e-2, schedule="one-cycle"
    ... )
    >>> natpn = NatPN(training=settings, latent_dim=2).fit(X, y)
    >>> natpn.score(X, y) > 0.9, natpn.transform(X).shape
    (True, (150, 2))
    """

    _default_training = replace(TRAINING, learning_rate=5e-3)
    _score = None

    latent_dim: int = 16
    n_layers: int = 8
    entropy_weight: float = 1e-5

    def _risk(self, evidence: Tensor, target: Tensor) -> Tensor:
        return uce(1 + evidence, target, self.entropy_weight)

    def build_network(self, n_outputs: int, seed: int) -> Any:
        """Return an untrained encoder with a flow and a linear layer."""
        generator = torch.Generator("cpu").manual_seed(seed)
        encoder = self.resolve_backbone().build(self.image_shape_, self.latent_dim, generator)
        flow = RadialFlow(1, self.latent_dim, self.n_layers, generator)
        layer = linear_layer(self.latent_dim, n_outputs, generator)
        return _NaturalNetwork(encoder, flow, layer)

    def _fit_head(self, X: Any, y: Any, **run: Any) -> None:
        """Train the flow alone, on the latent points of the training rows."""
        module: Any = self.module_
        points = torch.from_numpy(self.transform(X)).float()
        checkpoint = run["checkpoint"]
        plain = {"augment": None, "patience": None, "restore_best": False, "amp": False}
        train(
            module.flow,
            lambda log_density, epoch: -log_density.mean(),
            (points,),
            replace(self.training_settings(), **plain),
            seed=self.draw_seed(),
            checkpoint=None if checkpoint is None else Path(f"{checkpoint}.flow"),
            deadline=run["deadline"],
        )

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("latent_dim", self.latent_dim)
        check_integer("n_layers", self.n_layers)
        super().check_parameters()


class _NaturalNetwork(nn.Module):
    """Rows of inputs (n, d) to log-evidence of classes (n, k), through latent points (n, dim)."""

    def __init__(self, encoder: nn.Module, flow: RadialFlow, layer: nn.Module) -> None:
        super().__init__()
        self.encoder, self.flow, self.layer = encoder, flow, layer
        self.log_budget = flow.center.shape[-1] / 2 * log(4 * pi)

    def features(self, X: Tensor) -> Tensor:
        z: Tensor = self.encoder(X)
        return z

    def forward(self, X: Tensor) -> Tensor:
        return self._log_evidence(self.features(X))

    @in_float32
    def _log_evidence(self, z: Tensor) -> Tensor:
        total = self.flow(z) + self.log_budget
        # bounded in value only: the gradient moves points back that left the bounds
        total = total + (total.clamp(-_MOST, _MOST) - total).detach()
        outputs: Tensor = total + self.layer(z).log_softmax(dim=1)
        return outputs
