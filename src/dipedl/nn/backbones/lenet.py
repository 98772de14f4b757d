"""LeNet-5 as the paper's baselines use it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..checks import check_dropout
from .network import Backbone, Network, Shape, check_size, empty, initialise

__all__ = ["LeNet5"]


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
    >>> from dipedl.nn import LeNet5
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
