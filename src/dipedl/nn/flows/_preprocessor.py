"""Protocols of the preprocessing of a flow."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn


class Preprocessor(nn.Module, ABC):
    """A fitted bijection from rows x to rows y, each feature by itself."""

    @abstractmethod
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Y (n, d) and log |det dy/dx| (n,)."""

    @abstractmethod
    def inverse(self, y: Tensor) -> Tensor:
        """X (n, d) for y (n, d)."""


class NoisyPreprocessor(Preprocessor):
    """A preprocessor that adds new noise to every training batch."""

    @abstractmethod
    def noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """X (n, d) with the noise of training."""

    @abstractmethod
    def log_cell(self) -> float:
        """Log width, in units of x, of the cell that the noise fills."""
