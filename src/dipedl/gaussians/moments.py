"""Mergeable sufficient statistics: those of A and those of B give those of both together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import blas

from .higher_moments import HigherMoments
from .rows import WeightedRows
from .thin import WIDE, scatter_rows

__all__ = ["Moments"]


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
            Of any type of number; what is computed is float64.
        weights : ndarray, shape (n,), optional
            Counts each row that often.
        rows : integer array, optional
            Which rows of X to take; at least one. Default: all.
        diagonal : bool, default=False
            Hold only the diagonal of the scatter.
        higher : bool, default=False
            Hold the third and fourth powers too.
        """
        if weights is not None:
            rows = np.arange(len(X)) if rows is None else rows
            # A row of weight zero is absent: a far one would cost the others their digits.
            rows = rows[weights[rows] > 0] if weights[rows].any() else rows[:1]
        w = None if weights is None else weights[rows].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return _of_rows(WeightedRows(np.asarray(X), rows, w), diagonal, higher)

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
        return np.asarray(dense(self.scatter) / self.weight)

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
        scatter = summed(self.scatter, other.scatter, bridge)
        a, b = self._about(-gap * share), other._about(gap * (self.weight / weight))
        higher = None if a is None or b is None else a + b
        return Moments(weight, self.origin, self.offset + gap * share, scatter, higher)

    def standardised(self, centre: np.ndarray, scale: np.ndarray) -> Moments:
        """Moments of ``(x - centre) / scale``, of shapes (p,); without higher ones."""
        over = scale * scale if self.diagonal else np.outer(scale, scale)
        scatter = self.scatter / (scale if self.thin else over)
        return Moments(self.weight, (self.origin - centre) / scale, self.offset / scale, scatter)

    def _about(self, e: np.ndarray) -> HigherMoments | None:
        """The higher moments about the point ``mean - e``, if they are held."""
        if self.higher is None:
            return None
        return _shifted(self, self.higher, e)


def _shifted(moments: Moments, higher: HigherMoments, e: np.ndarray) -> HigherMoments:
    """Higher moments about the mean of `moments` as those about ``mean - e``."""
    times = moments.scatter * e if moments.diagonal else moments.scatter @ e
    times = moments.scatter.T @ times if moments.thin else times
    spread = moments.scatter if moments.diagonal else np.atleast_1d(moments.trace)
    return higher.about(e, moments.weight, times, spread)


class OuterProducts:
    """Sum of ``d d^T`` of rows (., p); few rows wait until a product is worth a pass over it."""

    def __init__(self, p: int) -> None:
        self._sum = np.zeros((p, p))
        self._few: list[np.ndarray] = []
        self._waiting, self._enough = 0, p // 4

    def add(self, D: np.ndarray) -> None:
        """Add rows D (m, p), which may be overwritten afterwards."""
        if len(D) > self._enough:
            _add_outer_products(self._sum, D)
            return
        self._few.append(D.copy())
        self._waiting += len(D)
        if self._waiting > self._enough:
            self._absorb()

    def less(self, rows: np.ndarray) -> np.ndarray:
        """The sum (p, p), less the products of `rows` (m, p)."""
        self._absorb()
        _add_outer_products(self._sum, rows, -1.0)
        return _whole(self._sum)

    def _absorb(self) -> None:
        if self._few:
            _add_outer_products(self._sum, np.concatenate(self._few))
        self._few, self._waiting = [], 0


def _of_rows(rows: WeightedRows, diagonal: bool, higher: bool) -> Moments:
    """Moments of the rows, about a point near their mean, to which they are moved at the end."""
    p, point = rows.n_features, rows.reference()
    weight, total = 0.0, np.zeros(p)
    thin = not diagonal and scatter_rows(len(rows), p) < p
    scatter = np.zeros(p if diagonal else (0 if thin else p, p))
    for D, w in rows.less(point):
        weight += float(w.sum())
        total += w @ D
        if diagonal:
            scatter += w @ (D * D)
        elif not thin:
            _add_outer_products(scatter, D if rows.equal else D * np.sqrt(w)[:, None])
    offset = total / (weight or 1.0)
    if diagonal:
        scatter -= weight * offset * offset
    elif thin:
        scatter = np.vstack([D * np.sqrt(w)[:, None] for D, w in rows.less(point, offset)])
    else:
        scatter = _moved(scatter, weight, offset)
    powers = None
    if higher:
        parts = (HigherMoments.of(D, w, diagonal) for D, w in rows.less(point, offset))
        powers = reduce(add, parts)
    return Moments(weight, point, offset, scatter, powers)


def _add_outer_products(scatter: np.ndarray, D: np.ndarray, sign: float = 1.0) -> None:
    """Add ``sign D^T D`` to the lower triangle of a scatter (p, p), in place."""
    # BLAS sees the transposed matrices, and writes what is its upper triangle.
    blas.dsyrk(sign, D.T, beta=1.0, c=scatter.T, overwrite_c=1)


def _moved(scatter: np.ndarray, weight: float, offset: np.ndarray) -> np.ndarray:
    """The whole scatter about the mean, which lies at `offset`, of a lower triangle."""
    blas.dsyr(-weight, offset, a=scatter.T, overwrite_a=1)
    return _whole(scatter)


def _whole(scatter: np.ndarray) -> np.ndarray:
    """Both triangles of a scatter (p, p) of which the lower one is filled."""
    whole = scatter + scatter.T
    whole.flat[:: len(scatter) + 1] = scatter.flat[:: len(scatter) + 1]
    return np.asarray(whole)


def summed(a: np.ndarray, b: np.ndarray, bridges: np.ndarray) -> np.ndarray:
    """Scatter of both sets of rows, in the smaller form; `bridges` (p,) or (m, p) are rows too."""
    if a.ndim == 1:
        return np.asarray(bridges * bridges + a + b)
    bridges = np.atleast_2d(bridges)
    p = bridges.shape[1]
    bridges = bridges[bridges.any(axis=1)]
    # Thin scatters are those with fewer rows than columns: together they may stay thin.
    if p >= WIDE and 2 * (len(a) + len(b) + max(1, len(bridges))) <= p:
        return np.vstack([a, b, bridges])
    scatter = bridges.T @ bridges
    scatter += dense(a)
    scatter += dense(b)
    return np.asarray(scatter)


def dense(scatter: np.ndarray) -> np.ndarray:
    """The scatter (p, p) of a root (r, p); others as they are."""
    wide = scatter.ndim == 2 and scatter.shape[0] < scatter.shape[1]
    return np.asarray(scatter.T @ scatter) if wide else scatter
