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
    >>> from dipedl.nn import CropFlip
    >>> images = torch.rand(4, 3072)
    >>> CropFlip()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3072])
    """

    image_shape: tuple[int, int, int] = (3, 32, 32)
    shift: int = 2
    cutout: int = 0

    def __post_init__(self) -> None:
        check_integer("shift", self.shift)
        check_integer("cutout", self.cutout, least=0)
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
        if inputs.shape[1] != math.prod(self.image_shape):
            raise ValueError(
                f"CropFlip was made for rows of {math.prod(self.image_shape)} pixels, got "
                f"{inputs.shape[1]}; pass the image_shape of your images"
            )
        b, (_, h, w) = len(inputs), self.image_shape
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
            images = torch.where(self._square(images, generator), _mean_colour(images), images)
        return images.reshape(inputs.shape)

    def _square(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Where each image (b, c, h, w) has its square, shape (b, 1, h, w)."""

        def inside(size: int) -> Tensor:
            last, device = size - self.cutout + 1, images.device
            start = torch.randint(last, (len(images), 1), generator=generator, device=device)
            at = torch.arange(size, device=device)
            return (at >= start) & (at < start + self.cutout)

        rows, columns = inside(images.shape[2]), inside(images.shape[3])
        return rows[:, None, :, None] & columns[:, None, None, :]


def _mean_colour(images: Tensor) -> Tensor:
    return images.mean((0, 2, 3), keepdim=True) if len(images) else images
