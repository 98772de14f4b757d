"""Random shifts and reflections of images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._checks import check_integer

__all__ = ["CropFlip"]


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

    Examples
    --------
    >>> import torch
    >>> from dipedl.nn import CropFlip
    >>> images = torch.rand(4, 3072)
    >>> CropFlip()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3072])
    """

    image_shape: tuple[int, int, int] = (3, 32, 32)
    shift: int = 2

    def __post_init__(self) -> None:
        check_integer("shift", self.shift)
        if len(self.image_shape) != 3 or not self.shift < min(self.image_shape[1:]):
            raise ValueError(
                "image_shape must be (channels, height, width) with sides longer than "
                f"shift={self.shift}, got {self.image_shape!r}"
            )

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented rows of pixels (b, d); `generator` lives on the device of `inputs`."""
        if inputs.shape[1] != math.prod(self.image_shape):
            raise ValueError(
                f"CropFlip was made for rows of {math.prod(self.image_shape)} pixels, got "
                f"{inputs.shape[1]}; pass the image_shape of your images"
            )
        b, (_, h, w) = len(inputs), self.image_shape
        device = inputs.device
        padded = pad(inputs.reshape(b, *self.image_shape), (self.shift,) * 4, mode="reflect")
        corner = torch.randint(2 * self.shift + 1, (2, b, 1), generator=generator, device=device)
        mirrored = torch.rand(b, 1, generator=generator, device=device) < 0.5
        rows = corner[0] + torch.arange(h, device=device)
        along = torch.arange(w, device=device).expand(b, w)
        columns = corner[1] + torch.where(mirrored, w - 1 - along, along)
        image = torch.arange(b, device=device)
        # indices before and after the colon: the channels come last
        cut = padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return cut.permute(0, 3, 1, 2).reshape(inputs.shape)
