"""Third and fourth powers of centred rows, which Ledoit-Wolf shrinkage needs."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from .scatter import CentredRows, DiagonalScatter, FullScatter, Group


class FourthPowers:
    """Sums of ``|d|^2 d`` and ``|d|^4`` per class; by coordinate where the scatter is diagonal.

    The same shifts as `dipedl.gaussians.Moments`. Each method is called before the scatter and the
    mean take in what is new.
    """

    def __init__(self, scatter: FullScatter | DiagonalScatter, n_classes: int, p: int) -> None:
        self.scatter = scatter
        self.diagonal = isinstance(scatter, DiagonalScatter)
        self.cubic = scatter.sums.new_zeros(n_classes, p)
        self.quartic = scatter.sums.new_zeros(n_classes, p if self.diagonal else 1)

    def add(self, batch: CentredRows, weight: Tensor, gap: Tensor) -> None:
        """Take in a batch; `weight` (k,) and `gap` (q, p) are those before it."""
        at, n = batch.classes, batch.counts.to(gap.dtype)[:, None]
        before = weight[at][:, None]
        e = gap * before / (before + n)
        square = self._dot(batch.rows, batch.rows)
        along = self._dot(batch.rows, e[batch.index])
        cubic = self._by_class(batch, square * batch.rows)
        quartic = self._by_class(batch, square * square)
        spread, times = self._by_class(batch, square), self._by_class(batch, along * batch.rows)
        new = self._shifted(e, n, times, spread, cubic, quartic)
        self.recentre(at, before, -gap * n / (before + n))
        self.cubic[at] += new[0]
        self.quartic[at] += new[1]

    def merge(self, other: FourthPowers, mine: Tensor, theirs: Tensor, gap: Tensor) -> None:
        """Take in the sums of others; weights `mine` and `theirs` (k, 1), `gap` (k, p)."""
        total = (mine + theirs).clamp_min(1)
        at = mine.new_ones(len(mine)).nonzero()[:, 0]
        self.recentre(at, mine, -gap * theirs / total)
        cubic, quartic = other._about(at, theirs, gap * mine / total)
        self.cubic += cubic
        self.quartic += quartic

    def recentre(self, at: Tensor, weight: Tensor, e: Tensor) -> None:
        """The sums of classes `at` (q,) about the point mean - e; weight (q, 1), e (q, p)."""
        self.cubic[at], self.quartic[at] = self._about(at, weight, e)

    def all_reduce(self, group: Group) -> None:
        """Replace the sums by those of all processes."""
        dist.all_reduce(self.cubic, group=group)
        dist.all_reduce(self.quartic, group=group)

    def _about(self, at: Tensor, weight: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        times, spread = self.scatter.times(at, e), self.scatter.spread(at)
        return self._shifted(e, weight, times, spread, self.cubic[at], self.quartic[at])

    def _shifted(
        self, e: Tensor, n: Tensor, times: Tensor, spread: Tensor, cubic: Tensor, quartic: Tensor
    ) -> tuple[Tensor, Tensor]:
        square = self._dot(e, e)
        quartic = quartic + 4 * (self._dot(e, cubic) + self._dot(e, times))
        quartic = quartic + 2 * square * spread + n * square * square
        return cubic + spread * e + 2 * times + n * square * e, quartic

    def _dot(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b if self.diagonal else (a * b).sum(1, keepdim=True)

    @staticmethod
    def _by_class(batch: CentredRows, values: Tensor) -> Tensor:
        """Sums over the rows of each class of the batch."""
        zero = values.new_zeros(len(batch.classes), values.shape[1])
        return zero.index_add_(0, batch.index, values)
