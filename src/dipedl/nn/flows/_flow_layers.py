"""Lazy transformations of a masked autoregressive flow, for zuko."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Transform, constraints
from torch.nn import functional as F
from zuko.lazy import LazyTransform
from zuko.transforms import (
    AutoregressiveTransform,
    DependentTransform,
    MonotonicAffineTransform,
    PermutationTransform,
)

from ._made import MADE

_UNIT = math.log(math.expm1(1.0))  # softplus gives 1


class Autoregressive(LazyTransform):
    """``y_i = exp(a_i) x_i + b_i`` with a, b from a MADE of the features before i.

    The log-scale is soft-clipped to ``|a| < log 1000``. One pass from x to y, d passes back.
    """

    def __init__(self, made: MADE, n_features: int) -> None:
        super().__init__()
        self.made = made
        self.n_features = n_features

    def forward(self, c: Any = None) -> Transform:
        return AutoregressiveTransform(self._meta, self.n_features)  # type: ignore[no-any-return]

    def _meta(self, x: Tensor) -> Transform:
        return DependentTransform(MonotonicAffineTransform(*self.made(x)), 1)  # type: ignore[no-any-return]


class Order(LazyTransform):
    """Permutation of the features."""

    def __init__(self, order: Tensor) -> None:
        super().__init__()
        self.register_buffer("order", order)
        self.register_buffer("back", order.argsort())

    order: Tensor
    back: Tensor

    def forward(self, c: Any = None) -> Transform:
        return _Reorder(self.order, self.back)


class Normalise(LazyTransform):
    """Batch normalisation between transformations; its log-determinant is included.

    ``y = w (x - m) / sqrt(v + eps) + b`` with w > 0, and m, v of the batch in training (for one
    row: running statistics), else running statistics.
    """

    def __init__(self, n_features: int, momentum: float = 0.1, eps: float = 1e-5) -> None:
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.raw_weight = nn.Parameter(torch.full((n_features,), _UNIT))
        self.bias = nn.Parameter(torch.zeros(n_features))
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("var", torch.ones(n_features))

    mean: Tensor
    var: Tensor

    def forward(self, c: Any = None) -> Transform:
        return _BatchNormTransform(self)

    def coefficients(self, x: Tensor | None) -> tuple[Tensor, Tensor]:
        """Shift and log-scale, each (d,), for a batch x (n, d), or for the running statistics."""
        mean, var = self.mean, self.var
        if self.training and x is not None and len(x) > 1:
            var, mean = torch.var_mean(x, dim=0)
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.var.lerp_(var, self.momentum)
        log_scale = F.softplus(self.raw_weight).log() - 0.5 * (var + self.eps).log()
        return self.bias - mean * log_scale.exp(), log_scale


class _Reorder(PermutationTransform):
    """The same permutation by `index_select`, whose gradient takes a quarter of the time."""

    def __init__(self, order: Tensor, back: Tensor) -> None:
        super().__init__(order)
        self.back = back

    def _call(self, x: Tensor) -> Tensor:
        return x.index_select(-1, self.order)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.index_select(-1, self.back)


class _BatchNormTransform(Transform):
    domain = constraints.real_vector
    codomain = constraints.real_vector
    bijective = True

    def __init__(self, layer: Normalise) -> None:
        super().__init__()
        self.layer = layer

    def call_and_ladj(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self.layer.coefficients(x)
        return x * log_scale.exp() + shift, log_scale.sum().expand(x.shape[:-1])

    def _call(self, x: Tensor) -> Tensor:
        return self.call_and_ladj(x)[0]

    def _inverse(self, y: Tensor) -> Tensor:
        shift, log_scale = self.layer.coefficients(None)
        return (y - shift) / log_scale.exp()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.call_and_ladj(x)[1]
