"""A convolutional network that trains fast on a CPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import check_dropout, check_integer
from .network import Backbone, Network, Shape, check_size, convolution, empty, initialise

__all__ = ["FastCNN"]


@dataclass(frozen=True)
class FastCNN(Backbone):
    """Six 3 x 3 convolutions with batch normalisation, and global average pooling.

    Two convolutions of `width` channels, two of twice as many on half the resolution, two of four
    times as many on a quarter of it. Inputs are pixels in [0, 1].

    Parameters
    ----------
    width : int, default=24
        Channels of the first two convolutions; there are four times as many features.
    dropout : float, default=0.0
        Share of the features dropped before the last layer in training.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import FastCNN
    >>> network = FastCNN().build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 96]), torch.Size([2, 10]))
    """

    width: int = 24
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_integer("width", self.width)
        check_dropout(self.dropout)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the pooled channels."""
        check_size("FastCNN", input_shape, 4)
        w = self.width
        body = nn.Sequential(
            *_convolution(input_shape[0], w),
            *_convolution(w, w),
            nn.MaxPool2d(2),
            *_convolution(w, 2 * w),
            *_convolution(2 * w, 2 * w),
            nn.MaxPool2d(2),
            *_convolution(2 * w, 4 * w),
            *_convolution(4 * w, 4 * w),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        head = nn.Sequential(nn.Dropout(self.dropout), empty(nn.Linear, 4 * w, n_outputs))
        return initialise(Network(input_shape, body, head, 4 * w), generator)


def _convolution(before: int, after: int) -> list[nn.Module]:
    return [convolution(before, after, 3), nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
