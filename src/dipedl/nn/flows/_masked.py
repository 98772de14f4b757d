"""Masked linear layer with a staircase mask, stored and computed in panels."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import custom_bwd, custom_fwd
from torch.autograd.function import once_differentiable

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
