"""Count, mean and scatter of each class of rows that stream, as torch tensors; mergeable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Self

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from .higher_moments import FourthPowers
from .moments import Moments
from .scatter import CentredRows, DiagonalScatter, FullScatter, Group, Scatter, TiedScatter


class ClassMoments:
    """Moments of k classes in float64, in one pass; ``+`` merges those of two sets of rows.

    Means are held as the first row of the class (`origin`) plus an offset, and a batch is centred
    before its squares are summed: no digit is lost where features lie far from zero, and rows that
    are all the same have no scatter at all.

    Parameters
    ----------
    scatter : Scatter
        Takes the sums of outer products; in place.
    origin : Tensor, shape (k, p)
        In float64 on the device of the sums; the rows of classes that are yet to come are ignored.
    fourth : bool, default=False
        Also hold what Ledoit-Wolf shrinkage needs; of a full or diagonal scatter.

    References
    ----------
    Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American Statistician
    37 (1983).
    """

    def __init__(self, scatter: Scatter, origin: Tensor, fourth: bool = False) -> None:
        self.scatter, self.origin = scatter, origin
        self.weight = origin.new_zeros(len(origin))
        self.offset = torch.zeros_like(origin)
        self.fourth: FourthPowers | None = None
        if fourth:
            if not isinstance(scatter, FullScatter | DiagonalScatter):
                raise TypeError(
                    f"fourth powers need a full or diagonal scatter, got {type(scatter).__name__}"
                )
            self.fourth = FourthPowers(scatter, *origin.shape)

    def add(self, X: Tensor, y: Tensor) -> None:
        """Take in rows X (b, p) of classes y (b,)."""
        classes, index, counts = torch.unique(y, return_inverse=True, return_counts=True)
        rows = X.to(self.origin)
        self._set_origin(rows, classes, index, counts)
        rows = rows - self.origin[y]
        mean = rows.new_zeros(len(classes), rows.shape[1]).index_add_(0, index, rows)
        mean /= counts[:, None]
        rows -= mean[index]
        gap = mean - self.offset[classes]
        before = self.weight[classes][:, None]
        after = before + counts[:, None]
        bridge = gap * (before * counts[:, None] / after).sqrt()
        batch = CentredRows(classes, counts, index, rows, bridge)
        if self.fourth is not None:
            self.fourth.add(batch, self.weight, gap)
        self.scatter.add(batch)
        self.offset[classes] += gap * counts[:, None] / after
        self.weight[classes] = after[:, 0]

    def _set_origin(self, X: Tensor, classes: Tensor, index: Tensor, counts: Tensor) -> None:
        """Of classes that are new: their first row."""
        first = index.argsort(stable=True)[counts.cumsum(0) - counts]
        new = self.weight[classes] == 0
        self.origin[classes[new]] = X[first[new]]

    def __iadd__(self, other: Self) -> Self:
        """Take in what `other` has seen."""
        mine, theirs = self.weight[:, None], other.weight[:, None]
        total = mine + theirs
        # A class that one side alone has seen has no gap.
        self.origin = torch.where(mine > 0, self.origin, other.origin)
        gap = (other.origin - self.origin) + (other.offset - self.offset)
        gap = torch.where((mine > 0) & (theirs > 0), gap, 0.0)
        if self.fourth is not None and other.fourth is not None:
            self.fourth.merge(other.fourth, mine, theirs, gap)
        share = theirs / total.clamp_min(1)
        self.scatter.merge(other.scatter, gap * (mine * share).sqrt())
        self.offset = torch.where(mine > 0, self.offset + gap * share, other.offset)
        self.weight = total[:, 0]
        return self

    def all_reduce(self, group: Group = None) -> None:
        """Replace the moments by those of the rows of all processes."""
        mine = self.weight[:, None].clone()
        self._share_origin(group)
        dist.all_reduce(self.weight, group=group)
        mean = mine * self.offset
        dist.all_reduce(mean, group=group)
        mean /= self.weight[:, None].clamp_min(1)
        # About the mean of all, sums of all processes simply add up.
        e = torch.where(mine > 0, self.offset - mean, 0.0)
        if self.fourth is not None:
            everyone = torch.arange(len(mine), device=mine.device)
            self.fourth.recentre(everyone, mine, e)
            self.fourth.all_reduce(group)
        self.scatter.add(_moved(e, mine))
        self.scatter.all_reduce(group)
        self.offset = mean

    def _share_origin(self, group: Group) -> None:
        """Hold each class about the origin of the first process that has seen it."""
        weights = [torch.empty_like(self.weight) for _ in range(dist.get_world_size(group))]
        dist.all_gather(weights, self.weight, group=group)
        first = (torch.stack(weights) > 0).to(torch.int64).argmax(0) == dist.get_rank(group)
        origin = torch.where(first[:, None], self.origin, 0.0)
        dist.all_reduce(origin, group=group)
        seen = self.weight[:, None] > 0
        self.offset = torch.where(seen, self.offset + (self.origin - origin), 0.0)
        self.origin = origin

    def per_class(self) -> Iterator[Moments]:
        """Of each class in turn, as numpy; of a full or diagonal scatter."""
        sums = self._sums()
        for c in range(len(self.weight)):
            yield self._as_numpy(sums[c], c)

    def _sums(self) -> Tensor:
        if isinstance(self.scatter, FullScatter | DiagonalScatter):
            return self.scatter.sums
        raise TypeError(f"{type(self.scatter).__name__} holds no scatter per class")

    def _as_numpy(self, sums: Tensor, c: int) -> Moments:
        weight, origin, offset = float(self.weight[c]), self.origin[c], self.offset[c]
        cubic, quartic = torch.zeros_like(offset), torch.zeros_like(offset)
        if self.fourth is not None:
            cubic, quartic = self.fourth.cubic[c], self.fourth.quartic[c]
        quartic = quartic if sums.ndim == 1 else quartic[0]
        parts = (origin, offset, sums, cubic, quartic)
        return Moments(weight, *(np.asarray(part.cpu().numpy()) for part in parts))

    def pooled(self) -> Moments:
        """Moments of the residuals from the class means."""
        zero = np.zeros(self.origin.shape[1])
        if isinstance(self.scatter, TiedScatter):
            weight, sums = float(self.weight.sum()), self.scatter.sums.cpu().numpy()
            return Moments(weight, zero, zero, sums, zero, np.zeros(()))
        return reduce(add, (replace(m, origin=zero, offset=zero) for m in self.per_class()))


def _moved(e: Tensor, weight: Tensor) -> CentredRows:
    """No rows, and as bridges what moving each class's mean by `e` adds."""
    classes = torch.arange(len(e), device=e.device)
    none = classes[:0]
    return CentredRows(classes, torch.zeros_like(classes), none, e[:0], e * weight.sqrt())
