"""Count, mean and scatter of each class of rows that come in batches, as torch tensors; mergeable.

Their factors are made by the code of `dipedl.density.GDADensity`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Self

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..gaussians.factor import GaussianFactor, factorise
from ..gaussians.moments import Moments, Shrinkage, class_shrinkage
from ..maths.arrays import to_numpy
from .checks import check_class_indices

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class ClassMoments:
    """Moments of k classes in float64, in one pass; ``+=`` merges those of two sets of rows.

    Means are held as the first row of the class (`origin` (k, p), on the device of the sums) plus
    an offset, and a batch is centred before its squares are summed: no digit is lost where features
    lie far from zero, and rows that are all the same have no scatter at all. The sums of outer
    products are in `scatter`. Chan, Golub, LeVeque, "Algorithms for computing the sample variance",
    The American Statistician 37 (1983).
    """

    def __init__(self, scatter: Any, origin: Tensor) -> None:
        self.scatter, self.origin = scatter, origin
        self.weight = origin.new_zeros(len(origin))
        self.offset = torch.zeros_like(origin)

    def add(self, X: Tensor, y: Tensor) -> None:
        """Add rows X (b, p) of classes y (b,)."""
        classes, index, counts = torch.unique(y, return_inverse=True, return_counts=True)
        rows = X.to(self.origin)
        self._set_origin(rows, classes, index, counts)
        rows = rows - self.origin[y]
        sums = rows.new_zeros(len(classes), rows.shape[1]).index_add_(0, index, rows)
        mean = sums / counts[:, None]
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
        classes = torch.arange(len(total), device=total.device)
        self.scatter.append(gap * (mine * share).sqrt(), classes)
        self.offset = torch.where(mine > 0, self.offset + gap * share, other.offset)
        self.weight = total[:, 0]
        return self

    def per_class(self) -> Iterator[Moments]:
        """Yield the moments of each class as numpy arrays; of a full or diagonal scatter."""
        for c, weight in enumerate(self.weight.tolist()):
            origin, offset, scatter = self.origin[c], self.offset[c], self.scatter.sums[c]
            yield Moments(weight, to_numpy(origin), to_numpy(offset), to_numpy(scatter))

    def pool(self) -> Moments:
        """Return the moments of the residuals from the class means; of a tied scatter."""
        zero = np.zeros(self.origin.shape[1])
        return Moments(float(self.weight.sum()), zero, zero, to_numpy(self.scatter.sums))


def class_factors(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[GaussianFactor]:
    """Yield the factor of each class; of a full or diagonal scatter."""
    trace, weight = moments.scatter.trace(), float(moments.weight.sum())
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


class _Sums:
    """Sums that are added to merge them."""

    sums: Tensor

    def merge(self, other: Self) -> None:
        self.sums += other.sums


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
    check_class_indices("labels", indices, n_classes)
    return indices


def merge_over(group: dist.ProcessGroup, local: ClassMoments | None) -> ClassMoments:
    """Merge the moments of all processes of a group, in the order of their ranks."""
    sizes: list[tuple[int, ...] | None] = [None] * dist.get_world_size(group)
    mine = None if local is None else tuple(local.origin.shape)
    dist.all_gather_object(sizes, mine, group=group)
    if len({size for size in sizes if size is not None}) != 1:
        raise ValueError(
            "finish(group) needs rows, with the same numbers of classes and features in every "
            f"process that has any; got (classes, features) {sizes}"
        )
    device = torch.device("cpu") if local is None else local.origin.device
    merged: ClassMoments | None = None
    for rank, size in enumerate(sizes):
        if size is not None:
            buffer = BytesIO()
            if rank == dist.get_rank(group):
                torch.save(local, buffer)
            data: list[Any] = [buffer.getvalue()]
            dist.broadcast_object_list(data, dist.get_global_rank(group, rank), group)
            part = torch.load(BytesIO(data[0]), device, weights_only=False)
            merged = part if merged is None else merged.__iadd__(part)
    assert merged is not None
    return merged
