"""Mergeable sufficient statistics: those of A and those of B give those of both together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from scipy.linalg import blas

__all__ = ["Moments"]

#: From so many features on, and twice as many as rows, the rows themselves are the smaller form.
WIDE = 256
_CHUNK_BYTES = 1 << 20
#: Rows whose mean is a point near that of all: a quarter of these are lost if it is far off.
_FIRST = 256


def scatter_rows(n: Any, p: int) -> Any:
    """Return how many rows hold the scatter of n rows of p features: theirs if thin, or else p."""
    return np.where((p >= WIDE) & (2 * np.asarray(n) <= p), n, p)


@dataclass(frozen=True, eq=False)
class HigherMoments:
    """Third and fourth powers of centred rows d (p,) of weight w, for Ledoit-Wolf shrinkage.

    `cubic` (p,) sums ``w |d|^2 d`` and `quartic` (1,) ``w |d|^4``; if the scatter is diagonal
    ``w d**3`` and, (p,), ``w d**4``.
    """

    cubic: np.ndarray
    quartic: np.ndarray

    @classmethod
    def of(cls, D: np.ndarray, w: np.ndarray, diagonal: bool) -> Self:
        """Sum the powers of centred rows D (n, p) with weights w (n,)."""
        square = _dot(D, D, diagonal)
        return cls(w @ (square * D), w @ (square * square))

    def about(self, e: np.ndarray, moments: Moments) -> HigherMoments:
        """Return the higher moments about the point ``mean - e`` of these `moments`."""
        scatter, diagonal = moments.scatter, moments.diagonal
        times = scatter * e if diagonal else scatter @ e
        times = scatter.T @ times if moments.thin else times
        spread = scatter if diagonal else np.atleast_1d(moments.trace)
        square, along = _dot(e, e, diagonal), _dot(e, self.cubic + times, diagonal)
        tail = 4 * along + 2 * square * spread + moments.weight * square * square
        cubic = self.cubic + spread * e + 2 * times + moments.weight * square * e
        return HigherMoments(cubic, self.quartic + tail)

    def __add__(self, other: HigherMoments) -> HigherMoments:
        """Add the higher moments of two sets of rows about the same point."""
        return HigherMoments(self.cubic + other.cubic, self.quartic + other.quartic)


def _dot(a: np.ndarray, b: np.ndarray, diagonal: bool) -> np.ndarray:
    """Return the products of the rows of a and b, (..., 1); by coordinate of a diagonal scatter."""
    return a * b if diagonal else np.asarray((a * b).sum(-1))[..., None]


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
        """Return the moments of rows of X (n, p), n >= 1, with optional weights (n,) >= 0.

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
            return cls._of_rows(WeightedRows(np.asarray(X), rows, w), diagonal, higher)

    @classmethod
    def _of_rows(cls, rows: WeightedRows, diagonal: bool, higher: bool) -> Moments:
        """Sum about a point near the mean, then move the sums to the mean."""
        p, point = rows.n_features, rows.point_near_mean()
        weight, total, squares = 0.0, np.zeros(p), np.zeros(p)
        thin = not diagonal and scatter_rows(len(rows), p) < p
        products = OuterProducts(0 if diagonal or thin else p)
        for D, w in rows.minus(point):
            weight += float(w.sum())
            total += w @ D
            if diagonal:
                squares += w @ (D * D)
            elif not thin:
                products.add(D if rows.equal else D * np.sqrt(w)[:, None])
        offset = total / (weight or 1.0)
        if diagonal:
            scatter = squares - weight * offset * offset
        elif thin:
            scatter = np.vstack([D * np.sqrt(w)[:, None] for D, w in rows.minus(point, offset)])
        else:
            scatter = products.minus(np.sqrt(weight) * offset[None])
        powers = (HigherMoments.of(D, w, diagonal) for D, w in rows.minus(point, offset))
        return cls(weight, point, offset, scatter, reduce(add, powers) if higher else None)

    @property
    def diagonal(self) -> bool:
        """True if only the diagonal of the scatter is held."""
        return self.scatter.ndim == 1

    @property
    def thin(self) -> bool:
        """True if a root of the scatter is held, shape (r, p) with r < p."""
        return not self.diagonal and self.scatter.shape[0] < self.scatter.shape[1]

    @property
    def mean(self) -> np.ndarray:
        """Mean, shape (p,)."""
        return np.asarray(self.origin + self.offset)

    @property
    def covariance(self) -> np.ndarray:
        """Maximum-likelihood covariance (divided by the weight), shape (p, p) or (p,)."""
        # n, not n - 1: the maximum-likelihood estimate, for which shrinkage is defined.
        return np.asarray(dense_scatter(self.scatter) / self.weight)

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
        """Add the moments of two sets of rows."""
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
        scatter = add_scatters(self.scatter, other.scatter, bridge)
        higher = None
        if self.higher is not None and other.higher is not None:
            rest = gap * (self.weight / weight)
            higher = self.higher.about(-gap * share, self) + other.higher.about(rest, other)
        return Moments(weight, self.origin, self.offset + gap * share, scatter, higher)

    def standardise(self, centre: np.ndarray, scale: np.ndarray) -> Moments:
        """Return the moments of ``(x - centre) / scale``, of shapes (p,); without higher ones."""
        over = scale * scale if self.diagonal else np.outer(scale, scale)
        scatter = self.scatter / (scale if self.thin else over)
        return Moments(self.weight, (self.origin - centre) / scale, self.offset / scale, scatter)


class WeightedRows:
    """Rows of X (n, p) with weights, centred a part at a time: no copy of the matrix is made.

    The rows at `places` (None: all), with weights (m,) of their own (None: ones). X may be of any
    type; what is computed is float64.
    """

    def __init__(
        self, X: np.ndarray, places: np.ndarray | None, weights: np.ndarray | None
    ) -> None:
        self.n_features = X.shape[1]
        self.equal = weights is None
        self._X, self._places, self._weights = X, places, weights
        self._count = len(X) if places is None else len(places)
        # A product of so many rows is worth the pass over what it is added to.
        self._step = max(_CHUNK_BYTES // (8 * self.n_features), self.n_features // 8, 1)

    def __len__(self) -> int:
        return self._count

    def point_near_mean(self) -> np.ndarray:
        """Return a point (p,) near the mean; rows that are all the same are that point."""
        stop = min(_FIRST, self._count)
        D = self._rows(0, stop).astype(np.float64)
        origin = D[0].copy()
        D -= origin
        w = self._weights_of(0, stop)
        return np.asarray(origin + w @ D / (w.sum() or 1.0))

    def minus(
        self, point: np.ndarray, offset: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows minus `point` and `offset`, with their weights, in parts for the cache.

        Each part overwrites the one before.
        """
        step = min(self._step, self._count)
        D, ones = np.empty((step, self.n_features)), np.ones(step)
        for start in range(0, self._count, step):
            stop = min(start + step, self._count)
            part = np.subtract(self._rows(start, stop), point, out=D[: stop - start])
            if offset is not None:
                part -= offset
            yield part, ones[: stop - start] if self.equal else self._weights_of(start, stop)

    def _rows(self, start: int, stop: int) -> np.ndarray:
        if self._places is None:
            return self._X[start:stop]
        # Faster than self._X[places], which asks whether each lies inside.
        return np.take(self._X, self._places[start:stop], axis=0, mode="clip")

    def _weights_of(self, start: int, stop: int) -> np.ndarray:
        return np.ones(stop - start) if self._weights is None else self._weights[start:stop]


class OuterProducts:
    """Sum of ``d d^T`` of rows (., p); few rows wait until a product is worth a pass over it."""

    def __init__(self, p: int) -> None:
        self._lower = np.zeros((p, p))
        self._few: list[np.ndarray] = []
        self._waiting, self._enough = 0, p // 4

    def add(self, D: np.ndarray) -> None:
        """Add rows D (m, p), which may be overwritten afterwards."""
        if len(D) > self._enough:
            self._add_now(D)
            return
        self._few.append(D.copy())
        self._waiting += len(D)
        if self._waiting > self._enough:
            self._add_waiting()

    def minus(self, rows: np.ndarray) -> np.ndarray:
        """Return the sum (p, p) minus the products of `rows` (m, p)."""
        self._add_waiting()
        self._add_now(rows, -1.0)
        whole = self._lower + self._lower.T
        whole.flat[:: len(whole) + 1] = self._lower.flat[:: len(whole) + 1]
        return np.asarray(whole)

    def _add_waiting(self) -> None:
        if self._few:
            self._add_now(np.concatenate(self._few))
        self._few, self._waiting = [], 0

    def _add_now(self, D: np.ndarray, sign: float = 1.0) -> None:
        """Add ``sign D^T D`` to the lower triangle."""
        # BLAS sees the transposed matrices, and writes what is its upper triangle.
        blas.dsyrk(sign, D.T, beta=1.0, c=self._lower.T, overwrite_c=1)


def add_scatters(a: np.ndarray, b: np.ndarray, bridges: np.ndarray) -> np.ndarray:
    """Add two scatters in the smaller form; `bridges` (p,) or (m, p) are more rows."""
    if a.ndim == 1:
        return np.asarray(bridges * bridges + a + b)
    bridges = np.atleast_2d(bridges)
    p = bridges.shape[1]
    bridges = bridges[bridges.any(axis=1)]
    # Thin scatters are those with fewer rows than columns: together they may stay thin.
    if p >= WIDE and 2 * (len(a) + len(b) + max(1, len(bridges))) <= p:
        return np.vstack([a, b, bridges])
    scatter = bridges.T @ bridges
    scatter += dense_scatter(a)
    scatter += dense_scatter(b)
    return np.asarray(scatter)


def dense_scatter(scatter: np.ndarray) -> np.ndarray:
    """Return the scatter (p, p) of a root (r, p); others as they are."""
    wide = scatter.ndim == 2 and scatter.shape[0] < scatter.shape[1]
    return np.asarray(scatter.T @ scatter) if wide else scatter
