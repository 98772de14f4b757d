"""Sums of outer products of centred rows, a class at a time: full, shared by all, diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import torch
import torch.distributed as dist
from torch import Tensor

Group = dist.ProcessGroup | None


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Rows of one batch, less the mean that their class has in the batch.

    Attributes
    ----------
    classes, counts : Tensor, shape (q,)
        The classes of the batch, and how many rows each has there.
    index : Tensor, shape (b,)
        Which of `classes` each row belongs to.
    rows : Tensor, shape (b, p)
        The rows, centred.
    bridge : Tensor, shape (q, p)
        ``sqrt(n1 n2 / (n1 + n2)) (m2 - m1)``: what the move of the mean adds to the scatter, as a
        row.
    """

    classes: Tensor
    counts: Tensor
    index: Tensor
    rows: Tensor
    bridge: Tensor


class Scatter(Protocol):
    """What sums of outer products of k classes can do; all of it in place."""

    def add(self, batch: CentredRows) -> None:
        """Add the rows of a batch and their bridges."""

    def merge(self, other: Self, bridge: Tensor) -> None:
        """Add the sums of others, and one row a class, `bridge` (k, p)."""

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""


class FullScatter:
    """A scatter matrix per class, (k, p, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = origin.new_zeros(*origin.shape, origin.shape[1])

    def add(self, batch: CentredRows) -> None:
        """Add the rows of a batch and their bridges."""
        parts = torch.split(batch.rows[batch.index.argsort()], batch.counts.tolist())
        for c, rows, bridge in zip(batch.classes.tolist(), parts, batch.bridge, strict=True):
            joined = torch.cat((rows, bridge[None]))
            self.sums[c].addmm_(joined.mT, joined)

    def merge(self, other: Self, bridge: Tensor) -> None:
        """Add the sums of others, and one row a class, `bridge` (k, p)."""
        self.sums += other.sums
        for total, row in zip(self.sums, bridge, strict=True):
            total.addr_(row, row)

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""
        dist.all_reduce(self.sums, group=group)

    def times(self, classes: Tensor, e: Tensor) -> Tensor:
        """Scatter of each of `classes` (q,) times its row of `e` (q, p)."""
        pairs = zip(classes.tolist(), e, strict=True)
        return torch.stack([self.sums[c] @ row for c, row in pairs])

    def spread(self, classes: Tensor) -> Tensor:
        """Trace of each, shape (q, 1)."""
        return self.sums.diagonal(dim1=1, dim2=2)[classes].sum(1, keepdim=True)


class TiedScatter:
    """One scatter matrix of the residuals from the class means, (p, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = origin.new_zeros(origin.shape[1], origin.shape[1])

    def add(self, batch: CentredRows) -> None:
        """Add the rows of a batch and their bridges."""
        joined = torch.cat((batch.rows, batch.bridge))
        # A single row of a class, less its mean, is nothing.
        joined = joined[joined.any(1)]
        self.sums.addmm_(joined.mT, joined)

    def merge(self, other: Self, bridge: Tensor) -> None:
        """Add the sums of others, and one row a class, `bridge` (k, p)."""
        self.sums += other.sums
        self.sums.addmm_(bridge.mT, bridge)

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""
        dist.all_reduce(self.sums, group=group)


class DiagonalScatter:
    """Sums of squares per class and feature, (k, p)."""

    def __init__(self, origin: Tensor) -> None:
        self.sums = torch.zeros_like(origin)

    def add(self, batch: CentredRows) -> None:
        """Add the rows of a batch and their bridges."""
        squares = batch.bridge.square().index_add_(0, batch.index, batch.rows.square())
        self.sums.index_add_(0, batch.classes, squares)

    def merge(self, other: Self, bridge: Tensor) -> None:
        """Add the sums of others, and one row a class, `bridge` (k, p)."""
        self.sums += other.sums
        self.sums += bridge.square()

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""
        dist.all_reduce(self.sums, group=group)

    def times(self, classes: Tensor, e: Tensor) -> Tensor:
        """Scatter of each of `classes` (q,) times its row of `e` (q, p)."""
        return self.sums[classes] * e

    def spread(self, classes: Tensor) -> Tensor:
        """The sums themselves, shape (q, p): by coordinate."""
        return self.sums[classes]
