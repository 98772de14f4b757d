"""Random changes of images for training."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, pad

from ..maths.arrays import check_integer
from .checks import check_number

__all__ = ["AffineAugmentation", "CropFlip", "CropFlipRotate"]


@dataclass(frozen=True)
class AffineAugmentation:
    """Rotates, shears, scales and shifts every square grey image at random.

    New pixels at the border are black; others are interpolated linearly and stay within [0, 1].

    Parameters
    ----------
    degrees : float, default=10.0
        Largest rotation either way.
    translate : float, default=0.08
        Largest shift along each axis, as a share of the side: 0.08 is 2.2 of 28 pixels.
    scale : float, default=0.1
        Largest relative change of size: 0.1 is from 0.9 to 1.1 times.
    shear : float, default=0.0
        Largest horizontal shear either way, in degrees.

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import AffineAugmentation, Training
    >>> images = torch.rand(4, 784)
    >>> AffineAugmentation()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 784])
    >>> training = Training(augment=AffineAugmentation(degrees=15))
    """

    degrees: float = 10.0
    translate: float = 0.08
    scale: float = 0.1
    shear: float = 0.0

    def __post_init__(self) -> None:
        check_number("degrees", self.degrees, "in [0, 180]", lambda x: 0 <= x <= 180)
        check_number("translate", self.translate, "in [0, 1]", lambda x: 0 <= x <= 1)
        check_number("scale", self.scale, "in [0, 1)", lambda x: 0 <= x < 1)
        check_number("shear", self.shear, "in [0, 90)", lambda x: 0 <= x < 90)

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented rows of pixels (b, d); `generator` lives on the device of `inputs`."""
        side = math.isqrt(inputs.shape[1])
        if side * side != inputs.shape[1]:
            raise ValueError(
                f"AffineAugmentation takes square grey images, got rows of {inputs.shape[1]} "
                "pixels, which is no square; pass augment=None, or a callable of your own"
            )
        maps = self._maps(len(inputs), inputs, generator)
        images = inputs.reshape(-1, 1, side, side)
        grid = affine_grid(maps, list(images.shape), align_corners=False)
        return grid_sample(images, grid, align_corners=False).reshape(inputs.shape)

    def _maps(self, n: int, like: Tensor, generator: torch.Generator) -> Tensor:
        """Maps from positions in the new image to positions in the old one, shape (n, 2, 3)."""
        draws = torch.rand(n, 5, generator=generator, device=like.device, dtype=torch.float32)
        draws = draws.to(like.dtype) * 2 - 1
        angle = draws[:, 0] * math.radians(self.degrees)
        size = 1 + draws[:, 1] * self.scale
        slope = torch.tan(draws[:, 2] * math.radians(self.shear))
        # the side is 2 in the units of the grid
        shift = draws[:, 3:] * 2 * self.translate
        cos, sin = angle.cos() / size, angle.sin() / size
        rows = [
            torch.stack([cos, cos * slope - sin, shift[:, 0]], dim=1),
            torch.stack([sin, sin * slope + cos, shift[:, 1]], dim=1),
        ]
        return torch.stack(rows, dim=1)


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
    >>> from dipedl.networks import CropFlip
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
        _check_pixels(self, inputs)
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


@dataclass(frozen=True)
class CropFlipRotate:
    """Shifts every image by up to `shift` pixels each way, mirrors half of them, rotates all.

    New pixels at the border are black. Rotation is about the centre, by nearest
    pixels, as in torchvision by default; every pixel of the result is one of the image, or black.

    Parameters
    ----------
    image_shape : tuple of int, default=(3, 32, 32)
        Channels, height and width of the rows.
    shift : int, default=4
        Largest shift along each axis, in pixels.
    degrees : float, default=15.0
        Largest rotation either way.

    Notes
    -----
    Shift, reflection and rotation are one look-up, without repeated resampling. Images may be bytes
    or floats, on any device.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", released code: RandomCrop(32, padding=4), RandomHorizontalFlip(), RandomRotation(15).

    Examples
    --------
    >>> import torch
    >>> from dipedl.networks import CropFlipRotate
    >>> images = torch.rand(4, 3072)
    >>> CropFlipRotate()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3072])
    """

    image_shape: tuple[int, int, int] = (3, 32, 32)
    shift: int = 4
    degrees: float = 15.0

    def __post_init__(self) -> None:
        check_integer("shift", self.shift)
        check_number("degrees", self.degrees, "in [0, 180]", lambda x: 0 <= x <= 180)
        if len(self.image_shape) != 3 or min(self.image_shape) < 1:
            raise ValueError(
                f"image_shape must be (channels, height, width), all >= 1, got {self.image_shape!r}"
            )

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented rows of pixels (b, d); `generator` lives on the device of `inputs`."""
        _check_pixels(self, inputs)
        c, h, w = self.image_shape
        rows, columns = self._sources(*self._draws(len(inputs), inputs.device, generator))
        seen = (rows >= 0) & (rows < h) & (columns >= 0) & (columns < w)
        place = torch.where(seen, rows * w + columns, 0).reshape(-1, 1, h * w)
        pixels = inputs.reshape(-1, c, h * w).gather(2, place.expand(-1, c, -1))
        return (pixels * seen.reshape(-1, 1, h * w)).reshape(inputs.shape)

    def _draws(
        self, b: int, device: torch.device, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Shifts (2, b, 1, 1) down and right, mirrored or not (b, 1, 1), angles (b, 1, 1)."""
        ends = -self.shift, self.shift + 1
        moves = torch.randint(*ends, (2, b, 1, 1), generator=generator, device=device)
        draws = torch.rand(2, b, 1, 1, generator=generator, device=device, dtype=torch.float32)
        return moves, draws[0] < 0.5, (2 * draws[1] - 1) * math.radians(self.degrees)

    def _sources(self, moves: Tensor, mirrored: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
        """Row and column in the image of each pixel of the result, (b, h, w); may be outside."""
        _, h, w = self.image_shape
        # backwards: position in the cropped and mirrored image, relative to its centre ...
        down = torch.arange(h, device=angles.device)[:, None] - (h - 1) / 2
        right = torch.arange(w, device=angles.device) - (w - 1) / 2
        rows = (angles.cos() * down + angles.sin() * right + (h - 1) / 2).round().long()
        columns = (angles.cos() * right - angles.sin() * down + (w - 1) / 2).round().long()
        # ... pixels cut off by the crop stay black after rotation ...
        inside = (rows >= 0) & (rows < h) & (columns >= 0) & (columns < w)
        # ... then position in the cropped image, then in the original
        columns = torch.where(mirrored, w - 1 - columns, columns) + moves[1]
        return torch.where(inside, rows + moves[0], -1), columns


def _check_pixels(augmentation: CropFlip | CropFlipRotate, inputs: Tensor) -> None:
    pixels = math.prod(augmentation.image_shape)
    if inputs.shape[1] != pixels:
        raise ValueError(
            f"{type(augmentation).__name__} was made for rows of {pixels} pixels, got "
            f"{inputs.shape[1]}; pass the image_shape of your images"
        )
