"""Count, mean and scatter of each class of rows that stream, as torch tensors; mergeable.

Their factors are made by the code of `dipedl.density.GDADensity`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..maths.array_namespace import to_numpy
from .by_class import pooled
from .factor import GaussianFactor, factorise
from .higher_moments import HigherMoments, dot
from .moments import Moments
from .scatter import DiagonalScatter, FullScatter, Group, Scatter, TiedScatter
from .shrinkage import Shrinkage, class_shrinkage


class ClassMoments:
    """Moments of k classes in float64, in one pass; ``+=`` merges those of two sets of rows.

    Means are held as the first row of the class (`origin` (k, p), on the device of the sums) plus
    an offset, and a batch is centred before its squares are summed: no digit is lost where features
    lie far from zero, and rows that are all the same have no scatter at all. The sums of outer
    products are in `scatter`; `higher` also holds what Ledoit-Wolf shrinkage needs. Chan, Golub,
    LeVeque, "Algorithms for computing the sample variance", The American Statistician 37 (1983).
    """

    def __init__(self, scatter: Scatter, origin: Tensor, higher: bool = False) -> None:
        self.scatter, self.origin = scatter, origin
        self.weight = origin.new_zeros(len(origin))
        self.offset = torch.zeros_like(origin)
        self.higher: HigherMoments | None = None
        if higher:
            quartic = torch.zeros_like(self.scatter_per_class().spread(_classes(origin)))
            self.higher = HigherMoments(torch.zeros_like(origin), quartic)

    def add(self, X: Tensor, y: Tensor) -> None:
        """Take in rows X (b, p) of classes y (b,)."""
        classes, index, counts = torch.unique(y, return_inverse=True, return_counts=True)
        rows = X.to(self.origin)
        self._set_origin(rows, classes, index, counts)
        rows = rows - self.origin[y]
        mean = _sums_by(index, rows, classes) / counts[:, None]
        rows -= mean[index]
        gap = mean - self.offset[classes]
        before = self.weight[classes][:, None]
        after = before + counts[:, None]
        bridge = gap * (before * counts[:, None] / after).sqrt()
        if self.higher is not None:
            self.higher[classes] = self._higher_with(classes, index, counts, rows, gap)
        # The move of the mean adds to the scatter what one more row would.
        self.scatter.append(torch.cat((rows, bridge)), torch.cat((y, classes)))
        self.offset[classes] += gap * counts[:, None] / after
        self.weight[classes] = after[:, 0]

    def _higher_with(
        self, classes: Tensor, index: Tensor, counts: Tensor, rows: Tensor, gap: Tensor
    ) -> HigherMoments:
        """Higher moments of the classes of a batch, its centred rows included."""
        diagonal = isinstance(self.scatter, DiagonalScatter)
        n, before = counts[:, None].to(gap), self.weight[classes][:, None]
        e = gap * before / (before + n)
        square, along = dot(rows, rows, diagonal), dot(rows, e[index], diagonal)
        parts = (square * rows, square * square, along * rows, square)
        cubic, quartic, times, spread = (_sums_by(index, part, classes) for part in parts)
        new = HigherMoments(cubic, quartic).about(e, n, times, spread)
        return self._about(classes, before, -gap * n / (before + n)) + new

    def _about(self, classes: Tensor, weight: Tensor, e: Tensor) -> HigherMoments:
        """Higher moments of classes (q,) of weight (q, 1) about the points mean - e, (q, p)."""
        if self.higher is None:
            raise TypeError("both need the higher moments, and one was made without them")
        own = self.scatter_per_class()
        return self.higher[classes].about(e, weight, own.times(classes, e), own.spread(classes))

    def _set_origin(self, X: Tensor, classes: Tensor, index: Tensor, counts: Tensor) -> None:
        """The first row of each class that is new."""
        first = index.argsort(stable=True)[counts.cumsum(0) - counts]
        new = self.weight[classes] == 0
        self.origin[classes[new]] = X[first[new]]

    def __iadd__(self, other: Self) -> Self:
        mine, theirs = self.weight[:, None], other.weight[:, None]
        total = mine + theirs
        # A class that one side alone has seen has no gap.
        self.origin = torch.where(mine > 0, self.origin, other.origin)
        gap = (other.origin - self.origin) + (other.offset - self.offset)
        gap = torch.where((mine > 0) & (theirs > 0), gap, 0.0)
        share, everyone = theirs / total.clamp_min(1), _classes(total)
        if self.higher is not None:
            moved = self._about(everyone, mine, -gap * share)
            rest = gap * mine / total.clamp_min(1)
            self.higher = moved + other._about(everyone, theirs, rest)
        self.scatter.merge(other.scatter)
        self.scatter.append(gap * (mine * share).sqrt(), everyone)
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
        everyone = _classes(mine)
        if self.higher is not None:
            self.higher = self._about(everyone, mine, e)
            dist.all_reduce(self.higher.cubic, group=group)
            dist.all_reduce(self.higher.quartic, group=group)
        self.scatter.append(e * mine.sqrt(), everyone)
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
        sums = self.scatter_per_class().sums
        for c in range(len(self.weight)):
            yield self._as_numpy(sums[c], c)

    def scatter_per_class(self) -> FullScatter | DiagonalScatter:
        """The scatter; TypeError if it is not held per class."""
        if isinstance(self.scatter, FullScatter | DiagonalScatter):
            return self.scatter
        raise TypeError(f"{type(self.scatter).__name__} holds no scatter per class")

    def _as_numpy(self, sums: Tensor, c: int) -> Moments:
        origin, offset, scatter = map(to_numpy, (self.origin[c], self.offset[c], sums))
        higher = None
        if self.higher is not None:
            higher = HigherMoments(to_numpy(self.higher.cubic[c]), to_numpy(self.higher.quartic[c]))
        return Moments(float(self.weight[c]), origin, offset, scatter, higher)

    def pooled(self) -> Moments:
        """Moments of the residuals from the class means."""
        if isinstance(self.scatter, TiedScatter):
            zero = np.zeros(self.origin.shape[1])
            return Moments(float(self.weight.sum()), zero, zero, to_numpy(self.scatter.sums))
        return pooled(self.per_class())


def _classes(like: Tensor) -> Tensor:
    return torch.arange(len(like), device=like.device)


def _sums_by(index: Tensor, values: Tensor, classes: Tensor) -> Tensor:
    """Sums over the rows of each of `classes` (q,), shape (q, ...)."""
    return values.new_zeros(len(classes), values.shape[1]).index_add_(0, index, values)


def class_factors(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[GaussianFactor]:
    """The factor of each class in turn; of a full or diagonal scatter."""
    pooled = None if shrinkage in (None, 0) else _pooled_variance(moments)
    for c, m in enumerate(moments.per_class()):
        yield _factor(m, *class_shrinkage(m, shrinkage, pooled), f"class {c}")


def tied_factor(moments: ClassMoments, shrinkage: Shrinkage) -> GaussianFactor:
    """The factor of the covariance of the residuals from the class means."""
    pooled = moments.pooled()
    return _factor(pooled, *class_shrinkage(pooled, shrinkage, None), "the tied covariance")


def _factor(moments: Moments, intensity: float, target: float, who: str) -> GaussianFactor:
    try:
        return factorise(moments, intensity, target, who)
    except ValueError as error:
        # The remedy by the names that it has here.
        remedy = (
            str(error).replace("covariance_type=", "covariance=").replace("'diag'", "'diagonal'")
        )
        raise ValueError(remedy) from None


def _pooled_variance(moments: ClassMoments) -> float:
    everyone = torch.arange(len(moments.weight), device=moments.weight.device)
    trace = moments.scatter_per_class().spread(everyone).sum()
    return float(trace / moments.weight.sum() / moments.origin.shape[1])
