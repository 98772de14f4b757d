"""Random changes of images for training."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from .checks import check_number

__all__ = ["AffineAugmentation"]


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
