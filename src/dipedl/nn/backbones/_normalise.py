"""Standardisation of pixels, the first layer of a network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

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


def check_normalisation(mean: Any, sd: Any) -> None:
    """Raise unless both are tuples of numbers, those of `sd` positive."""
    for name, values, least in (("mean", mean, float("-inf")), ("sd", sd, 0.0)):
        wanted = "a tuple of numbers" + (" > 0" if name == "sd" else "")
        if not isinstance(values, tuple) or not all(isinstance(v, float | int) for v in values):
            raise TypeError(f"{name} must be {wanted}, got {values!r}")
        if not values or not all(least < v < float("inf") for v in values):
            raise ValueError(f"{name} must be {wanted}, at least one and finite, got {values!r}")
