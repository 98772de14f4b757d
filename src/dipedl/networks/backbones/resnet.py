"""ResNet-18 for small images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..checks import check_integer
from ..spectral_norm import spectrally_normalised
from .network import Backbone, Network, Shape, convolution, empty, initialise

__all__ = ["ResNet18"]


@dataclass(frozen=True)
class ResNet18(Backbone):
    """ResNet-18 with a 3 x 3 stem of stride 1 and no pooling after it: made for 28 x 28 images.

    Parameters
    ----------
    spectral_norm : bool, default=False
        Divide every convolution and the head by its spectral norm, as the released code does.
    width : int, default=64
        Channels of the first stage; there are eight times as many features.

    Notes
    -----
    Inputs are pixels in [0, 1]. The paper's text says LeNet-5, its code has this network,
    spectrally normalised. 11.2 million weights: slow on a CPU.

    References
    ----------
    He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import ResNet18
    >>> network = ResNet18(width=8).build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    spectral_norm: bool = False
    width: int = 64

    def __post_init__(self) -> None:
        check_integer("width", self.width)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the pooled channels of the last stage."""
        w = self.width
        body = nn.Sequential(
            convolution(input_shape[0], w, 3, 1),
            nn.BatchNorm2d(w),
            nn.ReLU(),
            _Block(w, w, 1),
            _Block(w, w, 1),
            _Block(w, 2 * w, 2),
            _Block(2 * w, 2 * w, 1),
            _Block(2 * w, 4 * w, 2),
            _Block(4 * w, 4 * w, 1),
            _Block(4 * w, 8 * w, 2),
            _Block(8 * w, 8 * w, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        network = Network(input_shape, body, empty(nn.Linear, 8 * w, n_outputs), 8 * w)
        initialise(network, generator)
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", generator=generator)
        return spectrally_normalised(network, generator) if self.spectral_norm else network


class _Block(nn.Module):
    """Two 3 x 3 convolutions with a shortcut, a 1 x 1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            convolution(before, after, 3, stride),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            convolution(after, after, 3, 1),
            nn.BatchNorm2d(after),
        )
        same = before == after and stride == 1
        projection = (convolution(before, after, 1, stride), nn.BatchNorm2d(after))
        self.shortcut = nn.Identity() if same else nn.Sequential(*projection)

    def forward(self, X: Tensor) -> Tensor:
        return torch.relu(self.residual(X) + self.shortcut(X))
