"""Mergeable sufficient statistics: those of A and those of B give those of both together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Moments"]

_CHUNK_BYTES = 1 << 21


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted mean, scatter and the moments that Ledoit-Wolf shrinkage needs; ``+`` merges.

    The mean is held as a row of the data (`origin`) plus a small `offset`, so that no digit is lost
    when the data lie far from zero: chunks in any order agree to 1e-10 with one pass, with offsets
    up to 1e6.

    Attributes
    ----------
    weight : float
        Sum of the sample weights (the number of rows without weights).
    origin, offset : ndarray, shape (p,)
        ``mean = origin + offset``.
    scatter : ndarray, shape (p, p), or (p,) if diagonal
        Sum of ``w d d^T`` (or ``w d**2``) with d the centred row.
    cubic : ndarray, shape (p,)
        Sum of ``w |d|^2 d`` (or ``w d**3``).
    quartic : ndarray, shape () or (p,) if diagonal
        Sum of ``w |d|^4`` (or ``w d**4``).

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
    cubic: np.ndarray
    quartic: np.ndarray

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        weights: np.ndarray | None = None,
        *,
        rows: np.ndarray | None = None,
        diagonal: bool = False,
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
        """
        X = np.asarray(X, dtype=np.float64)
        rows = np.arange(len(X)) if rows is None else rows
        if weights is not None:
            # A row of weight zero is absent: a far one would cost the others their digits.
            rows = rows[weights[rows] > 0] if weights[rows].any() else rows[:1]
        w = np.ones(len(rows)) if weights is None else weights[rows].astype(np.float64)
        step = max(_CHUNK_BYTES // (8 * X.shape[1]), 2 * X.shape[1])
        chunks = [(rows[i : i + step], w[i : i + step]) for i in range(0, len(rows), step)]
        with np.errstate(over="ignore", invalid="ignore"):
            return _one_pass(X, chunks, float(w.sum()), diagonal)

    @property
    def diagonal(self) -> bool:
        """Whether only the diagonal of the scatter is held."""
        return self.scatter.ndim == 1

    @property
    def mean(self) -> np.ndarray:
        """Mean, shape (p,)."""
        return np.asarray(self.origin + self.offset)

    @property
    def covariance(self) -> np.ndarray:
        """Maximum-likelihood covariance (divided by the weight), shape (p, p) or (p,)."""
        # n, not n - 1: the maximum-likelihood estimate, for which shrinkage is defined.
        return np.asarray(self.scatter / self.weight)

    @property
    def trace(self) -> float:
        """Trace of the scatter."""
        return float(self.scatter.sum() if self.diagonal else np.trace(self.scatter))

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.scatter.shape != other.scatter.shape:
            raise ValueError(
                f"cannot merge moments of scatter shape {self.scatter.shape} and "
                f"{other.scatter.shape}; both need the same features and covariance_type"
            )
        if other.weight == 0 or self.weight == 0:
            return other if self.weight == 0 else self
        weight = self.weight + other.weight
        gap = (other.origin - self.origin) + (other.offset - self.offset)
        a = self._about(-gap * (other.weight / weight))
        b = other._about(gap * (self.weight / weight))
        return Moments(
            weight,
            self.origin,
            self.offset + gap * (other.weight / weight),
            *(x + y for x, y in zip(a, b, strict=True)),
        )

    def _about(self, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scatter, cubic and quartic about the point ``mean - e``."""
        if self.diagonal:
            square, spread = e * e, self.scatter
            outer, Se, eSe, eT = square, spread * e, square * spread, e * self.cubic
        else:
            square, spread = e @ e, np.trace(self.scatter)
            outer, Se = np.outer(e, e), self.scatter @ e
            eSe, eT = e @ Se, e @ self.cubic
        scatter = self.scatter + self.weight * outer
        cubic = self.cubic + spread * e + 2 * Se + self.weight * square * e
        quartic = self.quartic + 4 * eT + 4 * eSe + 2 * square * spread
        return scatter, cubic, np.asarray(quartic + self.weight * square * square)


def _one_pass(
    X: np.ndarray, chunks: list[tuple[np.ndarray, np.ndarray]], total: float, diagonal: bool
) -> Moments:
    """Sums about the mean of the first chunk, then moved to the mean of all."""
    rows, w = chunks[0]
    origin = X[rows[0]].copy()
    offset = w @ (X[rows] - origin) / (w.sum() or 1.0)
    sums = (_DiagonalSums if diagonal else _FullSums)(len(origin))
    buffer = np.empty((len(rows), len(origin)))
    for rows, w in chunks:
        D = np.take(X, rows, axis=0, out=buffer[: len(rows)], mode="clip")
        D -= origin
        D -= offset
        sums.add(D, w)
    return sums.about_the_mean(total, origin, offset)


class _Sums:
    """Sums of weighted powers about a point that is near the mean."""

    first: np.ndarray
    scatter: np.ndarray
    cubic: np.ndarray
    quartic: np.ndarray | float

    def about_the_mean(self, total: float, origin: np.ndarray, offset: np.ndarray) -> Moments:
        """The moments, given the point ``origin + offset`` the sums are about."""
        e = self.first / (total or 1.0)
        outer = e * e if self.scatter.ndim == 1 else np.outer(e, e)
        zero = np.zeros_like(e)
        scatter = self.scatter - total * outer
        centred = Moments(
            total, origin, offset + e, scatter, zero, np.zeros(np.shape(self.quartic))
        )
        # The same shift that merging uses, solved for the moments about the mean.
        _, cubic_excess, quartic_excess = centred._about(e)
        cubic = self.cubic - cubic_excess
        cross = e * cubic if scatter.ndim == 1 else e @ cubic
        quartic = np.asarray(self.quartic - quartic_excess - 4 * cross)
        return Moments(total, origin, offset + e, scatter, cubic, quartic)


class _FullSums(_Sums):
    """Sums of w d, w d d^T, w |d|^2 d and w |d|^4."""

    def __init__(self, p: int) -> None:
        self.first, self.cubic, self.quartic = np.zeros(p), np.zeros(p), 0.0
        self.scatter = np.zeros((p, p))

    def add(self, D: np.ndarray, w: np.ndarray) -> None:
        norm = np.einsum("ij,ij->i", D, D)
        self.first += w @ D
        self.cubic += (w * norm) @ D
        self.quartic += float(w @ (norm * norm))
        if (w != 1).any():
            D *= np.sqrt(w)[:, None]
        # numpy's product of an array with its own transpose is BLAS syrk: half the work.
        self.scatter += D.T @ D


class _DiagonalSums(_Sums):
    """Sums of w d, w d^2, w d^3 and w d^4, by coordinate."""

    def __init__(self, p: int) -> None:
        self.first, self.scatter, self.cubic, self.quartic = np.zeros((4, p))

    def add(self, D: np.ndarray, w: np.ndarray) -> None:
        square = D * D
        self.first += w @ D
        self.scatter += w @ square
        self.cubic += w @ (square * D)
        self.quartic += w @ (square * square)
