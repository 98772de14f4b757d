"""Wide residual networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..checks import check_dropout, check_integer
from ..spectral_norm import spectrally_normalised
from .network import (
    CIFAR_MEAN,
    CIFAR_SD,
    Backbone,
    Network,
    Normalise,
    Shape,
    check_normalisation,
    check_size,
    convolution,
    empty,
    initialise,
)

__all__ = ["WideResNet"]

_STEM = 16


@dataclass(frozen=True)
class WideResNet(Backbone):
    """WRN-28-10, the paper's network for CIFAR-10; other depths and widths are options.

    A 3 x 3 stem of 16 channels; three stages of ``(depth - 4) / 6`` pre-activation blocks with
    ``16 width``, ``32 width`` and ``64 width`` channels, the last two at half the resolution of the
    one before; batch normalisation, ReLU and the mean over the image give the features. Inputs are
    pixels in [0, 1].

    Parameters
    ----------
    depth : int, default=28
        Convolutions on the longest path, plus the last layer: 10, 16, 22, 28, 34, ...
    width : int, default=10
        Factor of the channels of 16, 32 and 64.
    dropout : float, default=0.3
        Share of the units dropped between the two convolutions of a block in training.
    spectral_norm : bool, default=False
        Divide every convolution and the last layer by its spectral norm, as the released code does;
        True is the paper's network.
    mean, sd : tuple of float, default=those of CIFAR-10 in the released code
        Means and deviations that standardise the pixels; one value, or one per channel.

    Notes
    -----
    The defaults have 36.5 million weights, 640 features, and 5.95 billion multiplications for a
    32 x 32 image; the original has 5.2 billion, since it takes the stride in the first convolution
    of a block and not, as the released code, in the second. For a GPU. Convolutions have no biases;
    weights start from PyTorch's defaults.

    References
    ----------
    Zagoruyko, Komodakis, "Wide Residual Networks", BMVC 2016.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import WideResNet
    >>> network = WideResNet(10, 1).build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    depth: int = 28
    width: int = 10
    dropout: float = 0.3
    spectral_norm: bool = False
    mean: tuple[float, ...] = CIFAR_MEAN
    sd: tuple[float, ...] = CIFAR_SD

    def __post_init__(self) -> None:
        check_integer("depth", self.depth)
        if self.depth < 10 or self.depth % 6 != 4:
            raise ValueError(
                f"depth must be 4 more than a multiple of 6, and at least 10, got {self.depth}; "
                "such as 10, 16, 22, 28"
            )
        check_integer("width", self.width)
        check_dropout(self.dropout)
        check_normalisation(self.mean, self.sd)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the mean channels of the last stage."""
        check_size("WideResNet", input_shape, 4)
        channels = [_STEM * self.width * factor for factor in (1, 2, 4)]
        body = nn.Sequential(
            Normalise(self.mean, self.sd, input_shape[0]),
            convolution(input_shape[0], _STEM, 3, 1),
            *self._stage(_STEM, channels[0], 1),
            *self._stage(channels[0], channels[1], 2),
            *self._stage(channels[1], channels[2], 2),
            nn.BatchNorm2d(channels[2]),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        head = empty(nn.Linear, channels[2], n_outputs)
        network = Network(input_shape, body, head, channels[2])
        initialise(network, generator)
        return spectrally_normalised(network, generator) if self.spectral_norm else network

    def _stage(self, before: int, after: int, stride: int) -> list[nn.Module]:
        rest = (self.depth - 4) // 6 - 1
        return [
            _Block(before, after, stride, self.dropout),
            *(_Block(after, after, 1, self.dropout) for _ in range(rest)),
        ]


class _Block(nn.Module):
    """Two convolutions, each after its normalisation, with a shortcut from the raw input."""

    def __init__(self, before: int, after: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.BatchNorm2d(before),
            nn.ReLU(),
            # the stride is in the second one, as released: 14 % more work than in the first
            convolution(before, after, 3, 1),
            nn.Dropout(dropout),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            convolution(after, after, 3, stride),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else convolution(before, after, 1, stride)

    def forward(self, X: Tensor) -> Tensor:
        outputs: Tensor = self.residual(X) + self.shortcut(X)
        return outputs
