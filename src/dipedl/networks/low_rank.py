"""Low-rank Gaussians: a sketch of each class's scatter, and distances by Woodbury's identity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from ..gaussians.moments import Shrinkage, oas_intensity
from ..maths.arrays import EPS
from .class_moments import ClassMoments, by_class
from .distances import BufferedModule, squared_distances, squared_gaps

# Of the directions of a sketch, this share guards the others (see `SketchScatter`).
_GUARDS = 0.25
# Rows wait until 8,000 of 2,048 features are together: a decomposition then takes in many.
_PENDING_BYTES = 1 << 26
_CLASSES_AT_ONCE = 64
_TINY = torch.finfo(torch.float64).tiny


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
    found = (vectors * scale).mT @ rows.double()
    return F.pad(found, (0, 0, 0, size - len(found))).to(rows.dtype)


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


class LowRankDistance(BufferedModule):
    """A subspace per class, with one variance across it.

    With ``y = x - m``, ``d^2 = (|y|^2 - |U^T y|^2) / psi + sum_i (u_i y)^2 / l_i``, by Woodbury's
    identity: two matrix products, for which the rows need no copy per class.
    """

    basis: Tensor
    projected_means: Tensor
    inner: Tensor
    outer: Tensor
    low_rank_means: Tensor
    between: Tensor

    def fill(self, parts: Iterator[PrincipalParts], means: Tensor, to: Tensor) -> list[float]:
        """Take the parts of k classes, `means` (k, p) in float64; buffers are like `to`.

        Returns the log-determinants.
        """
        k, p = means.shape
        log_det = []
        for c, (part, mean) in enumerate(zip(parts, means, strict=True)):
            if not c:
                # Filled in place: small tensors kept between large passing ones split the heap.
                r = len(part.inner)
                basis = to.new_empty(k, r, p)
                projected, inner, outer = (to.new_empty(k, n) for n in (r, r, 1))
            basis[c], inner[c], outer[c] = part.basis, part.inner, part.outer
            projected[c] = part.basis @ mean
            across = (p - r) * math.log(part.outer)
            log_det.append(float(part.inner.log().sum()) + across)
        self.basis, self.projected_means, self.inner = basis, projected, inner
        self.outer, self.low_rank_means = outer[:, 0], means.to(to)
        self.between = squared_gaps(means).to(to)
        return log_det

    def forward(self, X: Tensor) -> Tensor:
        """Squared distances (n, k) of rows X (n, p), which are centred as the means are."""
        squared = squared_distances(X, self.low_rank_means, self.between)
        blocks = (self.basis, self.projected_means, self.inner, self.outer)
        parts = []
        # Blocks of classes: what is held for a row is then no larger than a row.
        for start in range(0, len(self.basis), _CLASSES_AT_ONCE):
            at = slice(start, start + _CLASSES_AT_ONCE)
            basis, means, inner, outer = (block[at] for block in blocks)
            along = F.linear(X, basis.flatten(0, 1), -means.flatten())
            along = along.view(-1, *means.shape).square()
            across = (squared[:, at] - along.sum(2)).clamp_min(0)
            parts.append(across / outer + (along / inner).sum(2))
        return torch.cat(parts, dim=1)

    def mean_of(self, c: int, p: int) -> Tensor:
        """Mean (p,) of class c in float64, centred as rows are."""
        return self.low_rank_means[c].double()
