"""Mergeable sufficient statistics: those of A and those of B give those of both together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

__all__ = ["Moments"]

_CHUNK_BYTES = 1 << 26


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
        cls, X: np.ndarray, weights: np.ndarray | None = None, *, diagonal: bool = False
    ) -> Moments:
        """Moments of the rows of X (n, p), n >= 1, with optional weights (n,) >= 0.

        Works in chunks of rows: no copy of X is made. An overflow shows as inf or NaN in the
        moments, without a warning, and is refused by what uses them.
        """
        rows = max(1, _CHUNK_BYTES // (8 * X.shape[1]))
        parts = (
            _of_chunk(X[i : i + rows], None if weights is None else weights[i : i + rows], diagonal)
            for i in range(0, len(X), rows)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            return reduce(add, parts)

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


def _of_chunk(X: np.ndarray, weights: np.ndarray | None, diagonal: bool) -> Moments:
    if weights is not None:
        # A row of weight zero is absent: a far one would cost the others their digits.
        present = weights > 0 if weights.any() else slice(1)
        X, weights = X[present], weights[present]
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    total = float(w.sum())
    origin = np.array(X[0], dtype=np.float64)
    D = X - origin
    share = w / total if total > 0 else w
    offset = share @ D
    D -= offset
    correction = share @ D
    D -= correction
    W = D if weights is None else D * w[:, None]
    if diagonal:
        square = D * D
        moments = ((W * D).sum(0), (W * square).sum(0), (W * square * D).sum(0))
    else:
        norm = np.einsum("ij,ij->i", D, D)
        moments = (D.T @ W, norm @ W, np.asarray(w @ (norm * norm)))
    return Moments(total, origin, offset + correction, *moments)
