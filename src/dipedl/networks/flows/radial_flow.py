"""Radial normalising flows, one for each class, evaluated together."""

from __future__ import annotations

from math import log, pi

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["RadialFlow"]


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

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import RadialFlow
    >>> flow = RadialFlow(3, dim=2, generator=torch.Generator().manual_seed(0))
    >>> flow(torch.zeros(5, 2)).shape
    torch.Size([5, 3])
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
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value!r}")
        bound = dim**-0.5

        def draw(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))

        self.center = draw(n_layers, n_classes, dim)
        self.raw_scale = draw(n_layers, n_classes)
        self.raw_slope = draw(n_layers, n_classes)

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
