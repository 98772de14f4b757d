"""Networks with features and head: their layers, initial weights and normalised pixels."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from ...maths.arrays import check_integer
from ..checks import check_dropout, check_flag

__all__ = []

Shape = tuple[int, int, int]


class Network(nn.Module):
    """Rows of pixels (n, d) to outputs (n, k): ``forward(X) = head(features(X))``.

    `body` maps images of `input_shape` (channels, height, width) to features (n, n_features).
    """

    def __init__(
        self, input_shape: Shape, body: nn.Module, head: nn.Module, n_features: int
    ) -> None:
        super().__init__()
        self.input_shape = tuple(input_shape)
        # channels last: a step takes a third less time for FastCNN on a CPU, a sixth for LeNet5
        self.body = body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.head, self.n_features = head, n_features

    def prepare(self, X: Tensor) -> None:
        """Compute fixed weights from training rows X (n, d), before the first step."""

    def features(self, X: Tensor) -> Tensor:
        features: Tensor = self.body(X.reshape(-1, *self.input_shape))
        return features

    def outputs_and_features(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs and features, from one pass."""
        features = self.features(X)
        return self.head(features), features

    def forward(self, X: Tensor) -> Tensor:
        outputs: Tensor = self.head(self.features(X))
        return outputs


@runtime_checkable
class Backbone(Protocol):
    """A frozen dataclass that builds networks; equal ones build equal networks."""

    #: Whether inputs are pixels, which must lie in [0, 1].
    takes_pixels: ClassVar[bool] = True

    def build(self, input_shape: Shape, n_outputs: int, generator: torch.Generator) -> Network:
        """An untrained network; its weights come from `generator` alone."""
        ...


def check_settings(backbone: Any) -> None:
    """Refuse settings of a backbone by their types; each integer must be at least 1."""
    for setting in fields(backbone):
        name, value = setting.name, getattr(backbone, setting.name)
        if setting.type == "int":
            check_integer(name, value)
        elif setting.type == "bool":
            check_flag(name, value)
        elif name == "dropout":
            check_dropout(value)
        elif setting.type == "tuple[int, ...]" and (not value or min(value) < 1):
            raise ValueError(f"{name} must hold integers >= 1, at least one, got {value!r}")
        elif setting.type == "tuple[float, ...]":
            numbers = "a tuple of numbers" + (" > 0" if name == "sd" else "")
            if not isinstance(value, tuple) or not all(isinstance(v, float | int) for v in value):
                raise TypeError(f"{name} must be {numbers}, got {value!r}")
            least = 0.0 if name == "sd" else -math.inf
            if not value or not all(least < v < math.inf for v in value):
                raise ValueError(
                    f"{name} must be {numbers}, at least one and finite, got {value!r}"
                )


def empty(layer: type[nn.Module], *sizes: int | tuple[int, int], **options: Any) -> nn.Module:
    """A layer without initial weights, since PyTorch draws them from the global generator."""
    module: nn.Module = skip_init(layer, *sizes, **options)  # type: ignore[no-untyped-call]
    return module


def convolution(before: int, after: int, size: int, stride: int = 1) -> nn.Module:
    """A square convolution without bias that keeps the size of the image if the stride is 1."""
    padding = size // 2
    return empty(nn.Conv2d, before, after, size, stride=stride, padding=padding, bias=False)


def initialise(network: Network, generator: torch.Generator) -> Network:
    """PyTorch's defaults, uniform within ``1 / sqrt(fan_in)``, drawn from `generator`."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            bound = 1 / math.sqrt(layer.weight[0].numel())
            nn.init.uniform_(layer.weight, -bound, bound, generator=generator)
            if layer.bias is not None:
                nn.init.uniform_(layer.bias, -bound, bound, generator=generator)
    return network


def he_initialise(network: Network, generator: torch.Generator) -> Network:
    """He's uniform weights, for ReLU, and zero biases, drawn from `generator`."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network


def check_size(name: str, input_shape: Shape, least: int) -> None:
    if min(input_shape[1:]) < least:
        raise ValueError(
            f"{name} needs images of at least {least} x {least} pixels, got image_shape="
            f"{tuple(input_shape)}; pass the image_shape of your images, or use MLP"
        )


def image_shape(setting: Any, d: int) -> Shape:
    """(channels, height, width) for rows of d pixels.

    None stands for one square grey image if d is a square, else for one row of d numbers.
    """
    if setting is None:
        side = math.isqrt(d)
        return (1, side, side) if side * side == d else (1, 1, d)
    shape = tuple(setting)
    shape = (1, *shape) if len(shape) == 2 else shape
    if len(shape) != 3 or min(shape) < 1:
        raise ValueError(
            "image_shape must be (height, width) or (channels, height, width), all >= 1, "
            f"got {setting!r}"
        )
    if math.prod(shape) != d:
        raise ValueError(
            f"X must have {' * '.join(map(str, shape))} = {math.prod(shape)} columns for "
            f"image_shape={setting!r}, got {d}; pass the image_shape of your images"
        )
    return shape
