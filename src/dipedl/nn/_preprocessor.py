"""What a flow asks of its preprocessing."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Preprocessor(nn.Module):
    """A fitted bijection from rows x to rows y, each feature by itself.

    Attributes
    ----------
    random : bool
        Whether training adds noise, so that every batch must be mapped anew.
    """

    random = False

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Y (n, d) and log |det dy/dx| (n,)."""
        raise NotImplementedError

    def inverse(self, y: Tensor) -> Tensor:
        """X (n, d) for y (n, d)."""
        raise NotImplementedError

    def noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """X (n, d) with the noise of training."""
        raise NotImplementedError

    def log_cell(self) -> float:
        """Log width, in units of x, of the cell that the noise fills."""
        raise NotImplementedError
