"""`BranchCNN`: convolutions of several widths over a row of numbers, such as a spectrum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from .network import Network, Shape, check_settings, empty, initialise

__all__ = ["BranchCNN"]

_POOL = 3
_DEPTH = 3


@dataclass(frozen=True)
class BranchCNN:
    """Branches of three convolutions, one branch per kernel width, and dense layers.

    Every convolution is followed by batch normalisation, ReLU and max-pooling by 3; the branches
    are joined and go through dense layers with batch normalisation and ReLU. It is the network of
    the paper on LAMOST: 678,658 parameters for 806 inputs and 2 classes.

    Parameters
    ----------
    kernels : tuple of int, default=(3, 5, 7, 9, 11)
        Odd kernel widths, one per branch.
    channels : int, default=32
        Channels of every convolution.
    hidden : tuple of int, default=(128, 64, 32)
        Widths of the dense layers, at least one; the last gives the features.
    dropout : float, default=0.0
        Share of the units dropped after every dense layer in training.

    Notes
    -----
    An input is read as one row of any finite numbers, for any `image_shape`. The convolutions are
    two-dimensional of height one: with channels last they are faster on a CPU than PyTorch's
    one-dimensional ones. Max-pooling commutes with ReLU, so pooling comes first.

    References
    ----------
    Carlotti, Gligić, Farahi, the classifier on LAMOST; after a three-class network for LAMOST DR9
    in Keras, which has ReLU before normalisation and no biases in the dense layers.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import BranchCNN
    >>> network = BranchCNN().build((1, 1, 806), 2, torch.Generator().manual_seed(0)).eval()
    >>> network.features(torch.zeros(4, 806)).shape, network(torch.zeros(4, 806)).shape
    (torch.Size([4, 32]), torch.Size([4, 2]))
    """

    takes_pixels: ClassVar[bool] = False

    kernels: tuple[int, ...] = (3, 5, 7, 9, 11)
    channels: int = 32
    hidden: tuple[int, ...] = (128, 64, 32)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise ValueError(
                "kernels must hold odd integers: an even kernel shifts its output by half a "
                f"number; got {self.kernels!r}"
            )

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the last dense layer, before dropout."""
        d = math.prod(input_shape)
        length = d // _POOL**_DEPTH
        if length < 1:
            raise ValueError(
                f"BranchCNN needs rows of at least {_POOL**_DEPTH} numbers, got {d}; use MLP"
            )
        branches = [_branch(kernel, self.channels) for kernel in self.kernels]
        widths = (len(branches) * self.channels * length, *self.hidden)
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [empty(nn.Linear, before, after), nn.BatchNorm1d(after)]
            layers += [nn.ReLU(), nn.Dropout(self.dropout)]
        *dense, last_dropout = layers
        body = nn.Sequential(_Branches(branches), nn.Flatten(), *dense)
        head = nn.Sequential(last_dropout, empty(nn.Linear, widths[-1], n_outputs))
        return initialise(Network((1, 1, d), body, head, widths[-1]), generator)


class _Branches(nn.Module):
    """Outputs of every branch for rows (n, 1, 1, d), joined along the channels."""

    def __init__(self, branches: list[nn.Sequential]) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, rows: Tensor) -> Tensor:
        return torch.cat([branch(rows) for branch in self.branches], dim=1)


def _branch(kernel: int, channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before in [1] + [channels] * (_DEPTH - 1):
        layers += [
            empty(nn.Conv2d, before, channels, (1, kernel), padding=(0, kernel // 2), bias=False),
            nn.BatchNorm2d(channels),
            # before ReLU, which then has a third of the work; the result is the same
            nn.MaxPool2d((1, _POOL)),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers)
