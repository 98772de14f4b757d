"""`SmallCNN`, a small convolutional network that trains in seconds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import check_integer
from .network import Backbone, Network, Shape, check_size, empty, he_initialise

__all__ = ["SmallCNN"]


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
    >>> from dipedl.nn import SmallCNN
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
