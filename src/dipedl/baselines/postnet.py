"""Posterior networks (PostNet)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..answers import Decisions
from ..maths.arrays import check_integer
from ..networks.checks import check_choice, check_number
from ..networks.evidential_losses import uce
from ..networks.flows.radial_flow import RadialFlow
from ..networks.torch_classifier import TorchEstimator
from .evidential import TRAINING, Evidential

__all__ = ["PostNet"]

_BUDGETS = ("counts", "total")


@dataclass(eq=False, repr=False, kw_only=True)
class PostNet(Evidential, Decisions, TorchEstimator):
    r"""Posterior network: pseudo-counts from a density per class in a small latent space.

    .. math:: \alpha_c = 1 + N_c \, q(z \mid c), \qquad z = \mathrm{BatchNorm}(\mathrm{encoder}(x)),

    with a radial flow per class as q, trained together with the encoder by the uncertain
    cross-entropy.

    Parameters
    ----------
    backbone : backbone, optional
        Encoder, one of `dipedl.networks`; None is ``MLP()``. For images: ``LeNet5(dropout=0.0)``;
        dropout blurs the latent points that the flows learn.
    latent_dim : int, default=6
        Dimension of the latent space.
    n_layers : int, default=6
        Radial layers of each flow.
    entropy_weight : float, default=1e-5
        Weight of the Dirichlet's entropy in the loss, >= 0.
    budget : {"counts", "total"} or float, default="counts"
        N_c, the integral of the evidence for a class: its number of training rows, the number of
        all training rows, or this number > 0.
    training, image_shape, random_state, class_weight : optional
        As of `EDL`.

    Attributes
    ----------
    classes_, class_weight_, image_shape_, n_features_in_
        As of `dipedl.networks.TorchClassifier`.
    budget_ : ndarray, shape (k,)
        N_c of each class.
    module_ : torch.nn.Module
        The trained encoder and flows. Its outputs are log(N_c q(z | c)), in nats; its
        features are z.
    history_ : History
        Loss, score and seconds of every epoch. The score is the loss on validation data.

    Notes
    -----
    With ``restore_best=True`` the weights of the best validation check are kept, which the released
    code overwrites by the last ones; ``patience=10`` stops after 10 checks without a better loss,
    while the released rule looks back 10 checks.

    References
    ----------
    Charpentier, Zügner, Günnemann, "Posterior network: uncertainty estimation without OOD samples
    via density-based pseudo-counts", NeurIPS 2020, eq. 5 and 9.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import PostNet
    >>> from dipedl.networks import Training
    >>> X, y = load_iris(return_X_y=True)
    >>> settings = Training(
    ...     epochs=40, batch_size=16, learning_rate=1e-2, schedule="one-cycle"
    ... )
    >>> postnet = PostNet(training=settings, latent_dim=2).fit(X, y)
    >>> postnet.score(X, y) > 0.9, postnet.transform(X).shape
    (True, (150, 2))
    """

    _default_training = replace(TRAINING, learning_rate=5e-3)
    _score = None

    latent_dim: int = 6
    n_layers: int = 6
    entropy_weight: float = 1e-5
    budget: str | float = "counts"

    def _risk(self, evidence: Tensor, target: Tensor) -> Tensor:
        return uce(1 + evidence, target, self.entropy_weight)

    def validate_fit(self, X: Any, y: Any, validation: Any) -> Any:
        """Check settings and data of a fit."""
        checked = super().validate_fit(X, y, validation)
        counts = np.bincount(checked[1])
        total = counts.sum() if self.budget == "total" else self.budget
        counted = self.budget == "counts"
        self.budget_ = counts * 1.0 if counted else np.full(len(counts), float(total))
        return checked

    def build_network(self, n_outputs: int, seed: int) -> Any:
        """Return an untrained encoder with a flow per class."""
        generator = torch.Generator("cpu").manual_seed(seed)
        encoder = self.resolve_backbone().build(self.image_shape_, self.latent_dim, generator)
        flow = RadialFlow(n_outputs, self.latent_dim, self.n_layers, generator)
        return _PosteriorNetwork(encoder, flow, torch.from_numpy(np.log(self.budget_)).float())

    def _check_parameters(self) -> None:
        check_integer("latent_dim", self.latent_dim)
        check_integer("n_layers", self.n_layers)
        super()._check_parameters()
        if isinstance(self.budget, str):
            check_choice("budget", self.budget, _BUDGETS)
        else:
            check_number("budget", self.budget, f"> 0, or one of {_BUDGETS}", lambda b: b > 0)


class _PosteriorNetwork(nn.Module):
    """Rows of inputs (n, d) to log pseudo-counts (n, k), through latent points (n, dim)."""

    log_budget: Tensor

    def __init__(self, encoder: nn.Module, flow: RadialFlow, log_budget: Tensor) -> None:
        super().__init__()
        self.encoder, self.flow = encoder, flow
        self.norm = nn.BatchNorm1d(flow.center.shape[-1])
        self.register_buffer("log_budget", log_budget)

    def features(self, X: Tensor) -> Tensor:
        z: Tensor = self.norm(self.encoder(X))
        return z

    def forward(self, X: Tensor) -> Tensor:
        z = self.features(X)
        # The density is computed in float32, also where the encoder runs in half precision.
        with torch.autocast(z.device.type, enabled=False):
            outputs: Tensor = self.log_budget + self.flow(z if z.dtype.itemsize >= 4 else z.float())
        return outputs
