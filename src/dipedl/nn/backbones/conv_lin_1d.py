"""`ConvLin1d`, DAEDL's network for spectra."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from .._checks import check_choice
from ._network import Network, Shape, empty
from .convlin import LAYERS, WIDTH, conv_lin

__all__ = ["ConvLin1d"]

_POOL = 4
_LEAST = _POOL**3


@dataclass(frozen=True)
class ConvLin1d:
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

    Attributes
    ----------
    takes_pixels : bool
        False: inputs may be any finite numbers.

    Notes
    -----
    An input is read as one row of numbers, for any `image_shape`.

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import ConvLin1d
    >>> rows, generator = torch.zeros(2, 806), torch.Generator().manual_seed(0)
    >>> network = ConvLin1d(features="conv").build((1, 1, 806), 2, generator)
    >>> network.features(rows).shape, network(rows).shape
    (torch.Size([2, 768]), torch.Size([2, 2]))
    """

    takes_pixels: ClassVar[bool] = False

    spectral_norm: bool = False
    features: str = "hidden"

    def __post_init__(self) -> None:
        check_choice("features", self.features, LAYERS)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        d = math.prod(input_shape)
        if d < _LEAST:
            raise ValueError(f"ConvLin1d needs rows of at least {_LEAST} numbers, got {d}; use MLP")
        return conv_lin(
            self,
            (1, 1, d),
            [*_block(1), *_block(WIDTH), *_block(WIDTH)],
            WIDTH * (d // _LEAST),
            n_outputs,
            generator,
        )


def _block(before: int) -> list[nn.Module]:
    convolution = empty(nn.Conv2d, before, WIDTH, (1, 5), padding=(0, 2))
    return [convolution, nn.ReLU(), nn.MaxPool2d((1, _POOL))]
