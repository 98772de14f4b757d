"""Count, mean and scatter of each class of rows that come in batches, as torch tensors; mergeable.

Their factors are made by the code of `dipedl.density.GDADensity`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, Self

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..gaussians.factor import GaussianFactor, factorise
from ..gaussians.moments import Moments, Shrinkage, class_shrinkage, pool
from ..maths.arrays import to_numpy

Group = dist.ProcessGroup | None
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class ClassMoments:
    """Moments of k classes in float64, in one pass; ``+=`` merges those of two sets of rows.

    Means are held as the first row of the class (`origin` (k, p), on the device of the sums) plus
    an offset, and a batch is centred before its squares are summed: no digit is lost where features
    lie far from zero, and rows that are all the same have no scatter at all. The sums of outer
    products are in `scatter`. Chan, Golub, LeVeque, "Algorithms for computing the sample variance",
    The American Statistician 37 (1983).
    """

    def __init__(self, scatter: Scatter, origin: Tensor) -> None:
        self.scatter, self.origin = scatter, origin
        self.weight = origin.new_zeros(len(origin))
        self.offset = torch.zeros_like(origin)

    def add(self, X: Tensor, y: Tensor) -> None:
        """Add rows X (b, p) of classes y (b,)."""
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
        # The move of the mean adds to the scatter what one more row would.
        self.scatter.append(torch.cat((rows, bridge)), torch.cat((y, classes)))
        self.offset[classes] += gap * counts[:, None] / after
        self.weight[classes] = after[:, 0]

    def _set_origin(self, X: Tensor, classes: Tensor, index: Tensor, counts: Tensor) -> None:
        """Set the origin of each new class to its first row."""
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
        share = theirs / total.clamp_min(1)
        self.scatter.merge(other.scatter)
        self.scatter.append(gap * (mine * share).sqrt(), _classes(total))
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
        self.scatter.append(e * mine.sqrt(), _classes(mine))
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
        """Yield the moments of each class as numpy arrays; of a full or diagonal scatter."""
        sums = self.scatter_per_class().sums
        for c in range(len(self.weight)):
            yield self._as_numpy(sums[c], c)

    def scatter_per_class(self) -> FullScatter | DiagonalScatter:
        """Return the scatter; TypeError if it is not held per class."""
        if isinstance(self.scatter, FullScatter | DiagonalScatter):
            return self.scatter
        raise TypeError(f"{type(self.scatter).__name__} holds no scatter per class")

    def _as_numpy(self, sums: Tensor, c: int) -> Moments:
        origin, offset, scatter = map(to_numpy, (self.origin[c], self.offset[c], sums))
        return Moments(float(self.weight[c]), origin, offset, scatter)

    def pool(self) -> Moments:
        """Return the moments of the residuals from the class means."""
        if isinstance(self.scatter, TiedScatter):
            zero = np.zeros(self.origin.shape[1])
            return Moments(float(self.weight.sum()), zero, zero, to_numpy(self.scatter.sums))
        return pool(self.per_class())


def _classes(like: Tensor) -> Tensor:
    return torch.arange(len(like), device=like.device)


def _sums_by(index: Tensor, values: Tensor, classes: Tensor) -> Tensor:
    """Sum the rows of each of `classes` (q,), shape (q, p)."""
    return values.new_zeros(len(classes), values.shape[1]).index_add_(0, index, values)


def class_factors(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[GaussianFactor]:
    """Yield the factor of each class; of a full or diagonal scatter."""
    trace, weight = moments.scatter_per_class().trace(), float(moments.weight.sum())
    pooled = None if shrinkage in (None, 0) else trace / weight / moments.origin.shape[1]
    for c, m in enumerate(moments.per_class()):
        yield _factor(m, *class_shrinkage(m, shrinkage, pooled), f"class {c}")


def tied_factor(moments: ClassMoments, shrinkage: Shrinkage) -> GaussianFactor:
    """Factor the covariance of the residuals from the class means."""
    pooled = moments.pool()
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


class Scatter(Protocol):
    """Sums of outer products of centred rows of k classes, changed in place."""

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p) of `classes` (m,)."""

    def merge(self, other: Self) -> None:
        """Add the sums of others."""

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""


class _Sums:
    """Sums that are added to merge them."""

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

    def trace(self) -> float:
        """Return the sum of the traces of all classes."""
        return float(self.sums.diagonal(dim1=1, dim2=2).sum())


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

    def trace(self) -> float:
        """Return the sum of the traces of all classes."""
        return float(self.sums.sum())


def by_class(classes: Tensor) -> list[tuple[int, Tensor]]:
    """List each class among `classes` (m,) with its places, in order."""
    present, counts = torch.unique(classes, return_counts=True)
    parts = torch.split(classes.argsort(stable=True), counts.tolist())
    return list(zip(present.tolist(), parts, strict=True))


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """Compute without gradients and autocast, on tensors that a later batch may change in place."""
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def check_features(features: Any, p: int | None = None) -> None:
    """Raise unless `features` is a floating tensor of rank 2, of `p` features if that is given."""
    if not isinstance(features, Tensor) or not features.is_floating_point():
        came = features.dtype if isinstance(features, Tensor) else type(features).__name__
        raise TypeError(f"features must be a tensor of floating type, got {came}")
    if features.ndim != 2:
        raise ValueError(
            f"features must have shape (rows, features), got {tuple(features.shape)}; average maps "
            "over their positions, or flatten them"
        )
    if p is not None and features.shape[1] != p:
        raise ValueError(f"features must have {p} columns, as in the fit, got {features.shape[1]}")


def check_finite(features: Tensor) -> None:
    """Raise if `features` hold NaN or infinity, and say what half precision has to do with it."""
    wrong = ~features.isfinite()
    if not wrong.any():
        return
    rows = wrong.any(1).nonzero()[:5, 0].tolist()
    remedy = "look for NaN or overflow in the inputs or the network"
    if features.dtype == torch.float16:
        remedy = (
            "float16 overflows at 65504: compute features in bfloat16, or with autocast off while "
            "fitting"
        )
    raise ValueError(
        f"features must be finite, got {int(wrong.sum())} NaN or infinite values of "
        f"{features.dtype} (first rows {rows} of the batch); {remedy}"
    )


def check_labels(labels: Any, features: Tensor, n_classes: int) -> Tensor:
    """Return labels as int64 on the device of the features; raise unless each row has one."""
    if labels is None:
        raise ValueError(
            "a class-conditional density needs labels, got None: let the loader yield (inputs, "
            "labels)"
        )
    if not isinstance(labels, Tensor) or labels.dtype not in _INTEGERS:
        came = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise TypeError(f"labels must be a tensor of integers (class indices), got {came}")
    if labels.shape != features.shape[:1]:
        raise ValueError(
            f"labels must have one class index a row, shape ({len(features)},), got "
            f"{tuple(labels.shape)}"
        )
    indices: Tensor = labels.to(features.device, torch.int64)
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n_classes:
        raise ValueError(
            f"labels must be class indices 0..{n_classes - 1}, got "
            f"{int(indices.min())}..{int(indices.max())}; number the classes from 0"
        )
    return indices


def merge_over(
    group: Group, local: ClassMoments | None, start: Callable[[Tensor], ClassMoments]
) -> ClassMoments:
    """Merge the moments of all processes; `start` makes those of no row, like origins (k, p)."""
    if not (dist.is_available() and dist.is_initialized()):
        raise ValueError(
            "synchronise needs a process group: call torch.distributed.init_process_group first, "
            "or do without it in a single process"
        )
    sizes: list[tuple[int, ...] | None] = [None] * dist.get_world_size(group)
    mine = None if local is None else tuple(local.origin.shape)
    dist.all_gather_object(sizes, mine, group=group)
    known = {size for size in sizes if size is not None}
    if len(known) != 1:
        raise ValueError(
            "synchronise needs rows, with the same numbers of classes and features in every "
            f"process that has any; got (classes, features) {sizes}"
        )
    if local is None:
        # Collectives of NCCL take tensors on the device of their process.
        on_gpu = dist.get_backend(group) == "nccl"
        device = f"cuda:{torch.cuda.current_device()}" if on_gpu else "cpu"
        local = start(torch.zeros(known.pop(), dtype=torch.float64, device=device))
    local.all_reduce(group)
    return local
