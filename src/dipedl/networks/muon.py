"""Muon for the kernels of convolutions, SGD for all other parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy

__all__ = []

#: Length of a kernel's step at a learning rate of 1, as a share of the kernel's norm.
_SHARE = 0.2
_MOMENTUM = 0.6
#: Newton-Schulz iteration ``a X + b X X'X + c X (X'X)^2`` of Muon, and how often.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 3
_TINY = 1e-7


class Muon(torch.optim.SGD):
    """SGD in which a kernel steps along the orthogonal matrix nearest to its momentum.

    A kernel is a matrix (first dimension, all others). Its norm is set to the square root of its
    number of rows before each step. The step is ``0.2 lr`` of that, times ``sqrt(columns / rows)``
    where there are fewer columns than rows. Kernels have a Nesterov momentum of 0.6 and no weight
    decay.

    References
    ----------
    Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), with the
    settings of airbench94_muon by the same author.
    """

    def __init__(
        self, parameters: Iterable[Tensor], kernels: Iterable[Tensor], **options: Any
    ) -> None:
        super().__init__(parameters, **options)
        self._kernels = {id(kernel) for kernel in kernels}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; gradients of kernels are used up."""
        for group in self.param_groups:
            for kernel in group["params"]:
                if id(kernel) in self._kernels and kernel.grad is not None:
                    self._turn(kernel, group["lr"])
                    kernel.grad = None
        super().step(closure)

    def _turn(self, kernel: Tensor, lr: float) -> None:
        state = self.state[kernel]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(kernel)
        momentum = state["momentum_buffer"].mul_(_MOMENTUM).add_(kernel.grad)
        direction = orthogonal((kernel.grad + _MOMENTUM * momentum).flatten(1))
        kernel.mul_(len(kernel) ** 0.5 / kernel.norm().clamp(min=_TINY))
        kernel.sub_(direction.reshape(kernel.shape), alpha=_SHARE * lr)


def kernels(module: nn.Module) -> list[nn.Parameter]:
    """Kernels to train of the convolutions of a module, at least one.

    The scale of a layer with weight normalisation is no matrix.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, _ConvNd)]
    named = [item for layer in layers for item in layer.named_parameters()]
    weights = [p for name, p in named if p.requires_grad and name != "bias"]
    matrices = [p for p in weights if is_lazy(p) or (p.ndim > 2 and p.numel() > max(p.shape))]
    if not matrices:
        raise ValueError(
            'optimizer="muon" is for the kernels of convolutions, and '
            f'{type(module).__name__} has none to train; use "sgd" or "adam"'
        )
    return matrices


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly ``U V'`` of the singular value decomposition: singular values are about 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = (matrix.T if tall else matrix) / matrix.norm().clamp(min=_TINY)
    for _ in range(_ITERATIONS):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.T if tall else x
