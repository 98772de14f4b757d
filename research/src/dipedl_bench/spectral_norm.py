"""Spectral normalisation of every layer."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils import parametrize

__all__ = ["add_spectral_norm", "remove_spectral_norm"]

_WARM_UP = 15
_EPS = 1e-12

Module = TypeVar("Module", bound=nn.Module)


def add_spectral_norm(module: Module, generator: torch.Generator) -> Module:
    """Divide every convolution and linear layer by its spectral norm, in place.

    The weight of a layer, as a matrix (outputs, inputs of all taps), is divided by its largest
    singular value sigma, which one power iteration per training step follows.

    Parameters
    ----------
    module : torch.nn.Module
        Its ``Conv2d`` and ``Linear`` layers are changed.
    generator : torch.Generator
        Source of the initial singular vectors.

    Returns
    -------
    torch.nn.Module
        The same module.

    Notes
    -----
    It is that of the matrix, not the convolution, whose norm can be up to the root of the number of
    taps larger; and batch normalisation scales freely after it.

    References
    ----------
    Miyato, Kataoka, Koyama, Yoshida, "Spectral Normalization for Generative Adversarial Networks",
    ICLR 2018, Algorithm 1.

    Examples
    --------
    >>> import torch
    >>> from dipedl_bench.spectral_norm import add_spectral_norm
    >>> layer = add_spectral_norm(torch.nn.Linear(5, 3), torch.Generator().manual_seed(0))
    >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 2)
    1.0
    """
    for layer in list(module.modules()):
        if isinstance(layer, nn.Conv2d | nn.Linear):
            parametrize.register_parametrization(layer, "weight", _Norm(layer.weight, generator))
    return module


def remove_spectral_norm(module: Module) -> Module:
    """Put plain weights in place of normalised ones, and the module into eval mode.

    Parameters
    ----------
    module : torch.nn.Module
        As `add_spectral_norm` left it; changed.

    Returns
    -------
    torch.nn.Module
        The same module; its answers are those of before in eval mode.

    Examples
    --------
    >>> import torch
    >>> from dipedl_bench.spectral_norm import remove_spectral_norm, add_spectral_norm
    >>> layer = add_spectral_norm(torch.nn.Linear(5, 3), torch.Generator().manual_seed(0))
    >>> sorted(remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    module.eval()
    for layer in list(module.modules()):
        if parametrize.is_parametrized(layer, "weight"):
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=True)
    return module


class _Norm(nn.Module):
    """Power iteration with its own singular vectors u (outputs,) and v (inputs,)."""

    u: Tensor
    v: Tensor

    def __init__(self, weight: Tensor, generator: torch.Generator) -> None:
        super().__init__()
        matrix = weight.detach().flatten(1)
        self.register_buffer("u", _direction(len(matrix), generator, matrix))
        self.register_buffer("v", _direction(matrix.shape[1], generator, matrix))
        self._iterate(matrix, _WARM_UP)

    @torch.no_grad()
    def _iterate(self, matrix: Tensor, steps: int) -> None:
        for _ in range(steps):
            self.u.copy_(normalize(matrix @ self.v, dim=0, eps=_EPS))
            self.v.copy_(normalize(matrix.T @ self.u, dim=0, eps=_EPS))

    def forward(self, weight: Tensor) -> Tensor:
        matrix = weight.flatten(1)
        # float32 also under autocast: a power iteration in half precision does not converge
        with torch.autocast(weight.device.type, enabled=False):
            if self.training:
                self._iterate(matrix.detach(), 1)
            sigma = torch.dot(self.u.clone(), matrix @ self.v.clone())
            return weight / sigma


def _direction(size: int, generator: torch.Generator, like: Tensor) -> Tensor:
    drawn = torch.randn(size, generator=generator, device=generator.device, dtype=torch.float32)
    return normalize(drawn.to(like), dim=0, eps=_EPS)
