"""Random changes of images for training: of digits, and the paper's of CIFAR-10."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

__all__ = ["AffineAugmentation", "CropFlipRotate"]


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
    >>> from dipedl.networks import Training
    >>> from dipedl_bench.augmentations import AffineAugmentation
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
        for name, most in (("degrees", 180), ("translate", 1), ("scale", 1), ("shear", 90)):
            value = getattr(self, name)
            if not isinstance(value, int | float):
                raise TypeError(f"{name} must be a number, got {value!r}")
            if not 0 <= value <= most or (value == most and name in ("scale", "shear")):
                end = ")" if name in ("scale", "shear") else "]"
                raise ValueError(f"{name} must be in [0, {most}{end}, got {value!r}")

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
    >>> from dipedl_bench.augmentations import CropFlipRotate
    >>> images = torch.rand(4, 3072)
    >>> CropFlipRotate()(images, torch.Generator().manual_seed(0)).shape
    torch.Size([4, 3072])
    """

    image_shape: tuple[int, int, int] = (3, 32, 32)
    shift: int = 4
    degrees: float = 15.0

    def __post_init__(self) -> None:
        if not isinstance(self.shift, int) or self.shift < 1:
            raise ValueError(f"shift must be an integer >= 1, got {self.shift!r}")
        if not 0 <= self.degrees <= 180:
            raise ValueError(f"degrees must be in [0, 180], got {self.degrees!r}")
        if len(self.image_shape) != 3 or min(self.image_shape) < 1:
            raise ValueError(
                f"image_shape must be (channels, height, width), all >= 1, got {self.image_shape!r}"
            )

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Augmented rows of pixels (b, d); `generator` lives on the device of `inputs`."""
        c, h, w = self.image_shape
        if inputs.shape[1] != c * h * w:
            raise ValueError(
                f"CropFlipRotate was made for rows of {c * h * w} pixels, got {inputs.shape[1]}; "
                "pass the image_shape of your images"
            )
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
