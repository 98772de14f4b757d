"""Masked autoregressive flows: settings, transformations, and MADE with its masked layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable
from torch.distributions import Transform, constraints
from torch.nn import functional as F
from zuko.distributions import DiagNormal
from zuko.flows import Flow, UnconditionalDistribution
from zuko.lazy import LazyTransform
from zuko.transforms import (
    AutoregressiveTransform,
    DependentTransform,
    MonotonicAffineTransform,
    PermutationTransform,
)

from ...maths.arrays import check_flag, check_integer

__all__ = ["MaskedAutoregressive"]


@dataclass(frozen=True)
class MaskedAutoregressive:
    """Affine masked autoregressive flow (MAF) over a standard normal.

    Each transformation is: the features in reversed order, ``y_i = exp(a_i) x_i + b_i`` with a_i
    and b_i from a MADE of the features before i, and optional batch normalisation.

    Parameters
    ----------
    transforms : int, default=5
        Number of transformations.
    hidden : tuple of int, default=(512, 512)
        Widths of the hidden layers of each MADE.
    residual : bool, default=False
        Whether each width stands for a residual block of two layers; then all must be the same.
    batch_norm : bool, default=False
        Batch normalisation within the MADEs.
    between_batch_norm : bool, default=False
        Batch normalisation after each transformation; its log-determinant is included.
    panels : int, optional
        Row panels in which masked matrices are stored: more panels skip more zeros
        but need more calls. None suits a CPU (up to 4); 1 suits a GPU.

    Notes
    -----
    With batch normalisation the training density of a row depends on its batch; the trained flow
    uses running statistics and is a density.

    Hidden degrees are spread over the features, so that a layer narrower than the features still
    sees them all; assigned one by one (nflows), a layer of 512 sees only the first 512 of 784.

    References
    ----------
    Papamakarios, Pavlakou, Murray, "Masked autoregressive flow for density estimation", NeurIPS
    2017, eqs. 3-5; batch normalisation: its appendix B.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import MaskedAutoregressive
    >>> maf = MaskedAutoregressive(transforms=2, hidden=(16,))
    >>> flow = maf.build(3, torch.Generator().manual_seed(0))
    >>> flow().log_prob(torch.zeros(4, 3)).shape
    torch.Size([4])
    """

    transforms: int = 5
    hidden: tuple[int, ...] = (512, 512)
    residual: bool = False
    batch_norm: bool = False
    between_batch_norm: bool = False
    panels: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be built."""
        check_integer("transforms", self.transforms)
        for name in ("residual", "batch_norm", "between_batch_norm"):
            check_flag(name, getattr(self, name))
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise ValueError(f"hidden must be a tuple of one width or more, got {self.hidden!r}")
        for width in self.hidden:
            check_integer("each width of hidden", width)
        if self.residual and len(set(self.hidden)) > 1:
            raise ValueError(
                f"hidden must repeat one width when residual=True, got {self.hidden!r}"
            )
        if self.panels is not None:
            check_integer("panels", self.panels)

    @classmethod
    def paper(cls) -> Self:
        """The flow of the DIP-EDL paper: 10 transformations of 20 residual blocks of 1024.

        445 million weights on 28 x 28 images. Differences, none of which changes the family: spread
        degrees, and a soft-clipped exponential for the scale where nflows has a softplus.
        """
        return cls(10, (1024,) * 20, True, True, True, panels=1)

    def build(self, n_features: int, generator: torch.Generator) -> Flow:
        """The flow on rows of `n_features`, its parameters drawn from `generator`."""
        layers = [self._layers(n_features, generator) for _ in range(self.transforms)]
        normal = UnconditionalDistribution(
            DiagNormal, loc=torch.zeros(n_features), scale=torch.ones(n_features), buffer=True
        )
        return Flow([layer for group in layers for layer in group], normal)

    def _layers(self, n_features: int, generator: torch.Generator) -> list[LazyTransform]:
        made = MADE(
            n_features,
            self.hidden,
            residual=self.residual,
            batch_norm=self.batch_norm,
            panels=self.panels,
        )
        made.reset_parameters(generator)
        order = Order(torch.arange(n_features).flip(0))
        normalise = [Normalise(n_features)] if self.between_batch_norm else []
        return [order, Autoregressive(made, n_features), *normalise]


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
    """Permutation by `index_select`, whose gradient takes a quarter of the time."""

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


#: Bound of the initial weights of a residual block's second layer: blocks start as the identity.
_SMALL = 1e-3


class MADE(nn.Module):
    """Shift and unconstrained log-scale of each feature, from the features before it.

    Plain: ``[linear, batch norm, ReLU]`` for each width. Residual: one linear layer, then for each
    width a block ``h + linear(ReLU(BN(linear(ReLU(BN(h))))))``. Batch norm is optional. The widths
    `hidden` of residual blocks are all the same.

    References
    ----------
    Germain, Gregor, Murray, Larochelle, "MADE: masked autoencoder for distribution estimation",
    ICML 2015; Papamakarios, Pavlakou, Murray, NeurIPS 2017.
    """

    def __init__(
        self,
        n_features: int,
        hidden: Sequence[int],
        *,
        residual: bool = False,
        batch_norm: bool = False,
        panels: int | None = None,
    ) -> None:
        super().__init__()
        features = torch.arange(1, n_features + 1)
        degrees = [spread_degrees(width, n_features) for width in hidden]
        if residual:
            first = MaskedLinear(features, degrees[0], panels=panels)
            blocks = [_Block(d, batch_norm, panels) for d in degrees]
            self.body = nn.Sequential(first, *blocks)
        else:
            pairs = zip([features, *degrees], degrees, strict=False)
            self.body = nn.Sequential(*[_Layer(a, b, batch_norm, panels) for a, b in pairs])
        self.shift = MaskedLinear(degrees[-1], features, strict=True, panels=panels)
        self.log_scale = MaskedLinear(degrees[-1], features, strict=True, panels=panels)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x)
        return self.shift(h), self.log_scale(h)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw the initial weights; until then they are zero."""
        for module in self.modules():
            if isinstance(module, MaskedLinear):
                module.reset_parameters(generator)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses running statistics for a batch of one row."""

    def forward(self, x: Tensor) -> Tensor:
        if self.training and len(x) > 1:
            return super().forward(x)
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def _norm(width: int, batch_norm: bool) -> nn.Module:
    return BatchNorm(width, eps=1e-3) if batch_norm else nn.Identity()


class _Layer(nn.Module):
    def __init__(
        self, in_degrees: Tensor, out_degrees: Tensor, batch_norm: bool, panels: int | None
    ) -> None:
        super().__init__()
        self.linear = MaskedLinear(in_degrees, out_degrees, panels=panels)
        self.norm = _norm(len(out_degrees), batch_norm)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.linear(x)))


class _Block(nn.Module):
    def __init__(self, degrees: Tensor, batch_norm: bool, panels: int | None) -> None:
        super().__init__()
        self.first = MaskedLinear(degrees, degrees, panels=panels)
        self.second = MaskedLinear(degrees, degrees, panels=panels, bound=_SMALL)
        self.norms = nn.ModuleList(_norm(len(degrees), batch_norm) for _ in range(2))

    def forward(self, h: Tensor) -> Tensor:
        inner = self.first(F.relu(self.norms[0](h)))
        out: Tensor = h + self.second(F.relu(self.norms[1](inner)))
        return out


#: Smallest number of rows per panel; smaller products cost more than the saved zeros gain.
_PANEL = 128
_MAX_PANELS = 4


def spread_degrees(n_units: int, n_features: int) -> Tensor:
    """Ascending degrees of `n_units` hidden units, spread over ``1 .. n_features - 1``.

    A unit of degree m sees the first m features. Degrees are spread, so that a layer narrower than
    the features still sees all of them.
    """
    return 1 + torch.arange(n_units) * max(n_features - 1, 1) // n_units


class MaskedLinear(nn.Module):
    """``y = x (W o M)^T + b`` with ``M_ij = 1`` where unit i may see input j.

    Both degrees ascend, so the mask is a staircase. The rows are stored as panels, each as wide as
    its last row sees: with 4 panels 5/8 of the weights, products and optimiser work of the full
    matrix. Entries of a panel beyond the stairs are zero and stay zero, since
    their gradient is zero: the forward pass applies no mask.

    A unit sees inputs of degree below its own (`strict`), or up to its own. `panels` None: 4, or
    fewer where they would have less than 128 rows. Weights and biases are zero until
    `reset_parameters` draws them from ``U(-bound, bound)``; `bound` None: ``1 / sqrt(n_in)``.
    """

    def __init__(
        self,
        in_degrees: Tensor,
        out_degrees: Tensor,
        *,
        strict: bool = False,
        panels: int | None = None,
        bound: float | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = len(in_degrees), len(out_degrees)
        last = out_degrees - 1 if strict else out_degrees
        seen = torch.searchsorted(in_degrees, last, right=True)
        if panels is None:
            panels = min(max(self.out_features // _PANEL, 1), _MAX_PANELS)
        pieces = seen.chunk(panels)
        self.weights = nn.ParameterList(torch.zeros(len(p), int(p[-1])) for p in pieces)
        self.bias = nn.Parameter(torch.zeros(self.out_features))
        self.bound = 1 / math.sqrt(self.in_features) if bound is None else bound
        for i, piece in enumerate(pieces):
            columns = torch.arange(int(piece[0]), int(piece[-1]))
            stairs = (columns < piece[:, None]).to(self.bias.dtype)
            self.register_buffer(f"stairs_{i}", stairs, persistent=False)

    def reset_parameters(self, generator: torch.Generator) -> None:
        nn.init.uniform_(self.bias, -self.bound, self.bound, generator)
        for weight, stairs in zip(self.weights, self._stairs, strict=True):
            nn.init.uniform_(weight, -self.bound, self.bound, generator)
            with torch.no_grad():
                weight[:, weight.shape[1] - stairs.shape[1] :].mul_(stairs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = _Staircase.apply(x, self.bias, *self._stairs, *self.weights)  # type: ignore[no-untyped-call]
        return out

    def dense(self) -> Tensor:
        """The weight matrix (n_out, n_in) with its zeros."""
        rows = [nn.functional.pad(w, (0, self.in_features - w.shape[1])) for w in self.weights]
        return torch.cat(rows)

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, panels={len(self.weights)}"

    @property
    def _stairs(self) -> list[Tensor]:
        return [self.get_buffer(f"stairs_{i}") for i in range(len(self.weights))]


class _Staircase(torch.autograd.Function):
    """The product, panel by panel; gradients are written in place, masked at the stairs only.

    Under autocast it computes in float32: log-densities of many features need it.
    """

    @staticmethod
    @custom_fwd(device_type="cuda", cast_inputs=torch.float32)  # type: ignore[untyped-decorator]
    def forward(ctx: Any, x: Tensor, bias: Tensor, *parts: Tensor) -> Tensor:
        ctx.save_for_backward(x, *parts)
        weights = parts[len(parts) // 2 :]
        out = x.new_empty(len(x), len(bias))
        sizes = [len(w) for w in weights]
        rows = torch.split(out, sizes, 1), torch.split(bias, sizes)
        for y, b, w in zip(*rows, weights, strict=True):
            torch.addmm(b, x[:, : w.shape[1]], w.t(), out=y)
        return out

    @staticmethod
    @once_differentiable
    @custom_bwd(device_type="cuda")  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        (grad,) = grads
        x, *parts = ctx.saved_tensors
        panels = len(parts) // 2
        grad_x = torch.zeros_like(x) if ctx.needs_input_grad[0] else None
        sizes = [len(s) for s in parts[:panels]]
        rows = torch.split(grad, sizes, 1), parts[:panels], parts[panels:]
        grad_weights = []
        for g, s, w in zip(*rows, strict=True):
            width = w.shape[1]
            if grad_x is not None:
                grad_x[:, :width].addmm_(g, w)
            grad_weights.append(g.t() @ x[:, :width])
            grad_weights[-1][:, width - s.shape[1] :].mul_(s)
        return grad_x, grad.sum(0), *[None] * panels, *grad_weights
