"""Fully connected networks, for inputs of any kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import torch
from torch import nn

from ..checks import check_choice
from .network import Network, Shape, check_settings, empty, initialise

__all__ = ["MLP"]

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}


@dataclass(frozen=True)
class MLP:
    """Hidden layers, each followed by an activation; inputs may be any finite numbers.

    Parameters
    ----------
    hidden : tuple of int, default=(64, 64, 64)
        Widths of the hidden layers, at least one; the last gives the features.
    activation : {"relu", "tanh", "silu"}, default="relu"
        Activation.
    dropout : float, default=0.0
        Share of the units dropped after every hidden layer in training.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import MLP
    >>> network = MLP((32, 16)).build((1, 1, 2), 3, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(5, 2)).shape, network(torch.zeros(5, 2)).shape
    (torch.Size([5, 16]), torch.Size([5, 3]))
    """

    takes_pixels: ClassVar[bool] = False

    hidden: tuple[int, ...] = (64, 64, 64)
    activation: str = "relu"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_settings(self)
        check_choice("activation", self.activation, _ACTIVATIONS)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the last hidden layer, before dropout."""
        widths = (math.prod(input_shape), *self.hidden)
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [empty(nn.Linear, before, after), _ACTIVATIONS[self.activation]()]
            layers += [nn.Dropout(self.dropout)]
        *layers, last_dropout = layers
        head = nn.Sequential(last_dropout, empty(nn.Linear, widths[-1], n_outputs))
        return initialise(Network(input_shape, nn.Sequential(*layers), head, widths[-1]), generator)
