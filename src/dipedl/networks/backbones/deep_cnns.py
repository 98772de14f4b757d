"""Deep networks of published methods on CIFAR-10: VGG-16 and wide residual networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..spectral_norm import spectrally_normalised
from .network import (
    Backbone,
    Network,
    Shape,
    check_settings,
    check_size,
    convolution,
    empty,
    initialise,
)

__all__ = ["VGG16", "WideResNet"]

#: Of the training images of CIFAR-10, as the released code has them. The deviations are means of
#: those within an image; over all pixels they are .247, .243, .262.
CIFAR_MEAN = (0.4914, 0.4822, 0.4465)
CIFAR_SD = (0.2023, 0.1994, 0.2010)


class Normalise(nn.Module):
    """``(image - mean) / sd`` of each channel of images (n, c, h, w); one value, or one each."""

    mean: Tensor
    sd: Tensor

    def __init__(self, mean: tuple[float, ...], sd: tuple[float, ...], channels: int) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("sd", sd)):
            if len(values) not in (1, channels):
                raise ValueError(
                    f"{name} must hold 1 value or {channels}, one for each channel of image_shape, "
                    f"got {values!r}; pass those of your images, such as mean=(0.5,), sd=(0.25,)"
                )
            # not part of the state: they are settings of the backbone, which rebuilds the layer
            self.register_buffer(name, torch.tensor(values)[:, None, None], persistent=False)

    def extra_repr(self) -> str:
        """Mean and sd, so that a checkpoint with other values is refused."""
        numbers = [[round(float(v), 6) for v in part.flatten()] for part in (self.mean, self.sd)]
        return "mean={}, sd={}".format(*numbers)

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.sd


#: Convolutions of a block, and their channels in units of `width`; each block ends with pooling.
_VGG_BLOCKS = ((2, 1), (2, 2), (3, 4), (3, 8), (3, 8))
_VGG_HIDDEN = 512


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
        check_settings(self)

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network."""
        check_size("VGG16", input_shape, 32)
        channels, height, width = input_shape
        layers: list[nn.Module] = [Normalise(self.mean, self.sd, channels)]
        for count, factor in _VGG_BLOCKS:
            for _ in range(count):
                layer = empty(nn.Conv2d, channels, factor * self.width, 3, padding=1)
                channels = factor * self.width
                layers += [layer, nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            layers.append(nn.MaxPool2d(2))
        flat = channels * (height // 32) * (width // 32)
        head = nn.Sequential(
            nn.Dropout(self.dropout),
            empty(nn.Linear, flat, _VGG_HIDDEN),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            empty(nn.Linear, _VGG_HIDDEN, _VGG_HIDDEN),
            nn.ReLU(),
            empty(nn.Linear, _VGG_HIDDEN, n_outputs),
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


_STEM = 16


@dataclass(frozen=True)
class WideResNet(Backbone):
    """WRN-28-10, the paper's network for CIFAR-10; other depths and widths are options.

    A 3 x 3 stem of 16 channels; three stages of ``(depth - 4) / 6`` pre-activation blocks with
    ``16 width``, ``32 width`` and ``64 width`` channels, the last two at half the resolution of the
    one before; batch normalisation, ReLU and the mean over the image give the features. Inputs are
    pixels in [0, 1].

    Parameters
    ----------
    depth : int, default=28
        Convolutions on the longest path, plus the last layer: 10, 16, 22, 28, 34, ...
    width : int, default=10
        Factor of the channels of 16, 32 and 64.
    dropout : float, default=0.3
        Share of the units dropped between the two convolutions of a block in training.
    spectral_norm : bool, default=False
        Divide every convolution and the last layer by its spectral norm, as the released code does;
        True is the paper's network.
    mean, sd : tuple of float, default=those of CIFAR-10 in the released code
        Means and deviations that standardise the pixels; one value, or one per channel.

    Notes
    -----
    The defaults have 36.5 million weights, 640 features, and 5.95 billion multiplications for a
    32 x 32 image; the original has 5.2 billion, since it takes the stride in the first convolution
    of a block and not, as the released code, in the second. For a GPU. Convolutions have no biases;
    weights start from PyTorch's defaults.

    References
    ----------
    Zagoruyko, Komodakis, "Wide Residual Networks", BMVC 2016.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import WideResNet
    >>> network = WideResNet(10, 1).build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    depth: int = 28
    width: int = 10
    dropout: float = 0.3
    spectral_norm: bool = False
    mean: tuple[float, ...] = CIFAR_MEAN
    sd: tuple[float, ...] = CIFAR_SD

    def __post_init__(self) -> None:
        check_settings(self)
        if self.depth < 10 or self.depth % 6 != 4:
            raise ValueError(
                f"depth must be 4 more than a multiple of 6, and at least 10, got {self.depth}; "
                "such as 10, 16, 22, 28"
            )

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; the features are the mean channels of the last stage."""
        check_size("WideResNet", input_shape, 4)
        channels = [_STEM * self.width * factor for factor in (1, 2, 4)]
        body = nn.Sequential(
            Normalise(self.mean, self.sd, input_shape[0]),
            convolution(input_shape[0], _STEM, 3, 1),
            *self._stage(_STEM, channels[0], 1),
            *self._stage(channels[0], channels[1], 2),
            *self._stage(channels[1], channels[2], 2),
            nn.BatchNorm2d(channels[2]),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        head = empty(nn.Linear, channels[2], n_outputs)
        network = Network(input_shape, body, head, channels[2])
        initialise(network, generator)
        return spectrally_normalised(network, generator) if self.spectral_norm else network

    def _stage(self, before: int, after: int, stride: int) -> list[nn.Module]:
        rest = (self.depth - 4) // 6 - 1
        return [
            _Block(before, after, stride, self.dropout),
            *(_Block(after, after, 1, self.dropout) for _ in range(rest)),
        ]


class _Block(nn.Module):
    """Two convolutions, each after its normalisation, with a shortcut from the raw input."""

    def __init__(self, before: int, after: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.BatchNorm2d(before),
            nn.ReLU(),
            # the stride is in the second one, as released: 14 % more work than in the first
            convolution(before, after, 3, 1),
            nn.Dropout(dropout),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            convolution(after, after, 3, stride),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else convolution(before, after, 1, stride)

    def forward(self, X: Tensor) -> Tensor:
        outputs: Tensor = self.residual(X) + self.shortcut(X)
        return outputs
