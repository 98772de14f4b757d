"""A convolutional network for small colour images that trains in minutes on a CPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..checks import check_dropout, check_integer
from .network import Backbone, Network, Shape, check_size, empty, he_initialise, pooled_blocks

__all__ = ["PoolCNN"]


@dataclass(frozen=True)
class PoolCNN(Backbone):
    """Seven convolutions; each block pools before its second convolution.

    A 2 x 2 convolution of 24 channels, then three blocks of two 3 x 3 convolutions with batch
    normalisation and GELU; each block pools after its first one. The features are the maxima of the
    last channels over the image. Inputs are pixels in [0, 1].

    Parameters
    ----------
    width : int, default=64
        Channels of the first block.
    features : int, default=192
        Channels of the second and third block: the number of features.
    dropout : float, default=0.0
        Share of the features dropped before the last layer in training.

    Notes
    -----
    1.2 million parameters and 82 million multiplications for a 32 x 32 colour image with the
    defaults, about a seventh of what `ResNet18` takes. The layout is that of Jordan's airbench
    without its whitening layer and its optimiser.

    References
    ----------
    Jordan, "94 % on CIFAR-10 in 3.29 seconds on a single GPU", arXiv:2404.00498 (2024).

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import PoolCNN
    >>> network = PoolCNN().build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 192]), torch.Size([2, 10]))
    """

    width: int = 64
    features: int = 192
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_integer("width", self.width)
        check_integer("features", self.features)
        check_dropout(self.dropout)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        check_size("PoolCNN", input_shape, 9)
        body = nn.Sequential(
            _Centre(),
            empty(nn.Conv2d, input_shape[0], _PATCHES, 2),
            nn.GELU(),
            *pooled_blocks((_PATCHES, self.width, self.features, self.features), nn.BatchNorm2d),
        )
        last = empty(nn.Linear, self.features, n_outputs)
        head = nn.Sequential(nn.Dropout(self.dropout), last)
        return he_initialise(Network(input_shape, body, head, self.features), generator)


_PATCHES = 24


class _Centre(nn.Module):
    """Shift and scale pixels in [0, 1] to about zero mean and unit variance."""

    def forward(self, images: Tensor) -> Tensor:
        return (images - 0.5) * 4.0
