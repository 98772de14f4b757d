"""Networks of few epochs for small colour images, with their augmentation and their optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, pad
from torch.nn.modules.conv import _ConvNd
from torch.nn.parameter import is_lazy
from torch.nn.utils import skip_init

from dipedl.networks import Architecture, Network, Training

__all__ = ["CropFlip", "PoolCNN", "WhitenedCNN", "muon"]

Shape = tuple[int, int, int]


def blank_layer(layer: type[nn.Module], *sizes: int | tuple[int, int], **options: Any) -> nn.Module:
    """Return a layer without initial weights: PyTorch's are drawn from the global generator."""
    module: nn.Module = skip_init(layer, *sizes, **options)  # type: ignore[no-untyped-call]
    return module


def convolution(before: int, after: int, size: int, stride: int = 1) -> nn.Module:
    """Return a convolution without bias that keeps the size of the image if the stride is 1."""
    padding = size // 2
    return blank_layer(nn.Conv2d, before, after, size, stride=stride, padding=padding, bias=False)


def dropout_head(dropout: float, before: int, after: int, bias: bool = True) -> nn.Sequential:
    """Return dropout of the features, and a linear layer without initial weights."""
    return nn.Sequential(nn.Dropout(dropout), blank_layer(nn.Linear, before, after, bias=bias))


def pooled_blocks(
    widths: Sequence[int], norm: Callable[[int], nn.Module], residual: bool = False
) -> Iterator[nn.Module]:
    """Blocks of two convolutions, pooled after the first one, then the maxima over the image.

    Residual blocks have a third convolution, and a shortcut around the second and third one.
    """
    for before, after in pairwise(widths):
        yield from (convolution(before, after, 3), nn.MaxPool2d(2), norm(after), nn.GELU())
        rest = (convolution(after, after, 3), norm(after))
        if residual:
            yield Shortcut(*rest, nn.GELU(), convolution(after, after, 3), norm(after))
        else:
            yield from rest
        yield nn.GELU()
    yield from (nn.AdaptiveMaxPool2d(1), nn.Flatten())


class Shortcut(nn.Sequential):
    """Adds its input to the output of its layers."""

    def forward(self, maps: Tensor) -> Tensor:
        added: Tensor = maps + super().forward(maps)  # type: ignore[no-untyped-call]
        return added


@dataclass(frozen=True)
class PoolCNN(Architecture):
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
    >>> from dipedl_bench.fast_networks import PoolCNN
    >>> network = PoolCNN().build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 192]), torch.Size([2, 10]))
    """

    least: ClassVar[int] = 9

    width: int = 64
    features: int = 192
    dropout: float = 0.0

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        first = [_Centre(), blank_layer(nn.Conv2d, shape[0], 24, 2), nn.GELU()]
        widths = (24, self.width, self.features, self.features)
        body = [*first, *pooled_blocks(widths, nn.BatchNorm2d)]
        return body, dropout_head(self.dropout, self.features, k), self.features

    def _initialise(self, network: Network, generator: torch.Generator) -> None:
        # He's uniform weights, and zero biases.
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)


class _Centre(nn.Module):
    """Shift and scale pixels in [0, 1] to about zero mean and unit variance."""

    def forward(self, images: Tensor) -> Tensor:
        return (images - 0.5) * 4.0


_PATCH = 2
#: Number of rows for the covariance of the patches, which is small.
_ROWS = 5000
_RIDGE = 5e-4
#: Outputs of the last layer are divided by it, so that early gradients are small.
_COOLING = 9.0
#: Square root of the factor by which biases learn faster than weights, at the same decay.
_BIAS_SCALE = 8.0


@dataclass(frozen=True)
class WhitenedCNN(Architecture):
    """Seven convolutions, the first of which whitens patches of the training images and is fixed.

    Three blocks of two 3 x 3 convolutions follow, with batch normalisation (no scale, a bias that
    learns faster) and GELU; each block pools after its first one. A convolution starts as the
    identity on its input channels. The features are the maxima of the last channels. Inputs are
    pixels in [0, 1].

    Parameters
    ----------
    width : int, default=64
        Channels of the first block.
    features : int, default=256
        Channels of the second and third block: the number of features.
    dropout : float, default=0.0
        Share of the features dropped before the last layer in training.
    residual : bool, default=False
        Whether each block has a third convolution, and a shortcut around its second and third one.
    mirrored : bool, default=False
        Whether features, and so the outputs, are means over an image and its mirror image, once
        trained. It takes twice the time; not for digits or letters.
    shifted : bool, default=False
        Whether features, and so the outputs, are weighted means, once trained: of an image (1/2)
        and of the image shifted by one pixel, down and right (1/4), and up and left (1/4). New
        pixels at the border reflect the image. It takes three times the time.

    Notes
    -----
    1.97 million parameters and 118 million multiplications for a 32 x 32 colour image with the
    defaults. The layout and the initialisation are those of Jordan's airbench94, with `residual` of
    airbench96; its optimiser's settings go into `Training`: ``optimizer="sgd"`` or ``"muon"``,
    ``momentum=0.85``, a ``learning_rate`` about 1 at batches of 1,024, ``weight_decay`` about 1e-3.
    Look-ahead is left out.

    References
    ----------
    Jordan, "94 % on CIFAR-10 in 3.29 seconds on a single GPU", arXiv:2404.00498 (2024). Page,
    "How to train your ResNet 8: bag of tricks" (2019), on whitened patches.

    Examples
    --------
    >>> import torch
    >>> from dipedl_bench.fast_networks import WhitenedCNN
    >>> network = WhitenedCNN().build((3, 32, 32), 10, torch.Generator().manual_seed(0))
    >>> network.features(torch.zeros(2, 3072)).shape, network(torch.zeros(2, 3072)).shape
    (torch.Size([2, 256]), torch.Size([2, 10]))
    """

    least: ClassVar[int] = 9

    width: int = 64
    features: int = 256
    dropout: float = 0.0
    residual: bool = False
    mirrored: bool = False
    shifted: bool = False

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """Return an untrained network; its weights come from `generator` alone."""
        made = super().build(input_shape, n_outputs, generator)
        network = _WhitenedNetwork(input_shape, made.body, made.head, made.n_features)
        network.mirrored, network.shifted = self.mirrored, self.shifted
        return network

    def _layers(self, shape: Shape, k: int) -> tuple[list[nn.Module], nn.Module, int]:
        with torch.random.fork_rng(devices=[]):
            # PyTorch draws weights, which are replaced below.
            whitening = _Whitening(shape[0])
        widths = (whitening.out_channels, self.width, self.features, self.features)
        body = [whitening, nn.GELU(), *pooled_blocks(widths, _Norm, self.residual)]
        head = dropout_head(self.dropout, self.features, k, bias=False)
        return body, nn.Sequential(*head, _Divided(_COOLING)), self.features

    def _initialise(self, network: Network, generator: torch.Generator) -> None:
        super()._initialise(network, generator)
        for layer in network.modules():
            if isinstance(layer, _Whitening):
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
            elif isinstance(layer, nn.Conv2d) and layer.kernel_size == (3, 3):
                nn.init.dirac_(layer.weight[: layer.in_channels])


class _WhitenedNetwork(Network):
    """A network whose first layer is computed from training rows."""

    mirrored = shifted = False

    def prepare(self, X: Tensor) -> None:
        for layer in self.modules():
            if isinstance(layer, _Whitening):
                layer.learn(X[:_ROWS].reshape(-1, *self.input_shape))

    def features(self, X: Tensor) -> Tensor:
        mean: Tensor
        if self.training or not (self.mirrored or self.shifted):
            mean = super().features(X)
            return mean
        # the image itself comes last: captured layers hold its maps
        views = self._views(X.reshape(-1, *self.input_shape))
        mean = torch.stack([w * Network.features(self, view) for w, view in views]).sum(0)
        return mean

    def _views(self, images: Tensor) -> list[tuple[float, Tensor]]:
        """Views of images (n, c, h, w) whose features are averaged, each with its weight."""
        views = [(1.0, images)]
        if self.shifted:
            padded = pad(images, (1,) * 4, mode="reflect")
            down, up = padded[..., :-2, :-2], padded[..., 2:, 2:]
            views = [(0.25, down), (0.25, up), (0.5, images)]
        if not self.mirrored:
            return views
        return [(w / 2, turned) for w, view in views for turned in (view.flip(-1), view)]


class _Whitening(nn.Conv2d):
    """Both signs of the principal components of patches, each of unit variance."""

    mean: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__(channels, 2 * channels * _PATCH**2, _PATCH)
        self.weight.requires_grad_(False)
        self.register_buffer("mean", torch.full((1, channels, 1, 1), 0.5))

    @torch.no_grad()
    def learn(self, images: Tensor) -> None:
        self.mean.copy_(images.mean((0, 2, 3), keepdim=True))
        patches = (images - self.mean).unfold(2, _PATCH, 1).unfold(3, _PATCH, 1)
        rows = patches.permute(0, 2, 3, 1, 4, 5).reshape(-1, self.weight[0].numel()).double()
        variance, directions = torch.linalg.eigh(rows.T @ rows / len(rows))
        # a ridge relative to the mean variance: a direction that never varies stays small
        scale = (variance + _RIDGE * variance.mean().clamp(min=1e-12)).rsqrt()
        filters = (directions * scale).T.reshape(-1, *self.weight.shape[1:])
        self.weight.copy_(torch.cat([filters, -filters]))

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - self.mean)


class _Norm(nn.BatchNorm2d):
    """Batch normalisation with a fast bias and no scale."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, momentum=0.4, affine=False)
        self.fast_bias = nn.Parameter(torch.zeros(channels))

    def forward(self, maps: Tensor) -> Tensor:
        return batch_norm(
            maps,
            self.running_mean,
            self.running_var,
            # of ones: without it, a GPU gives the bias no gradient
            weight=torch.ones_like(self.fast_bias),
            bias=_BIAS_SCALE * self.fast_bias,
            training=self.training,
            momentum=self.momentum or 0.0,
            eps=self.eps,
        )


class _Divided(nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, outputs: Tensor) -> Tensor:
        return outputs / self.by


@dataclass(frozen=True)
class CropFlip:
    """Shifts every image by up to `shift` pixels each way and mirrors half of them, at random.

    New pixels at the border reflect the image.

    Parameters
    ----------
    image_shape : tuple of int, default=(3, 32, 32)
        Channels, height and width of the rows.
    shift : int, default=2
        Largest shift along each axis, in pixels.
    cutout : int, default=0
        Side of a square at a random place of each image that gets the mean colour of the images;
        0 cuts nothing out.

    References
    ----------
    DeVries and Taylor, "Improved regularization of convolutional neural networks with cutout",
    arXiv:1708.04552 (2017).

    Examples
    --------
    >>> import torch
    >>> from dipedl_bench.fast_networks import CropFlip
    >>> images = torch.rand(4, 3072)
    >>> CropFlip()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3072])
    """

    image_shape: tuple[int, int, int] = (3, 32, 32)
    shift: int = 2
    cutout: int = 0

    def __post_init__(self) -> None:
        for name, least in (("shift", 1), ("cutout", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
        if len(self.image_shape) != 3 or not self.shift < min(self.image_shape[1:]):
            raise ValueError(
                "image_shape must be (channels, height, width) with sides longer than "
                f"shift={self.shift}, got {self.image_shape!r}"
            )
        if self.cutout >= min(self.image_shape[1:]):
            raise ValueError(
                f"cutout must be smaller than the image, {self.image_shape[1]} x "
                f"{self.image_shape[2]} pixels, got {self.cutout}"
            )

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented rows of pixels (b, d); `generator` lives on the device of `inputs`."""
        b, (c, h, w) = len(inputs), self.image_shape
        if inputs.shape[1] != c * h * w:
            raise ValueError(
                f"CropFlip was made for rows of {c * h * w} pixels, got {inputs.shape[1]}; pass "
                "the image_shape of your images"
            )
        device = inputs.device
        padded = pad(inputs.reshape(b, *self.image_shape), (self.shift,) * 4, mode="reflect")
        corner = torch.randint(2 * self.shift + 1, (2, b, 1), generator=generator, device=device)
        draws = torch.rand(b, 1, generator=generator, device=device, dtype=torch.float32)
        mirrored = draws < 0.5
        rows = corner[0] + torch.arange(h, device=device)
        along = torch.arange(w, device=device).expand(b, w)
        columns = corner[1] + torch.where(mirrored, w - 1 - along, along)
        image = torch.arange(b, device=device)
        # indices before and after the colon: the channels come last
        cut = padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        images = cut.permute(0, 3, 1, 2)
        if self.cutout:
            # no image has no mean
            colour = images.mean((0, 2, 3), keepdim=True) if len(images) else images
            images = torch.where(self._square(images, generator), colour, images)
        return images.reshape(inputs.shape)

    def _square(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Return a mask of the square of each image (b, c, h, w), shape (b, 1, h, w)."""

        def inside(size: int) -> Tensor:
            last, device = size - self.cutout + 1, images.device
            start = torch.randint(last, (len(images), 1), generator=generator, device=device)
            at = torch.arange(size, device=device)
            return (at >= start) & (at < start + self.cutout)

        rows, columns = inside(images.shape[2]), inside(images.shape[3])
        return rows[:, None, :, None] & columns[:, None, None, :]


#: Length of a kernel's step at a learning rate of 1, as a share of the kernel's norm.
_SHARE = 0.2
_MOMENTUM = 0.6
#: Newton-Schulz iteration ``a X + b X X'X + c X (X'X)^2`` of Muon, and how often.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 3
_TINY = 1e-7


class Muon(torch.optim.SGD):
    """SGD in which a kernel steps along the orthogonal matrix nearest to its momentum.

    A kernel is a matrix (first dimension, all others). Its norm is set to the square root of its
    number of rows before each step. The step is ``0.2 lr`` of that, times ``sqrt(columns / rows)``
    where there are fewer columns than rows. Kernels have a Nesterov momentum of 0.6 and no weight
    decay.

    References
    ----------
    Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024), with the
    settings of airbench94_muon by the same author.
    """

    def __init__(
        self, parameters: Iterable[Tensor], kernels: Iterable[Tensor], **options: Any
    ) -> None:
        super().__init__(parameters, **options)
        self._kernels = {id(kernel) for kernel in kernels}

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step; gradients of kernels are used up."""
        for group in self.param_groups:
            for kernel in group["params"]:
                if id(kernel) in self._kernels and kernel.grad is not None:
                    self._turn(kernel, group["lr"])
                    kernel.grad = None
        super().step(closure)

    def _turn(self, kernel: Tensor, lr: float) -> None:
        state = self.state[kernel]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(kernel)
        momentum = state["momentum_buffer"].mul_(_MOMENTUM).add_(kernel.grad)
        direction = orthogonal((kernel.grad + _MOMENTUM * momentum).flatten(1))
        kernel.mul_(len(kernel) ** 0.5 / kernel.norm().clamp(min=_TINY))
        kernel.sub_(direction.reshape(kernel.shape), alpha=_SHARE * lr)


def kernels(module: nn.Module) -> list[nn.Parameter]:
    """Kernels to train of the convolutions of a module, at least one.

    The scale of a layer with weight normalisation is no matrix.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, _ConvNd)]
    named = [item for layer in layers for item in layer.named_parameters()]
    weights = [p for name, p in named if p.requires_grad and name != "bias"]
    matrices = [p for p in weights if is_lazy(p) or (p.ndim > 2 and p.numel() > max(p.shape))]
    if not matrices:
        raise ValueError(
            f"muon is for the kernels of convolutions, and {type(module).__name__} has none to "
            "train; use 'sgd' or 'adam'"
        )
    return matrices


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly ``U V'`` of the singular value decomposition: singular values are about 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x: Tensor = (matrix.T if tall else matrix) / matrix.norm().clamp(min=_TINY)
    for _ in range(_ITERATIONS):
        square = x @ x.T
        x = _A * x + (_B * square + _C * square @ square) @ x
    return x.T if tall else x


def muon(module: nn.Module, settings: Training) -> torch.optim.Optimizer:
    """Return SGD with Nesterov momentum for all but the kernels of convolutions, as `Muon` steps.

    A rate near 1 needs a normalisation after every convolution; without any take 0.3 or less, and
    do not go on from trained weights: the first step changes their norm.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    return Muon(
        parameters,
        kernels(module),
        lr=settings.learning_rate,
        momentum=settings.momentum,
        nesterov=settings.momentum > 0,
        weight_decay=settings.weight_decay,
        fused=parameters[0].device.type in ("cpu", "cuda"),
    )
