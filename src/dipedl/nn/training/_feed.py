"""Training batches on their device, and their losses, without waiting for a GPU."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

#: Share of the free GPU memory before training that the data may take; the rest is for weights,
#: optimiser and activations.
_SHARE = 0.5
#: Devices on which reading a number waits for all pending work.
_ASYNCHRONOUS = ("cuda",)


class Feed:
    """Batches of tensors from the CPU: kept on a GPU if all fit, else copied one by one."""

    def __init__(self, data: tuple[Tensor, ...], device: torch.device) -> None:
        self.device = device
        self.is_resident = device.type == "cuda" and _fits(data, device)
        self.data = tuple(part.to(device) for part in data) if self.is_resident else data

    def batches(self, size: int, generator: torch.Generator) -> list[Tensor]:
        """All row numbers, shuffled, in batches for `take`; a single last row joins another."""
        rows = torch.randperm(len(self.data[0]), generator=generator, device=generator.device)
        rows = rows.to(self.data[0].device)
        parts = list(torch.split(rows, size))
        if len(parts) > 1 and size > 1 and len(parts[-1]) == 1:
            parts[-2:] = [torch.cat(parts[-2:])]
        return parts

    def take(self, rows: Tensor) -> list[Tensor]:
        """The given rows of every tensor, on the device."""
        parts = [part[rows] for part in self.data]
        if self.device.type == "cuda" and not self.is_resident:
            # a copy from pinned memory runs during the computation
            return [part.pin_memory().to(self.device, non_blocking=True) for part in parts]
        return [part.to(self.device) for part in parts]


class EpochLosses:
    """Losses of the steps of one epoch: read at once on a CPU, after the epoch on a GPU.

    `lengths` are the rows of each batch. NaN or an infinite loss raises NotFiniteLoss.
    """

    def __init__(self, lengths: list[int], device: torch.device) -> None:
        self.lengths, self.losses = lengths, list[Any]()
        self.deferred = device.type in _ASYNCHRONOUS

    def add(self, step: int, loss: Tensor) -> None:
        self.losses.append(loss.detach() if self.deferred else _finite(step, loss.item()))

    def mean(self) -> float:
        if self.deferred:
            # one transfer, the only wait for the GPU in an epoch
            values = torch.stack(self.losses).tolist()
            self.losses = [_finite(step, value) for step, value in enumerate(values)]
        total = 0.0
        for value, length in zip(self.losses, self.lengths, strict=True):
            total += value * length
        return total / sum(self.lengths)


class NotFiniteLoss(Exception):
    """Step (from 0) and value of a loss that is NaN or infinite."""


def _finite(step: int, value: float) -> float:
    if not math.isfinite(value):
        raise NotFiniteLoss(step, value)
    return value


def _fits(data: tuple[Tensor, ...], device: torch.device) -> bool:
    free, _ = torch.cuda.mem_get_info(device)
    return sum(part.numel() * part.element_size() for part in data) <= _SHARE * free
