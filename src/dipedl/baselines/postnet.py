"""Posterior networks (PostNet)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..answers import Decisions
from ..maths.arrays import check_choice, check_integer, check_number
from ..networks.backbones import in_float32
from ..networks.evidential_losses import uce
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

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("latent_dim", self.latent_dim)
        check_integer("n_layers", self.n_layers)
        super().check_parameters()
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
        outputs: Tensor = self.log_budget + self.flow(self.features(X))
        return outputs


class RadialFlow(nn.Module):
    r"""One density per class on a common latent space: radial layers into a standard normal.

    A layer maps z to :math:`z + \beta (z - z_0) / (a + r)` with :math:`r = |z - z_0|`,
    :math:`a = \mathrm{softplus}(a')` and :math:`\beta = -a + s`, :math:`s = \mathrm{softplus}(b')`,
    which makes it a bijection: along a ray its slope is :math:`(r^2 + 2ar + as)/(a + r)^2 > 0`.

    Parameters
    ----------
    n_classes : int
        Number of densities k.
    dim : int
        Latent dimension.
    n_layers : int, default=6
        Radial layers of each density.
    generator : torch.Generator, optional
        Source of the initial parameters; default: PyTorch's global one.

    Attributes
    ----------
    center : Parameter, shape (n_layers, k, dim)
        The points z_0.
    raw_scale, raw_slope : Parameter, shape (n_layers, k)
        The a' and b' above, free of constraints.

    References
    ----------
    Rezende, Mohamed, "Variational inference with normalizing flows", ICML 2015, eq. 14 and
    appendix A.2; Charpentier, Zügner, Günnemann, "Posterior network", NeurIPS 2020.
    """

    def __init__(
        self,
        n_classes: int,
        dim: int,
        n_layers: int = 6,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("n_classes", n_classes), ("dim", dim), ("n_layers", n_layers)):
            check_integer(name, value)
        bound = dim**-0.5

        def draw(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))

        self.center = draw(n_layers, n_classes, dim)
        self.raw_scale = draw(n_layers, n_classes)
        self.raw_slope = draw(n_layers, n_classes)

    @in_float32
    def forward(self, z: Tensor) -> Tensor:
        """Log-densities in nats of latent points z (n, dim) under each class, shape (n, k)."""
        u, log_det = self.transform(z)
        return log_det - 0.5 * (u.square().sum(dim=-1) + z.shape[1] * log(2 * pi))

    def transform(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Images of z (n, dim) under each class's layers (n, k, dim), and ``log |det|`` (n, k)."""
        u = z[:, None, :].expand(-1, self.center.shape[1], -1)
        total = torch.zeros_like(u[..., 0])
        layers = zip(
            self.center, F.softplus(self.raw_scale), F.softplus(self.raw_slope), strict=True
        )
        for center, a, s in layers:
            u, log_det = _radial(u, center, a, s)
            total = total + log_det
        return u, total


def _radial(u: Tensor, center: Tensor, a: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """One layer: points (n, k, dim) and ``log |det|`` (n, k). a, s > 0 have shape (k,)."""
    offset = u - center
    r = offset.norm(dim=-1)
    # Across the ray dim - 1 directions are stretched by 1 + beta / (a + r) = (r + s) / (a + r).
    across = torch.log(r + s) - torch.log(a + r)
    along = torch.log(r * (r + 2 * a) + a * s) - 2 * torch.log(a + r)
    moved = u + ((s - a) / (a + r))[..., None] * offset
    return moved, (u.shape[-1] - 1) * across + along
