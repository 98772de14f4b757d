"""VGG-16 with batch normalisation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

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
    empty,
    initialise,
)

__all__ = ["VGG16"]

#: Convolutions of a block, and their channels in units of `width`; each block ends with pooling.
_BLOCKS = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))
_HIDDEN = 512


@dataclass(frozen=True)
class VGG16(Backbone):
    """Thirteen 3 x 3 convolutions with batch normalisation and a classifier of three layers.

    R-EDL, Re-EDL and DAEDL use it on CIFAR-10. The features are the output of the convolutions,
    512 for a 32 x 32 image, on which DAEDL has its density. Inputs are pixels in [0, 1].

    Parameters
    ----------
    spectral_norm : bool, default=False
        Divide every layer by its spectral norm, as DAEDL does.
    dropout : float, default=0.5
        Share of the inputs of each hidden layer of the classifier dropped in training.
    width : int, default=64
        Channels of the first block; the last two have eight times as many.
    mean, sd : tuple of float, default=those of CIFAR-10 in the released code
        Means and deviations that standardise the pixels; one value, or one per channel.

    Notes
    -----
    15.3 million weights and 0.31 billion multiplications for a 32 x 32 image. Convolutions start
    from He's normal weights by fan-out and zero biases, linear layers from PyTorch's defaults.

    References
    ----------
    Simonyan, Zisserman, "Very deep convolutional networks for large-scale image recognition",
    ICLR 2015, configuration D.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import VGG16
    >>> network = VGG16(width=4).build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 32]), torch.Size([2, 10]))
    """

    spectral_norm: bool = False
    dropout: float = 0.5
    width: int = 64
    mean: tuple[float, ...] = CIFAR_MEAN
    sd: tuple[float, ...] = CIFAR_SD

    def __post_init__(self) -> None:
        check_dropout(self.dropout)
        check_integer("width", self.width)
        check_normalisation(self.mean, self.sd)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        check_size("VGG16", input_shape, 32)
        channels, height, width = input_shape
        layers: list[nn.Module] = [Normalise(self.mean, self.sd, channels)]
        for count, factor in _BLOCKS:
            layers += _block(channels, factor * self.width, count)
            channels = factor * self.width
        flat = channels * (height // 32) * (width // 32)
        head = nn.Sequential(
            nn.Dropout(self.dropout),
            empty(nn.Linear, flat, _HIDDEN),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            empty(nn.Linear, _HIDDEN, _HIDDEN),
            nn.ReLU(),
            empty(nn.Linear, _HIDDEN, n_outputs),
        )
        network = Network(input_shape, nn.Sequential(*layers, nn.Flatten()), head, flat)
        initialise(network, generator)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(
                    layer.weight, mode="fan_out", nonlinearity="relu", generator=generator
                )
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        return spectrally_normalised(network, generator) if self.spectral_norm else network


def _block(before: int, after: int, count: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for i in range(count):
        convolution = empty(nn.Conv2d, before if i == 0 else after, after, 3, padding=1)
        layers += [convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
    return [*layers, nn.MaxPool2d(2)]
