"""Covariances of wide data, by what fewer rows than features span: nothing is p x p."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from ..maths.checks import check_room
from ..maths.special import EPS

#: From so many features on, and twice as many as rows, the rows themselves are the smaller form.
WIDE = 256
#: Bytes that any machine has: fewer are not counted.
_ROOMY = 1 << 30


def scatter_rows(n: Any, p: int) -> Any:
    """Rows that the scatter of n rows of p features holds: theirs if it is thin, or else p."""
    return np.where((p >= WIDE) & (2 * np.asarray(n) <= p), n, p)


def check_matrices(covariance_type: str, k: int, y: np.ndarray, p: int, *, shared: bool) -> None:
    """MemoryError where the matrices of k classes, with labels y (n,), cannot fit, up front.

    `shared` says that all classes have one scatter.
    """
    if covariance_type == "diag" or 16 * (1 if shared else k) * p**2 <= _ROOMY:
        return
    counts = np.unique(y, return_counts=True)[1]
    rows = scatter_rows(len(y) if shared else counts, p)
    factors = len(counts) if covariance_type == "full" else 1
    check_room(
        f"{covariance_type=} of {len(counts)} classes and {p} features",
        8 * p * int(rows.sum() + factors * p),
        "use covariance_type='tied' or 'diag', fewer features, or "
        "dipedl.pretrained.ClassGaussians with covariance='low-rank'",
    )


@dataclass(frozen=True, eq=False)
class ThinWhitener:
    """``C = U^T diag(inner) U + outer (I - U^T U)``, and what divides by it.

    Attributes
    ----------
    basis : ndarray, shape (r, p)
        U, orthonormal rows.
    inner : ndarray, shape (r,)
        Variances along them.
    outer : float
        Variance across them.
    """

    basis: np.ndarray
    inner: np.ndarray
    outer: float

    @classmethod
    def of(cls, root: np.ndarray, weight: float, intensity: float, target: float) -> ThinWhitener:
        """Of the scatter ``root^T root``, root (r, p), shrunk by `intensity` towards `target`."""
        _, values, basis = linalg.svd(root, full_matrices=False)
        real = values > len(values) * EPS * values[:1]
        inner = (1 - intensity) * values[real] ** 2 / weight + intensity * target
        return cls(basis[real], inner, intensity * target)

    @property
    def log_det(self) -> float:
        """Log-determinant of the covariance."""
        across = self.basis.shape[1] - len(self.inner)
        return float(np.log(self.inner).sum() + across * np.log(self.outer))

    @property
    def reciprocal_condition(self) -> float:
        """Smallest over largest eigenvalue."""
        return float(self.outer / self.inner.max(initial=self.outer)) if self.outer > 0 else 0.0

    @property
    def dense(self) -> np.ndarray:
        """The symmetric W with ``W^T W = C^-1``, shape (p, p)."""
        gain = 1 / np.sqrt(self.inner) - 1 / np.sqrt(self.outer)
        W = (self.basis.T * gain) @ self.basis
        W[np.diag_indices_from(W)] += 1 / np.sqrt(self.outer)
        return np.asarray(W)

    def squared(self, D: np.ndarray) -> np.ndarray:
        """Squared length ``d^T C^-1 d`` of each row of D (n, p), which is overwritten, (n,)."""
        along = D @ self.basis.T
        # The rest itself, not a difference of squares: no digit is lost.
        D -= along @ self.basis
        rest = np.einsum("ij,ij->i", D, D) / self.outer
        return np.asarray(rest + (along**2 / self.inner).sum(axis=1))

    def solved(self, D: np.ndarray) -> np.ndarray:
        """``C^-1 d`` for each row of D (n, p)."""
        along = D @ self.basis.T
        return np.asarray(D / self.outer + (along * (1 / self.inner - 1 / self.outer)) @ self.basis)
