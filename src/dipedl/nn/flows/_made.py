"""MADE: a network whose outputs for feature i depend only on the features before i."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._masked import MaskedLinear, spread_degrees

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
