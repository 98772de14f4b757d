"""Mergeable sufficient statistics: those of A and those of B give those of both together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from .higher_moments import HigherMoments

__all__ = ["Moments"]

_CHUNK_BYTES = 1 << 21
#: From so many features on, and twice as many as rows, the rows themselves are the smaller form.
_WIDE = 256


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted mean and scatter, and the higher moments if asked for; ``+`` merges.

    The mean is held as a row of the data (`origin`) plus a small `offset`, so that no digit is lost
    when the data lie far from zero: chunks in any order agree to 1e-10 with one pass, with offsets
    up to 1e6.

    Attributes
    ----------
    weight : float
        Sum of the sample weights (the number of rows without weights).
    origin, offset : ndarray, shape (p,)
        ``mean = origin + offset``.
    scatter : ndarray, shape (p, p), or (p,) if diagonal, or (r, p) if thin
        Sum of ``w d d^T`` (or ``w d**2``) with d the centred row. Of wide data, of many more
        features than rows, a root R: the sum is ``R^T R``.
    higher : HigherMoments or None
        Sums of third and fourth powers, which Ledoit-Wolf shrinkage needs.

    References
    ----------
    Chan, Golub, LeVeque, "Algorithms for computing the sample variance", The American Statistician
    37 (1983). Ledoit, Wolf, "A well-conditioned estimator for large-dimensional covariance
    matrices", JMVA 88 (2004).
    """

    weight: float
    origin: np.ndarray
    offset: np.ndarray
    scatter: np.ndarray
    higher: HigherMoments | None = None

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        rows: np.ndarray | None = None,
        diagonal: bool = False,
        higher: bool = False,
    ) -> Moments:
        """Moments of rows of X (n, p), n >= 1, with optional weights (n,) >= 0.

        Works in chunks that fit the cache: no copy of X is made. An overflow shows as inf or NaN in
        the moments, without a warning, and is refused by what uses them.

        Parameters
        ----------
        X : ndarray, shape (n, p)
            Taken as float64.
        weights : ndarray, shape (n,), optional
            Counts each row that often.
        rows : integer array, optional
            Which rows of X to take; at least one. Default: all.
        diagonal : bool, default=False
            Hold only the diagonal of the scatter.
        higher : bool, default=False
            Hold the third and fourth powers too.
        """
        X = np.asarray(X, dtype=np.float64)
        rows = np.arange(len(X)) if rows is None else rows
        if weights is not None:
            # A row of weight zero is absent: a far one would cost the others their digits.
            rows = rows[weights[rows] > 0] if weights[rows].any() else rows[:1]
        w = None if weights is None else weights[rows].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return reduce(add, _chunks(X, rows, w, diagonal, higher))

    @property
    def diagonal(self) -> bool:
        """Whether only the diagonal of the scatter is held."""
        return self.scatter.ndim == 1

    @property
    def thin(self) -> bool:
        """Whether a root of the scatter is held, shape (r, p) with r < p."""
        return not self.diagonal and self.scatter.shape[0] < self.scatter.shape[1]

    @property
    def mean(self) -> np.ndarray:
        """Mean, shape (p,)."""
        return np.asarray(self.origin + self.offset)

    @property
    def covariance(self) -> np.ndarray:
        """Maximum-likelihood covariance (divided by the weight), shape (p, p) or (p,)."""
        # n, not n - 1: the maximum-likelihood estimate, for which shrinkage is defined.
        return np.asarray(_dense(self.scatter) / self.weight)

    @property
    def variance(self) -> np.ndarray:
        """Diagonal of the covariance, shape (p,)."""
        if self.thin:
            return np.asarray(np.einsum("ij,ij->j", self.scatter, self.scatter) / self.weight)
        return self.covariance if self.diagonal else np.diag(self.covariance)

    @property
    def gram(self) -> np.ndarray:
        """A matrix with the eigenvalues of the covariance that are not zero: itself if not thin."""
        if self.thin:
            return np.asarray(self.scatter @ self.scatter.T / self.weight)
        return self.covariance

    @property
    def trace(self) -> float:
        """Trace of the scatter."""
        if self.thin:
            return float(np.vdot(self.scatter, self.scatter))
        return float(self.scatter.sum() if self.diagonal else np.trace(self.scatter))

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.diagonal != other.diagonal or len(self.offset) != len(other.offset):
            raise ValueError(
                f"cannot merge moments of scatter shape {self.scatter.shape} and "
                f"{other.scatter.shape}; both need the same features and covariance_type"
            )
        if other.weight == 0 or self.weight == 0:
            return other if self.weight == 0 else self
        weight = self.weight + other.weight
        share = other.weight / weight
        gap = (other.origin - self.origin) + (other.offset - self.offset)
        # The move of both means adds to the scatter what one more row would.
        bridge = gap * np.sqrt(self.weight * share)
        scatter = _summed(self.scatter, other.scatter, bridge)
        a, b = self._about(-gap * share), other._about(gap * (self.weight / weight))
        higher = None if a is None or b is None else a + b
        return Moments(weight, self.origin, self.offset + gap * share, scatter, higher)

    def _about(self, e: np.ndarray) -> HigherMoments | None:
        """The higher moments about the point ``mean - e``, if they are held."""
        if self.higher is None:
            return None
        times = self.scatter * e if self.diagonal else self.scatter @ e
        times = self.scatter.T @ times if self.thin else times
        spread = self.scatter if self.diagonal else np.atleast_1d(self.trace)
        return self.higher.about(e, self.weight, times, spread)


def moments_by_class(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    classes: np.ndarray,
    *,
    diagonal: bool,
    higher: bool,
) -> list[Moments]:
    """Moments of the rows of X (n, p) of each class; of weight 0 for a class without rows."""
    found = []
    for c in classes:
        rows, w = np.flatnonzero(y == c), weights
        if not len(rows):
            rows, w = np.zeros(1, dtype=int), np.zeros(len(X))
        found.append(Moments.of(X, w, rows=rows, diagonal=diagonal, higher=higher))
    return found


def pooled(moments: Iterable[Moments]) -> Moments:
    """Moments of the residuals from the mean of each."""
    return reduce(add, (replace(m, origin=0 * m.origin, offset=0 * m.offset) for m in moments))


def _chunks(
    X: np.ndarray, rows: np.ndarray, w: np.ndarray | None, diagonal: bool, higher: bool
) -> Iterator[Moments]:
    """Moments of the rows, as many at a time as fit the cache."""
    step = max(_CHUNK_BYTES // (8 * X.shape[1]), 2 * X.shape[1])
    thin = X.shape[1] >= _WIDE and 2 * len(rows) <= X.shape[1] and not diagonal
    buffer = np.empty((min(step, len(rows)), X.shape[1]))
    for start in range(0, len(rows), step):
        at = rows[start : start + step]
        D = np.take(X, at, axis=0, out=buffer[: len(at)], mode="clip")
        yield _of_chunk(D, None if w is None else w[start : start + step], diagonal, higher, thin)


def _of_chunk(
    D: np.ndarray, w: np.ndarray | None, diagonal: bool, higher: bool, thin: bool
) -> Moments:
    """Moments of rows D, which are centred in place; thin ones keep them."""
    ones = np.ones(len(D)) if w is None else w
    weight, origin = float(ones.sum()), D[0].copy()
    D -= origin
    offset = ones @ D / (weight or 1.0)
    D -= offset
    powers = HigherMoments.of(D, ones, diagonal) if higher else None
    if diagonal:
        return Moments(weight, origin, offset, ones @ (D * D), powers)
    if w is not None:
        D *= np.sqrt(w)[:, None]
    # numpy's product of an array with its own transpose is BLAS syrk: half the work.
    return Moments(weight, origin, offset, D if thin else D.T @ D, powers)


def _summed(a: np.ndarray, b: np.ndarray, bridge: np.ndarray) -> np.ndarray:
    """Scatter of both sets of rows, in the smaller form."""
    if a.ndim == 1:
        return np.asarray(bridge * bridge + a + b)
    p = len(bridge)
    # Thin scatters are those with fewer rows than columns: together they may stay thin.
    if p >= _WIDE and 2 * (len(a) + len(b) + 1) <= p:
        return np.vstack([a, b, bridge[None]] if bridge.any() else [a, b])
    scatter = np.outer(bridge, bridge)
    scatter += _dense(a)
    scatter += _dense(b)
    return scatter


def _dense(scatter: np.ndarray) -> np.ndarray:
    """The scatter (p, p) of a root (r, p); others as they are."""
    wide = scatter.ndim == 2 and scatter.shape[0] < scatter.shape[1]
    return np.asarray(scatter.T @ scatter) if wide else scatter
