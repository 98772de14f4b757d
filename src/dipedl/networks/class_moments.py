"""Count, mean and scatter of each class of rows that come in batches, as torch tensors; mergeable.

Their factors are made by the code of `dipedl.density.GDADensity`, or from a sketch of low rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional as F

from ..gaussians.factor import GaussianFactor, factorise
from ..gaussians.moments import Moments, Shrinkage, class_shrinkage, oas_intensity
from ..maths.arrays import EPS, to_numpy
from .checks import check_class_indices

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
# Of the directions of a sketch, this share guards the others (see `SketchScatter`).
_GUARDS = 0.25
# Rows wait until 8,000 of 2,048 features are together: a decomposition then takes in many.
_PENDING_BYTES = 1 << 26
_CLASSES_AT_ONCE = 64
_TINY = torch.finfo(torch.float64).tiny


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


class PrincipalParts(NamedTuple):
    """One class: directions (r, p), variances along them (r,), variance across them."""

    basis: Tensor
    inner: Tensor
    outer: float


def principal_parts(moments: ClassMoments, shrinkage: Shrinkage) -> Iterator[PrincipalParts]:
    """Yield ``C_c = U diag(l) U^T + psi (I - U U^T)`` of each class, shrunk as if it were full.

    That is probabilistic principal component analysis at its maximum-likelihood solution; `psi` is
    what the exact trace leaves for each direction that is not held. Tipping, Bishop, "Probabilistic
    principal component analysis", JRSS B 61 (1999), eq. 7-8.
    """
    scatter: SketchScatter = moments.scatter
    scatter.decompose()
    p = moments.origin.shape[1]
    pooled = float(scatter.energy.sum() / moments.weight.sum()) / p
    for c, n in enumerate(moments.weight.tolist()):
        basis, values, rest = _spectrum(scatter, c)
        level = float(scatter.energy[c]) / n / p
        intensity, target = _intensity(values / n, rest / n, level, n, p, shrinkage), level
        if level == 0 and shrinkage not in (None, 0):
            # As for a full covariance: all rows are the same point, which has no level.
            intensity, target = 1.0, pooled
        inner = (1 - intensity) * values / n + intensity * target
        r = len(values)
        outer = (1 - intensity) * rest / n / (p - r) + intensity * target if r < p else 0.0
        # A direction that explains less than the average of the others was not found, but guessed.
        parts = PrincipalParts(basis, inner.clamp_min(outer), outer or float(inner.max()))
        _check_regular(parts, c, n, p, intensity)
        yield parts


def _spectrum(scatter: SketchScatter, c: int) -> tuple[Tensor, Tensor, float]:
    """Return directions (r, p), their sums of squares (r,), and the sum of squares across them."""
    rows = scatter.sketch[c, : scatter.rank].double()
    values, total = rows.square().sum(1), float(scatter.energy[c])
    rest = total - float(values.sum())
    # What rounding of the sketch may leave is nothing.
    rest = rest if rest > 16 * torch.finfo(scatter.sketch.dtype).eps * total else 0.0
    return F.normalize(rows, dim=1, eps=_TINY), values, rest


def _intensity(
    variance: Tensor, rest: float, level: float, n: float, p: int, shrinkage: Shrinkage
) -> float:
    """Return `dipedl.gaussians.moments.shrinkage_intensity` from the spectrum."""
    if shrinkage != "oas":
        return float(shrinkage or 0.0)
    if level == 0 or p == 1:
        return float(level == 0)
    across = rest * rest / (p - len(variance)) if rest else 0.0
    mean_square = (float(variance.square().sum()) + across) / (level * p) ** 2
    return oas_intensity(mean_square, n, p)


def _check_regular(parts: PrincipalParts, c: int, n: float, p: int, intensity: float) -> None:
    values = (float(parts.inner.min()), float(parts.inner.max()), parts.outer)
    if max(values) <= 0:
        raise ValueError(
            f"class {c}: all samples are the same point (n_samples = {n:g}), so there is no "
            "spread; give it more distinct samples"
        )
    if min(values) <= p * EPS * max(values):
        raise ValueError(
            f"class {c}: the covariance of {p} features is singular (n_samples = {n:g}) and "
            f"shrinkage is {intensity:g}; use shrinkage='oas', or covariance='tied' or 'diagonal'"
        )


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


class SketchScatter:
    """Leading directions of each class's scatter, (k, l, p), and its trace to the last digit.

    Frequent Directions: rows are appended to the sketch, and when it is full a singular value
    decomposition leaves l of them. Only the last fifth, the guards, lose the first value that is
    left out; the `rank` directions before them lose nothing. Nothing is lost at all where the rows
    of a class span at most l dimensions. `dtype` is that of the sketch: in float32 that of 1,000
    classes, 2,048 features and rank 32 takes 0.31 GiB; decompositions and traces are in float64.

    Ghashami, Liberty, Phillips, Woodruff, "Frequent directions: simple and deterministic matrix
    sketching", SIAM Journal on Computing 45 (2016). Desai, Ghashami, Phillips, "Improved practical
    matrix sketching with guarantees", IEEE TKDE 28 (2016): the guards are its alpha = 0.2.
    """

    def __init__(self, origin: Tensor, rank: int, dtype: torch.dtype) -> None:
        k, p = origin.shape
        self.rank = min(rank, p)
        size = min(rank + max(1, round(rank * _GUARDS)), p)
        self.sketch = torch.zeros(k, size, p, dtype=dtype, device=origin.device)
        self.energy = origin.new_zeros(k)
        self._rows: list[Tensor] = []
        self._classes: list[Tensor] = []
        self._waiting = 0

    def append(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (m, p) of `classes` (m,); they wait until many are together."""
        energy = rows.to(self.energy).square().sum(1)
        self.energy.index_add_(0, classes, energy)
        # A single row of a class, less its mean, is nothing.
        some = energy > 0
        self._rows.append(rows[some].to(self.sketch.dtype))
        self._classes.append(classes[some])
        self._waiting += self._rows[-1].nbytes
        if self._waiting >= _PENDING_BYTES:
            self.decompose()

    def merge(self, other: Self) -> None:
        """Add the sums of others."""
        other.decompose()
        energy = self.energy + other.energy
        classes = torch.arange(len(energy), device=energy.device)
        for part in torch.split(classes, _CLASSES_AT_ONCE):
            rows = other.sketch[part]
            self.append(rows.flatten(0, 1), part.repeat_interleave(rows.shape[1]))
        self.energy = energy

    def decompose(self) -> None:
        """Add the waiting rows to the sketches."""
        if not self._rows:
            return
        rows, classes = torch.cat(self._rows), torch.cat(self._classes)
        self._rows, self._classes, self._waiting = [], [], 0
        for c, at in by_class(classes):
            sketch = self.sketch[c]
            sketch.copy_(leading_rows(torch.cat((sketch, rows[at])), len(sketch), self.rank))


def leading_rows(rows: Tensor, size: int, rank: int) -> Tensor:
    """Return orthogonal rows (size, p), longest first, with the outer products of `rows` (a, p).

    Of those after the first `rank`, the square of the first that is left out is taken away.
    """
    values, vectors = torch.linalg.eigh(rows.double() @ rows.double().mT)
    values, vectors = values.flip(0).clamp_min(0), vectors.flip(1)
    left_out = values[size] if len(values) > size else values.new_zeros(())
    values, vectors = values[:size], vectors[:, :size]
    reduced = values.clone()
    reduced[rank:] = (reduced[rank:] - left_out).clamp_min(0)
    # Below rounding of the largest there is no direction, only noise to be blown up.
    real = values > len(rows) * EPS * values[:1]
    scale = torch.where(real, (reduced / values.clamp_min(_TINY)), 0.0).sqrt()
    result = (vectors * scale).mT @ rows.double()
    return F.pad(result, (0, 0, 0, size - len(result))).to(rows.dtype)


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
