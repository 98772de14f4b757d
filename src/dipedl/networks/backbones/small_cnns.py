"""Plain convolutional networks for small images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import check_dropout, check_integer
from .network import (
    Backbone,
    Network,
    Shape,
    check_size,
    convolution,
    empty,
    he_initialise,
    initialise,
)

__all__ = ["FastCNN", "LeNet5", "SmallCNN"]


@dataclass(frozen=True)
class SmallCNN(Backbone):
    """Two convolutions and one hidden layer, for small grey images such as digits.

    Inputs are pixels in [0, 1].

    Parameters
    ----------
    channels : int, default=16
        Channels of the first convolution; the second has twice as many.
    n_features : int, default=64
        Width of the hidden layer, the features.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import SmallCNN
    >>> network = SmallCNN().build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    channels: int = 16
    n_features: int = 64

    def __post_init__(self) -> None:
        check_integer("channels", self.channels)
        check_integer("n_features", self.n_features)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the hidden layer."""
        check_size("SmallCNN", input_shape, 4)
        depth, height, width = input_shape
        c, flat = self.channels, 2 * self.channels * (height // 4) * (width // 4)
        body = nn.Sequential(
            empty(nn.Conv2d, depth, c, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            empty(nn.Conv2d, c, 2 * c, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            empty(nn.Linear, flat, self.n_features),
            nn.ReLU(),
        )
        head = empty(nn.Linear, self.n_features, n_outputs)
        # He's, not PyTorch's default, whose features separated OOD images less well
        return he_initialise(Network(input_shape, body, head, self.n_features), generator)


@dataclass(frozen=True)
class LeNet5(Backbone):
    """Two 5 x 5 convolutions and a hidden layer of 500, for 28 x 28 images of pixels in [0, 1].

    Parameters
    ----------
    dropout : float, default=0.5
        Share of the 500 features dropped before the last layer in training.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", table of architectures.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import LeNet5
    >>> network = LeNet5().build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 500]), torch.Size([2, 10]))
    """

    dropout: float = 0.5

    def __post_init__(self) -> None:
        check_dropout(self.dropout)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the 500 hidden units before dropout."""
        check_size("LeNet5", input_shape, 12)
        channels, height, width = input_shape
        flat = 50 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
        body = nn.Sequential(
            empty(nn.Conv2d, channels, 20, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            empty(nn.Conv2d, 20, 50, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            empty(nn.Linear, flat, 500),
            nn.ReLU(),
        )
        head = nn.Sequential(nn.Dropout(self.dropout), empty(nn.Linear, 500, n_outputs))
        return initialise(Network(input_shape, body, head, 500), generator)


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
    >>> from dipedl.networks import FastCNN
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
