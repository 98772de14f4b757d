"""`ConvLin`, the network of R-EDL, Re-EDL, DAEDL and PostNet, and its analogue for spectra."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from ..checks import check_choice
from ..spectral_norm import spectrally_normalised
from .network import Network, Shape, check_settings, check_size, empty, initialise

__all__ = ["ConvLin", "ConvLin1d"]

#: Channels of the convolutions and width of the hidden layers.
WIDTH = 64


@dataclass(frozen=True)
class ConvLinBackbone:
    """Three convolutions and three hidden layers; a subclass gives the sizes of the kernels."""

    takes_pixels: ClassVar[bool] = True

    spectral_norm: bool = False
    features: str = "hidden"

    def __post_init__(self) -> None:
        check_settings(self)
        check_choice("features", self.features, ("conv", "hidden"))

    def _network(
        self,
        input_shape: Shape,
        n_outputs: int,
        generator: torch.Generator,
        kernel: tuple[int, int],
        pool: int | tuple[int, int],
        flat: int,
    ) -> Network:
        """The network of convolutions with `flat` outputs, from kernels and pools of given size."""
        body: list[nn.Module] = []
        for before in (input_shape[0], WIDTH, WIDTH):
            padding = kernel[0] // 2, kernel[1] // 2
            convolution = empty(nn.Conv2d, before, WIDTH, kernel, padding=padding)
            body += [convolution, nn.ReLU(), nn.MaxPool2d(pool)]
        body.append(nn.Flatten())
        hidden: list[nn.Module] = []
        for before in (flat, WIDTH, WIDTH):
            hidden += [empty(nn.Linear, before, WIDTH), nn.ReLU()]
        last = empty(nn.Linear, WIDTH, n_outputs)
        network = (
            Network(input_shape, nn.Sequential(*body), nn.Sequential(*hidden, last), flat)
            if self.features == "conv"
            else Network(input_shape, nn.Sequential(*body, *hidden), last, WIDTH)
        )
        initialise(network, generator)
        return spectrally_normalised(network, generator) if self.spectral_norm else network


@dataclass(frozen=True)
class ConvLin(ConvLinBackbone):
    """Three 5 x 5 convolutions of 64 channels and three hidden layers of 64.

    Inputs are pixels in [0, 1]. R-EDL, Re-EDL, DAEDL and PostNet use it on MNIST.

    Parameters
    ----------
    spectral_norm : bool, default=False
        Divide every layer by its spectral norm, as DAEDL does.
    features : {"hidden", "conv"}, default="hidden"
        The features: the last hidden layer (64), or the flattened output of the
        convolutions (576 for 28 x 28 images), on which DAEDL has its density.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import ConvLin
    >>> network = ConvLin(features="conv").build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 576]), torch.Size([2, 10]))
    """

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        check_size("ConvLin", input_shape, 8)
        flat = WIDTH * (input_shape[1] // 8) * (input_shape[2] // 8)
        return self._network(input_shape, n_outputs, generator, (5, 5), 2, flat)


_POOL = 4
_LEAST = _POOL**3


@dataclass(frozen=True)
class ConvLin1d(ConvLinBackbone):
    """Three convolutions of width 5 and 64 channels and three hidden layers of 64, for rows.

    The analogue of `ConvLin` for rows of numbers: every convolution is followed by ReLU and
    max-pooling by 4. DAEDL uses it on LAMOST.

    Parameters
    ----------
    spectral_norm : bool, default=False
        Divide every layer by its spectral norm, as DAEDL does.
    features : {"hidden", "conv"}, default="hidden"
        The features: the last hidden layer (64), or the flattened output of the
        convolutions (768 for 806 inputs), on which DAEDL has its density.

    Notes
    -----
    An input is read as one row of any finite numbers, for any `image_shape`.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import ConvLin1d
    >>> rows, generator = torch.zeros(2, 806), torch.Generator().manual_seed(0)
    >>> network = ConvLin1d(features="conv").build((1, 1, 806), 2, generator)
    >>> network.features(rows).shape, network(rows).shape
    (torch.Size([2, 768]), torch.Size([2, 2]))
    """

    takes_pixels: ClassVar[bool] = False

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        d = math.prod(input_shape)
        if d < _LEAST:
            raise ValueError(f"ConvLin1d needs rows of at least {_LEAST} numbers, got {d}; use MLP")
        flat = WIDTH * (d // _LEAST)
        return self._network((1, 1, d), n_outputs, generator, (1, 5), (1, _POOL), flat)
