"""`ConvLin1d`, DAEDL's network for spectra."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch

from ._network import Network, Shape
from .convlin import WIDTH, ConvLinBackbone

__all__ = ["ConvLin1d"]

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
    >>> from dipedl.nn import ConvLin1d
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
