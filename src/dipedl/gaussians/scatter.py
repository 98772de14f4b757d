"""Sums of outer products of centred rows, by class: full, shared by all classes, diagonal."""

from __future__ import annotations

from typing import Protocol, Self

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None


class Scatter(Protocol):
    """What sums of outer products of k classes can do; all of it in place."""

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p) of `classes` (m,)."""

    def merge(self, other: Self) -> None:
        """Add the sums of others."""

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""


class _Sums:
    """Sums that processes simply add up."""

    sums: Tensor

    def merge(self, other: Self) -> None:
        self.sums += other.sums

    def all_reduce(self, group: Group) -> None:
        dist.all_reduce(self.sums, group=group)


class FullScatter(_Sums):
    """A scatter matrix per class, (k, p, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = origin.new_zeros(*origin.shape, origin.shape[1])

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p) of `classes` (m,)."""
        for c, at in by_class(classes):
            part = rows[at]
            self.sums[c].addmm_(part.mT, part)

    def times(self, classes: Tensor, e: Tensor) -> Tensor:
        """Scatter of each of `classes` (q,) times its row of `e` (q, p)."""
        pairs = zip(classes.tolist(), e, strict=True)
        return torch.stack([self.sums[c] @ row for c, row in pairs])

    def spread(self, classes: Tensor) -> Tensor:
        """Trace of each, shape (q, 1)."""
        return self.sums.diagonal(dim1=1, dim2=2)[classes].sum(1, keepdim=True)


class TiedScatter(_Sums):
    """One scatter matrix of the residuals from the class means, (p, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = origin.new_zeros(origin.shape[1], origin.shape[1])

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p)."""
        # A single row of a class, less its mean, is nothing.
        rows = rows[rows.any(1)]
        self.sums.addmm_(rows.mT, rows)


class DiagonalScatter(_Sums):
    """Sums of squares per class and feature, (k, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = torch.zeros_like(origin)

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p) of `classes` (m,)."""
        self.sums.index_add_(0, classes, rows.square())

    def times(self, classes: Tensor, e: Tensor) -> Tensor:
        """Scatter of each of `classes` (q,) times its row of `e` (q, p)."""
        return self.sums[classes] * e

    def spread(self, classes: Tensor) -> Tensor:
        """The sums themselves, shape (q, p): by coordinate."""
        return self.sums[classes]


def by_class(classes: Tensor) -> list[tuple[int, Tensor]]:
    """Each class among `classes` (m,), and where it stands, in order."""
    present, counts = torch.unique(classes, return_counts=True)
    parts = torch.split(classes.argsort(stable=True), counts.tolist())
    return list(zip(present.tolist(), parts, strict=True))
