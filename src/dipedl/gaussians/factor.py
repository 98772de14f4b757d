"""One Gaussian: shrinkage and factor of its covariance, and distances of rows to its mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from ..maths.special import EPS, LOG_2PI
from .moments import Moments

_CHUNK_BYTES = 1 << 20
NEGLIGIBLE = 1e-13  # standard deviations
#: What float32 may cost the log-density of a typical row, in nats, and how many rows are tried.
_ROUNDING, _PROBES = 1e-3, 16
Shrinkage = float | str | None
#: Estimated from the third and fourth powers of the features.
LEDOIT_WOLF = "ledoit-wolf"


def _ledoit_wolf(m: Moments, level: float) -> float:
    if m.higher is None:
        raise ValueError(
            "shrinkage='ledoit-wolf' needs the fourth moments of the features, and these moments "
            "were made without them; fit with shrinkage='ledoit-wolf', or Moments.of(X, "
            "higher=True)"
        )
    n, p = m.weight, len(m.offset)
    cov = m.gram / level
    total = float(m.higher.quartic.sum())
    if not np.finfo(np.float64).tiny < total < np.inf:
        raise ValueError(
            "shrinkage='ledoit-wolf' needs the fourth moments of the features, which overflow or "
            "underflow; rescale the features or use shrinkage='oas'"
        )
    square = float((cov * cov).sum())
    error, spread = (total / n / level / level - square) / n, square - p
    return min(error / spread, 1.0) if spread > EPS * p and error > 0 else 0.0


def _oas(m: Moments, level: float) -> float:
    cov, p = m.gram / level, len(m.offset)
    if m.diagonal:
        return _oas_of_variances(cov, m.weight)
    return oas_intensity(float((cov * cov).sum()) / p**2, m.weight, p)


def oas_intensity(mean_square: float, n: float, p: int) -> float:
    """OAS of n rows and p features, from the mean square of the covariance over its level."""
    denominator = (n + 1) * (mean_square - 1 / p)
    return min((mean_square + 1) / denominator, 1.0) if denominator > 0 else 1.0


def _oas_of_variances(variance: np.ndarray, n: float) -> float:
    """OAS of variances alone: under a Gaussian each has the sampling error 2 s^4 / n."""
    error = float((2 * variance * variance).sum() / n)
    spread = float(((variance - variance.mean()) ** 2).sum())
    return error / (error + spread) if error > 0 else 1.0


_ESTIMATED: dict[str, Callable[[Moments, float], float]] = {
    LEDOIT_WOLF: _ledoit_wolf,
    "oas": _oas,
}


def shrinkage_intensity(moments: Moments, shrinkage: Shrinkage) -> float:
    """Return the intensity in [0, 1] of the shrinkage towards ``trace / p`` times the identity.

    "ledoit-wolf" is Ledoit and Wolf (2004), "oas" is Chen et al. (2010), both as scikit-learn
    computes them for a full covariance. For a diagonal one both weigh the sampling error of the
    variances against their spread: "ledoit-wolf" from the fourth moments, "oas" as it is under a
    Gaussian. The "ledoit-wolf" intensity of two samples is zero: they look free of error.
    """
    if shrinkage is None:
        return 0.0
    if isinstance(shrinkage, str):
        if shrinkage not in _ESTIMATED:
            raise ValueError(
                f"shrinkage must be None, a number in [0, 1] or one of {sorted(_ESTIMATED)}, "
                f"got {shrinkage!r}"
            )
        return _estimated(moments, _ESTIMATED[shrinkage])
    if not 0 <= shrinkage <= 1:
        raise ValueError(f"shrinkage must lie in [0, 1], got {shrinkage!r}")
    return float(shrinkage)


def _estimated(moments: Moments, rule: Callable[[Moments, float], float]) -> float:
    level = mean_variance(moments)
    if not np.isfinite(level):
        raise ValueError("the covariance of the features overflows; rescale the features")
    if len(moments.offset) == 1:
        return 0.0
    # Relative to its own level a covariance can be squared in any unit.
    return rule(moments, level) if level > 0 else 1.0


def mean_variance(moments: Moments) -> float:
    """Return the mean variance of the features, trace / p: the level of the shrinkage target."""
    return moments.trace / moments.weight / len(moments.offset)


def class_shrinkage(
    moments: Moments, shrinkage: Shrinkage, pooled_variance: float | None
) -> tuple[float, float]:
    """Return intensity and target for one class; the pooled variance if its rows are one point.

    Rows that are all the same point have no level of their own. None leaves such a class as it is.
    """
    intensity, target = shrinkage_intensity(moments, shrinkage), mean_variance(moments)
    if target == 0 and pooled_variance is not None:
        return 1.0, pooled_variance
    return intensity, target


def shrunk_covariance(moments: Moments, intensity: float, target: float) -> np.ndarray:
    """Return ``(1 - intensity) covariance + intensity * target * identity``, (p, p) or (p,)."""
    cov = (1 - intensity) * moments.covariance
    if cov.ndim == 1:
        return np.asarray(cov + intensity * target)
    cov.flat[:: len(cov) + 1] += intensity * target
    return np.asarray(cov)


def rank(moments: Moments) -> int:
    """Return the rank of the covariance before shrinkage, of features scaled to unit variance."""
    variance = moments.variance
    varying = variance > EPS**2 * (moments.mean**2)
    if moments.diagonal or not varying.any():
        return int(varying.sum())
    scale = np.sqrt(variance[varying])
    if moments.thin:
        root = moments.scatter[:, varying] / scale
        correlation = root @ root.T / moments.weight
    else:
        correlation = moments.covariance[np.ix_(varying, varying)] / np.outer(scale, scale)
    values = linalg.eigvalsh(correlation)
    return int((values > values[-1] * len(values) * EPS).sum())


@dataclass(frozen=True, eq=False)
class ThinWhitener:
    """Covariance of wide data, ``C = U^T diag(inner) U + outer (I - U^T U)``; nothing is p x p.

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
        """Shrink the scatter ``root^T root``, root (r, p), by `intensity` towards `target`."""
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

    def solve(self, D: np.ndarray) -> np.ndarray:
        """``C^-1 d`` for each row of D (n, p)."""
        along = D @ self.basis.T
        return np.asarray(D / self.outer + (along * (1 / self.inner - 1 / self.outer)) @ self.basis)


@dataclass(frozen=True, eq=False)
class GaussianFactor:
    """One Gaussian, ready to score: mean, inverse Cholesky factor and log-determinant.

    `rest` is what rounding takes from the mean where that matters: far from zero. The factor is
    diagonal (p,), triangular (p, p), or thin, of wide data.
    """

    mean: np.ndarray
    rest: np.ndarray | None
    whitener: np.ndarray | ThinWhitener
    log_det: float

    @classmethod
    def about(
        cls, moments: Moments, whitener: np.ndarray | ThinWhitener, log_det: float
    ) -> GaussianFactor:
        """Place the factor of a covariance at the mean of `moments`."""
        mean = moments.mean
        rest = (moments.origin - mean) + moments.offset
        if isinstance(whitener, ThinWhitener):
            shift = np.sqrt(whitener.squared(rest[None].copy()))
        else:
            shift = whitener * rest if whitener.ndim == 1 else whitener @ rest
        return cls(mean, rest if np.abs(shift).max() > NEGLIGIBLE else None, whitener, log_det)

    @property
    def array(self) -> np.ndarray:
        """The factor as an array, (p,) or (p, p); triangular unless it is thin."""
        return self.whitener.dense if isinstance(self.whitener, ThinWhitener) else self.whitener

    def log_density(self, X: np.ndarray) -> np.ndarray:
        """Log-density in nats of each row of X (n, p); ``-inf`` where the distance overflows."""
        constant = len(self.mean) * LOG_2PI + self.log_det
        return np.asarray(-0.5 * (constant + self.squared_distance(X)))

    def squared_distance(self, X: np.ndarray) -> np.ndarray:
        """Squared Mahalanobis distance of each row of X (n, p), (n,); ``inf`` if it overflows.

        Rows of float32 are computed with in float32 where that costs little (see `in_float32`).
        """
        if X.dtype != np.float32 or self.in_float32 is None:
            return self._distances(X)
        distance = self.in_float32._distances(X)
        if (far := np.isinf(distance)).any():
            distance[far] = self._distances(X[far])
        return distance

    @cached_property
    def in_float32(self) -> GaussianFactor | None:
        """The factor in float32; None if that costs more than 0.001 nats, or it is not full.

        Rows drawn from the Gaussian are tried: the error grows with its condition number.
        """
        if isinstance(self.whitener, ThinWhitener) or self.whitener.ndim == 1:
            return None
        mean, whitener = self.mean.astype(np.float32), self.whitener.astype(np.float32)
        rest = (self.mean - mean) + (0.0 if self.rest is None else self.rest)
        single = GaussianFactor(mean, rest.astype(np.float32), whitener, self.log_det)
        white = np.random.default_rng(0).standard_normal((_PROBES, len(mean)))
        D = linalg.solve_triangular(self.whitener, white.T, lower=True).T.astype(np.float32, "C")
        single._whiten(D)
        error = 0.5 * np.abs((D.astype(float) ** 2).sum(axis=1) - (white**2).sum(axis=1))
        return single if error.max() <= _ROUNDING else None

    def _distances(self, X: np.ndarray) -> np.ndarray:
        n, p = X.shape
        rows = min(n, max(1, _CHUNK_BYTES // (8 * p)))
        buffer, distance = np.empty((rows, p), self.mean.dtype), np.empty(n)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, n, rows):
                part = slice(start, start + rows)
                D = self._centre(X[part], buffer[: len(X[part])])
                if isinstance(self.whitener, ThinWhitener):
                    distance[part] = self.whitener.squared(D)
                else:
                    self._whiten(D)
                    distance[part] = np.einsum("ij,ij->i", D, D)
        # inf - inf inside the triangular product is an overflow too: the row is that far away.
        distance[np.isnan(distance)] = np.inf
        return distance

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Share of each feature in the squared distance, ``d_j (C^-1 d)_j``, shape (n, p).

        Those that overflow are infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            D = self._centre(X, np.empty(X.shape))
            if isinstance(self.whitener, ThinWhitener):
                parts = D * self.whitener.solve(D)
            elif self.whitener.ndim == 1:
                parts = (D * self.whitener) ** 2
            else:
                parts = D * (D @ self.whitener.T @ self.whitener)
        return np.asarray(np.where(np.isfinite(parts), parts, np.inf))

    def whitened(self, X: np.ndarray, rest: np.ndarray | float = 0.0) -> np.ndarray:
        """Rows X + rest (n, p) minus the mean, times the factor, (n, p); not for a thin one."""
        D = np.asarray(np.subtract(X, self.mean, dtype=np.float64, order="C"))
        D += rest if self.rest is None else rest - self.rest
        self._whiten(D)
        return D

    def _centre(self, X: np.ndarray, D: np.ndarray) -> np.ndarray:
        np.subtract(X, self.mean, out=D)
        if self.rest is not None:
            D -= self.rest
        return D

    def _whiten(self, D: np.ndarray) -> None:
        """Multiply centred rows D (n, p) in C order by the factor, in place; not for a thin one."""
        if isinstance(self.whitener, ThinWhitener):
            raise TypeError("a thin factor divides by a covariance and whitens nothing")
        if self.whitener.ndim == 1:
            D *= self.whitener
            return
        # The inverse of a triangular factor, not of the covariance: trmm runs twice as fast as
        # trsm here and does half the work of a full product.
        trmm = blas.dtrmm if D.dtype == np.float64 else blas.strmm
        trmm(1.0, self.whitener, D.T, lower=1, overwrite_b=1)


def factorise(moments: Moments, intensity: float, target: float, who: str) -> GaussianFactor:
    """Factor the shrunk covariance, or say what is singular and what to do; never adds jitter.

    `who` is named in the error, such as "class 'a'".
    """
    thin = moments.thin
    with np.errstate(over="ignore", invalid="ignore"):
        cov = moments.scatter if thin else shrunk_covariance(moments, intensity, target)
    if not np.isfinite(cov).all():
        raise ValueError(f"{who}: the covariance overflows; rescale the features")
    if thin:
        variance = (1 - intensity) * moments.variance + intensity * target
    else:
        variance = cov if cov.ndim == 1 else cov.diagonal()
    # A variance at the level of rounding in the data is no variance.
    constant = np.flatnonzero(variance <= (4 * EPS * np.abs(moments.mean)) ** 2)
    if len(constant):
        raise ValueError(constant_message(moments, constant, intensity, who))
    if thin:
        whitener = ThinWhitener.of(moments.scatter, moments.weight, intensity, target)
        check_regular(moments, whitener.reciprocal_condition, intensity, who)
        return GaussianFactor.about(moments, whitener, whitener.log_det)
    scale = np.sqrt(variance)
    if cov.ndim == 1:
        log_det = float(2 * np.log(scale).sum())
        return GaussianFactor.about(moments, 1 / scale, log_det)
    cov /= scale
    cov /= scale[:, None]
    # Transposed, which changes nothing but spares LAPACK a copy.
    lower, info = lapack.dpotrf(cov.T, lower=1, clean=1, overwrite_a=1)
    p = len(cov)
    reciprocal = 0.0 if info else lapack.dpocon(lower, float(p), uplo="L")[0]
    check_regular(moments, reciprocal, intensity, who)
    log_det = float(2 * (np.log(lower.diagonal()).sum() + np.log(scale).sum()))
    inverse, _ = lapack.dtrtri(lower, lower=1, overwrite_c=1)
    inverse /= scale
    return GaussianFactor.about(moments, inverse, log_det)


def check_regular(moments: Moments, reciprocal: float, intensity: float, who: str) -> None:
    """Raise ValueError if a covariance of that reciprocal condition number is singular."""
    p = len(moments.offset)
    if reciprocal < p * EPS:
        raise ValueError(
            f"{who}: the covariance of {p} features is singular (rank {rank(moments)}, "
            f"n_samples = {moments.weight:g}) and shrinkage is {intensity:g}; use "
            "shrinkage='oas', covariance_type='tied' or 'diag', or drop duplicated features"
        )


def constant_message(moments: Moments, constant: np.ndarray, intensity: float, who: str) -> str:
    """Word the error on features that do not vary."""
    if len(constant) == len(moments.offset):
        return (
            f"{who}: all samples are the same point (n_samples = {moments.weight:g}), "
            "so there is no spread; give it more distinct samples"
        )
    return (
        f"{who}: features {constant[:5].tolist()} are constant and shrinkage is {intensity:g}; "
        "drop them or use shrinkage='oas' or 'ledoit-wolf'"
    )


def explain_rows(
    mean: np.ndarray, contributions: np.ndarray, X: np.ndarray, top: int, label: Any = None
) -> Iterator[dict[str, Any]]:
    """Yield for each row of X (n, p) its squared distance and the features that add most to it.

    The `contributions` (n, p) of all features, ``d_j (C^-1 d)_j`` with ``d = x - mean``, sum to the
    squared Mahalanobis distance. Under the Gaussian its mean is p and its standard deviation
    ``sqrt(2 p)``. One contribution may be negative: that of a feature that moves along with
    others, as their correlation has it.
    """
    p = X.shape[1]
    for x, parts in zip(X, contributions, strict=True):
        order = np.argsort(-parts, kind="stable")[:top]
        yield {
            "kind": "gaussian",
            "class": label,
            "squared_distance": float(parts.sum()),
            "expected": float(p),
            "spread": float(np.sqrt(2 * p)),
            "features": [
                {
                    "feature": int(j),
                    "value": float(x[j]),
                    "mean": float(mean[j]),
                    "contribution": float(parts[j]),
                }
                for j in order
            ],
            "rest": float(np.delete(parts, order).sum()),
        }
