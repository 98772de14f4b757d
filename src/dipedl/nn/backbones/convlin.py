"""`ConvLin`, the network of R-EDL, Re-EDL, DAEDL and PostNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import nn

from .._checks import check_choice
from ..spectral_norm import spectrally_normalised
from ._network import Network, Shape, check_size, empty, initialise

__all__ = ["ConvLin"]

#: Channels of the convolutions and width of the hidden layers.
WIDTH = 64
#: Allowed layers of features.
LAYERS = ("conv", "hidden")


@dataclass(frozen=True)
class ConvLin:
    """Three 5 x 5 convolutions of 64 channels and three hidden layers of 64.

    R-EDL, Re-EDL, DAEDL and PostNet use it on MNIST.

    Parameters
    ----------
    spectral_norm : bool, default=False
        Divide every layer by its spectral norm, as DAEDL does.
    features : {"hidden", "conv"}, default="hidden"
        The features: the last hidden layer (64), or the flattened output of the
        convolutions (576 for 28 x 28 images), on which DAEDL has its density.

    Attributes
    ----------
    takes_pixels : bool
        True: inputs must lie in [0, 1].

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import ConvLin
    >>> network = ConvLin(features="conv").build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 576]), torch.Size([2, 10]))
    """

    takes_pixels: ClassVar[bool] = True

    spectral_norm: bool = False
    features: str = "hidden"

    def __post_init__(self) -> None:
        check_choice("features", self.features, LAYERS)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        check_size("ConvLin", input_shape, 8)
        channels, height, width = input_shape
        flat = WIDTH * (height // 8) * (width // 8)
        convolutions = [*_block(channels), *_block(WIDTH), *_block(WIDTH)]
        return conv_lin(self, input_shape, convolutions, flat, n_outputs, generator)


class ConvLinOptions(Protocol):
    """Options of `ConvLin` and `ConvLin1d`."""

    @property
    def spectral_norm(self) -> bool:
        """Whether every layer is divided by its spectral norm."""

    @property
    def features(self) -> str:
        """The layer of the features, one of `LAYERS`."""


def conv_lin(
    options: ConvLinOptions,
    input_shape: Shape,
    convolutions: list[nn.Module],
    flat: int,
    n_outputs: int,
    generator: torch.Generator,
) -> Network:
    """The given convolutions, with `flat` outputs, and three hidden layers."""
    body = [*convolutions, nn.Flatten()]
    hidden = [*_linear(flat), *_linear(WIDTH), *_linear(WIDTH)]
    last = empty(nn.Linear, WIDTH, n_outputs)
    network = (
        Network(input_shape, nn.Sequential(*body), nn.Sequential(*hidden, last), flat)
        if options.features == "conv"
        else Network(input_shape, nn.Sequential(*body, *hidden), last, WIDTH)
    )
    initialise(network, generator)
    return spectrally_normalised(network, generator) if options.spectral_norm else network


def _block(before: int) -> list[nn.Module]:
    return [empty(nn.Conv2d, before, WIDTH, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]


def _linear(before: int) -> list[nn.Module]:
    return [empty(nn.Linear, before, WIDTH), nn.ReLU()]
