"""Monte Carlo dropout with one pattern of dropped units per pass, the same for all rows."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from ...networks.backbones.network import Network

_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_PLAIN = (nn.Dropout, *_CHANNELS)


class _Pattern(nn.Module):
    """Dropout whose pattern is the same for every row, drawn from a given generator."""

    def __init__(self, layer: _DropoutNd, generator: torch.Generator) -> None:
        super().__init__()
        self.p, self.generator = layer.p, generator
        self.whole_channels = isinstance(layer, _CHANNELS)

    def forward(self, x: Tensor) -> Tensor:
        shape = [1, *x.shape[1:]]
        if self.whole_channels:
            shape[2:] = [1] * (x.ndim - 2)
        draws = torch.rand(shape, generator=self.generator, device="cpu", dtype=torch.float32)
        kept = draws >= self.p
        return x * (kept.to(x.device, x.dtype) / (1 - self.p))


def check_dropout(network: Network) -> None:
    """Raise ValueError unless some layer drops units, by a dropout supported here."""
    layers = [layer for layer in network.modules() if isinstance(layer, _DropoutNd)]
    odd = sorted({type(layer).__name__ for layer in layers if not isinstance(layer, _PLAIN)})
    if odd:
        raise ValueError(
            f"backbone has layers {odd}; only Dropout, Dropout1d, Dropout2d and Dropout3d are "
            "sampled: use those"
        )
    shares = sorted({layer.p for layer in layers})
    if not shares or not 0 < shares[-1] < 1:
        raise ValueError(
            "backbone must have a dropout strictly between 0 and 1, got "
            f"{shares or 'no Dropout layer'}; pass one that drops units, such as "
            "LeNet5(dropout=0.5) or MLP(dropout=0.5)"
        )


def sampled_outputs(network: Network, X: Tensor, seeds: list[int]) -> Tensor:
    """Outputs (m, n, k) for rows X (n, d) of the m networks, one per seed.

    Layers before the first dropout are computed once.
    """
    generator = torch.Generator("cpu")
    before, after = _around_dropout(_with_dropout(network, generator))
    shared = before(X)
    outputs = []
    for seed in seeds:
        generator.manual_seed(seed)
        outputs.append(after(shared))
    return torch.stack(outputs)


def _around_dropout(network: Network) -> tuple[Callable[[Tensor], Tensor], nn.Module]:
    """Return a function for the input of the part with the first dropout, and that part."""
    if not _drops(network.body):
        return network.features, network.head
    if type(network).features is not Network.features:
        return nn.Identity(), network
    parts = list(network.body) if isinstance(network.body, nn.Sequential) else [network.body]
    first = next(i for i, part in enumerate(parts) if _drops(part))
    before = nn.Sequential(nn.Unflatten(1, network.input_shape), *parts[:first])
    return before, nn.Sequential(*parts[first:], network.head)


def _drops(part: nn.Module) -> bool:
    return any(isinstance(layer, _Pattern) for layer in part.modules())


def _with_dropout(network: Network, generator: torch.Generator) -> Network:
    """A copy that shares the weights; its dropouts draw from `generator`, in eval mode too."""
    shared = {id(t): t for t in chain(network.parameters(), network.buffers())}
    copy = deepcopy(network, shared)
    for parent in list(copy.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, _PLAIN) and layer.p > 0:
                setattr(parent, name, _Pattern(layer, generator))
    return copy
