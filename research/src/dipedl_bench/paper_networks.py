"""Networks of the paper's experiments and of published baselines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from dipedl.networks import Architecture, Network

from .fast_networks import Shape, blank_layer, convolution, dropout_head
from .spectral_norm import add_spectral_norm

__all__ = [
    "VGG16",
    "BranchCNN",
    "ConvLin",
    "ConvLin1d",
    "ResNet18",
    "WideResNet",
]


def check_numbers(name: str, values: Any, least: float = -math.inf) -> None:
    """Raise unless `values` is a tuple of finite numbers above `least`, at least one."""
    numbers = "a tuple of numbers" + (f" > {least:g}" if least > -math.inf else "")
    if not isinstance(values, tuple) or not all(isinstance(v, float | int) for v in values):
        raise TypeError(f"{name} must be {numbers}, got {values!r}")
    if not values or not all(least < v < math.inf for v in values):
        raise ValueError(f"{name} must be {numbers}, at least one and finite, got {values!r}")


class _Backbone(Architecture):
    """A backbone of the paper, or of a baseline."""

    #: Least length of a row, where an input is read as one row of numbers; 0 for images.
    shortest: ClassVar[int] = 0
    #: Whether convolutions start from He's normal weights, by fan-out, and zero biases.
    fan_out: ClassVar[bool] = False
    spectral_norm: bool = False

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """Return an untrained network; its weights come from `generator` alone."""
        if self.shortest:
            length = math.prod(input_shape)
            if length < self.shortest:
                raise ValueError(
                    f"{type(self).__name__} needs rows of at least {self.shortest} numbers, got "
                    f"{length}; use MLP"
                )
            input_shape = 1, 1, length
        return super().build(input_shape, n_outputs, generator)

    def _initialise(self, network: Network, generator: torch.Generator) -> None:
        super()._initialise(network, generator)
        convolutions = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
        for layer in convolutions if self.fan_out else ():
            nn.init.kaiming_normal_(
                layer.weight, mode="fan_out", nonlinearity="relu", generator=generator
            )
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        if self.spectral_norm:
            add_spectral_norm(network, generator)


class _Block(nn.Module):
    """A residual with a shortcut, and ReLU after their sum unless the next block begins with it."""

    def __init__(self, residual: list[nn.Module], shortcut: nn.Module, relu: bool) -> None:
        super().__init__()
        self.residual, self.shortcut, self.relu = nn.Sequential(*residual), shortcut, relu

    def forward(self, X: Tensor) -> Tensor:
        outputs: Tensor = self.residual(X) + self.shortcut(X)
        return torch.relu(outputs) if self.relu else outputs


@dataclass(frozen=True)
class ResNet18(_Backbone):
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
    >>> from dipedl_bench.paper_networks import ResNet18
    >>> network = ResNet18(width=8).build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    fan_out: ClassVar[bool] = True

    spectral_norm: bool = False
    width: int = 64

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        w = self.width
        body = [convolution(shape[0], w, 3), nn.BatchNorm2d(w), nn.ReLU()]
        for before, after in pairwise(w * factor for factor in (1, 1, 1, 2, 2, 4, 4, 8, 8)):
            stride = 1 if before == after else 2
            residual = [convolution(before, after, 3, stride), nn.BatchNorm2d(after), nn.ReLU()]
            residual += [convolution(after, after, 3), nn.BatchNorm2d(after)]
            shortcut: nn.Module = nn.Identity()
            if before != after:
                projection = convolution(before, after, 1, stride)
                shortcut = nn.Sequential(projection, nn.BatchNorm2d(after))
            body.append(_Block(residual, shortcut, relu=True))
        body += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return body, blank_layer(nn.Linear, 8 * w, k), 8 * w


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
class VGG16(_Backbone):
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
    >>> from dipedl_bench.paper_networks import VGG16
    >>> network = VGG16(width=4).build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 32]), torch.Size([2, 10]))
    """

    least: ClassVar[int] = 32
    fan_out: ClassVar[bool] = True

    spectral_norm: bool = False
    dropout: float = 0.5
    width: int = 64
    mean: tuple[float, ...] = CIFAR_MEAN
    sd: tuple[float, ...] = CIFAR_SD

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("mean", self.mean)
        check_numbers("sd", self.sd, 0.0)

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        channels, height, width = shape
        layers: list[nn.Module] = [Normalise(self.mean, self.sd, channels)]
        for count, factor in _VGG_BLOCKS:
            for _ in range(count):
                layer = blank_layer(nn.Conv2d, channels, factor * self.width, 3, padding=1)
                channels = factor * self.width
                layers += [layer, nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
            layers.append(nn.MaxPool2d(2))
        flat = channels * (height // 32) * (width // 32)
        hidden: list[nn.Module] = []
        for before in (flat, _VGG_HIDDEN):
            hidden += [
                nn.Dropout(self.dropout),
                blank_layer(nn.Linear, before, _VGG_HIDDEN),
                nn.ReLU(),
            ]
        head = nn.Sequential(*hidden, blank_layer(nn.Linear, _VGG_HIDDEN, k))
        return [*layers, nn.Flatten()], head, flat


_STEM = 16


@dataclass(frozen=True)
class WideResNet(_Backbone):
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
    >>> from dipedl_bench.paper_networks import WideResNet
    >>> network = WideResNet(10, 1).build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 64]), torch.Size([2, 10]))
    """

    least: ClassVar[int] = 4

    depth: int = 28
    width: int = 10
    dropout: float = 0.3
    spectral_norm: bool = False
    mean: tuple[float, ...] = CIFAR_MEAN
    sd: tuple[float, ...] = CIFAR_SD

    def __post_init__(self) -> None:
        super().__post_init__()
        check_numbers("mean", self.mean)
        check_numbers("sd", self.sd, 0.0)
        if self.depth < 10 or self.depth % 6 != 4:
            raise ValueError(
                f"depth must be 4 more than a multiple of 6, and at least 10, got {self.depth}; "
                "such as 10, 16, 22, 28"
            )

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        body = [Normalise(self.mean, self.sd, shape[0]), convolution(shape[0], _STEM, 3)]
        before = _STEM
        for stage, factor in enumerate((1, 2, 4)):
            after = _STEM * self.width * factor
            for block in range((self.depth - 4) // 6):
                stride = 2 if stage and not block else 1
                body.append(self._block(before, after, stride))
                before = after
        body += [nn.BatchNorm2d(after), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        return body, blank_layer(nn.Linear, after, k), after

    def _block(self, before: int, after: int, stride: int) -> _Block:
        """Return two convolutions, each after its normalisation."""
        residual = [
            nn.BatchNorm2d(before),
            nn.ReLU(),
            # the stride is in the second one, as released: 14 % more work than in the first
            convolution(before, after, 3),
            nn.Dropout(self.dropout),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            convolution(after, after, 3, stride),
        ]
        same = before == after and stride == 1
        shortcut = nn.Identity() if same else convolution(before, after, 1, stride)
        return _Block(residual, shortcut, relu=False)


_POOL, _DEPTH = 3, 3


@dataclass(frozen=True)
class BranchCNN(_Backbone):
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
    >>> from dipedl_bench.paper_networks import BranchCNN
    >>> network = BranchCNN().build((1, 1, 806), 2, torch.Generator().manual_seed(0)).eval()
    >>> network.features(torch.zeros(4, 806)).shape, network(torch.zeros(4, 806)).shape
    (torch.Size([4, 32]), torch.Size([4, 2]))
    """

    takes_pixels: ClassVar[bool] = False
    shortest: ClassVar[int] = _POOL**_DEPTH

    kernels: tuple[int, ...] = (3, 5, 7, 9, 11)
    channels: int = 32
    hidden: tuple[int, ...] = (128, 64, 32)
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(kernel % 2 == 0 for kernel in self.kernels):
            raise ValueError(
                "kernels must hold odd integers: an even kernel shifts its output by half a "
                f"number; got {self.kernels!r}"
            )

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        branches = [_branch(kernel, self.channels) for kernel in self.kernels]
        flat = len(branches) * self.channels * (shape[2] // self.shortest)
        layers: list[nn.Module] = [_Branches(branches), nn.Flatten()]
        for before, after in pairwise((flat, *self.hidden)):
            layers += [blank_layer(nn.Linear, before, after), nn.BatchNorm1d(after)]
            layers += [nn.ReLU(), nn.Dropout(self.dropout)]
        return layers[:-1], dropout_head(self.dropout, after, k), after


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
            blank_layer(
                nn.Conv2d, before, channels, (1, kernel), padding=(0, kernel // 2), bias=False
            ),
            nn.BatchNorm2d(channels),
            # before ReLU, which then has a third of the work; the result is the same
            nn.MaxPool2d((1, _POOL)),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers)


#: Channels of the convolutions and width of the hidden layers.
WIDTH = 64


@dataclass(frozen=True)
class ConvLin(_Backbone):
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
    >>> from dipedl_bench.paper_networks import ConvLin
    >>> network = ConvLin(features="conv").build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 784)).shape, network(torch.zeros(2, 784)).shape
    (torch.Size([2, 576]), torch.Size([2, 10]))
    """

    least: ClassVar[int] = 8

    spectral_norm: bool = False
    features: str = "hidden"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_features(self.features)

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        flat = WIDTH * (shape[1] // 8) * (shape[2] // 8)
        return convolutions_and_mlp(self.features, shape[0], flat, k, (5, 5), 2)


def check_features(features: str) -> None:
    if features not in ("hidden", "conv"):
        raise ValueError(f"features must be 'hidden' or 'conv', got {features!r}")


def convolutions_and_mlp(
    features: str, channels: int, flat: int, k: int, kernel: tuple[int, int], pool: Any
) -> tuple[list[nn.Module], nn.Module, int]:
    """Return three convolutions and three hidden layers, `flat` numbers between them."""
    padding = kernel[0] // 2, kernel[1] // 2
    body: list[nn.Module] = []
    for before in (channels, WIDTH, WIDTH):
        body += [blank_layer(nn.Conv2d, before, WIDTH, kernel, padding=padding)]
        body += [nn.ReLU(), nn.MaxPool2d(pool)]
    hidden: list[nn.Module] = []
    for before in (flat, WIDTH, WIDTH):
        hidden += [blank_layer(nn.Linear, before, WIDTH), nn.ReLU()]
    last = blank_layer(nn.Linear, WIDTH, k)
    if features == "conv":
        return [*body, nn.Flatten()], nn.Sequential(*hidden, last), flat
    return [*body, nn.Flatten(), *hidden], last, WIDTH


@dataclass(frozen=True)
class ConvLin1d(_Backbone):
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
    >>> from dipedl_bench.paper_networks import ConvLin1d
    >>> rows, generator = torch.zeros(2, 806), torch.Generator().manual_seed(0)
    >>> network = ConvLin1d(features="conv").build((1, 1, 806), 2, generator)
    >>> network.features(rows).shape, network(rows).shape
    (torch.Size([2, 768]), torch.Size([2, 2]))
    """

    takes_pixels: ClassVar[bool] = False
    shortest: ClassVar[int] = 64

    spectral_norm: bool = False
    features: str = "hidden"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_features(self.features)

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        flat = WIDTH * (shape[2] // self.shortest)
        return convolutions_and_mlp(self.features, 1, flat, k, (1, 5), (1, 4))
