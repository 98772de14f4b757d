"""Gaussians that score: factors of covariances, log-densities and distances, of k classes too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from ..maths.arrays import EPS, LOG_2PI
from .moments import (
    BasisMoments,
    Moments,
    TiedMoments,
    constant_message,
    rank,
    shrunk_covariance,
    weights_of,
)

_CHUNK_BYTES, _BLOCK_BYTES = 1 << 20, 1 << 23
NEGLIGIBLE = 1e-13  # standard deviations
#: What float32 may cost the log-density of a typical row, in nats, and how many rows are tried.
_ROUNDING, _PROBES = 1e-3, 16


@dataclass(frozen=True, eq=False)
class ThinWhitener:
    """Covariance of wide data, ``C = U^T diag(inner) U + outer (I - U^T U)``; nothing is p x p.

    `basis` is U (r, p), orthonormal rows; `inner` (r,) are the variances along them, `outer` is the
    one across them.
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
    def dense(self) -> np.ndarray:
        """The symmetric W with ``W^T W = C^-1``, shape (p, p)."""
        gain = 1 / np.sqrt(self.inner) - 1 / np.sqrt(self.outer)
        W = (self.basis.T * gain) @ self.basis
        W[np.diag_indices_from(W)] += 1 / np.sqrt(self.outer)
        return np.asarray(W)

    def squared_lengths(self, D: np.ndarray) -> np.ndarray:
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
        single._whiten_in_place(D)
        error = 0.5 * np.abs((D.astype(float) ** 2).sum(axis=1) - (white**2).sum(axis=1))
        return single if error.max() <= _ROUNDING else None

    def _distances(self, X: np.ndarray) -> np.ndarray:
        n, p = X.shape
        rows = min(n, max(1, _CHUNK_BYTES // (8 * p)))
        buffer, distance = np.empty((rows, p), self.mean.dtype), np.empty(n)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            D = self._centre(X[part], buffer[: len(X[part])])
            if isinstance(self.whitener, ThinWhitener):
                distance[part] = self.whitener.squared_lengths(D)
            else:
                self._whiten_in_place(D)
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

    def whiten(self, X: np.ndarray, rest: np.ndarray | float = 0.0) -> np.ndarray:
        """Rows X + rest (n, p) minus the mean, times the factor, (n, p); not for a thin one."""
        D = np.asarray(np.subtract(X, self.mean, dtype=np.float64, order="C"))
        D += rest if self.rest is None else rest - self.rest
        self._whiten_in_place(D)
        return D

    def _centre(self, X: np.ndarray, D: np.ndarray) -> np.ndarray:
        np.subtract(X, self.mean, out=D)
        return D if self.rest is None else np.subtract(D, self.rest, out=D)

    def _whiten_in_place(self, D: np.ndarray) -> None:
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


def _mean_and_rest(
    moments: Moments | TiedMoments, whitener: np.ndarray | ThinWhitener
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the mean, (p,) or (k, p), and what rounding takes from it, or None if negligible."""
    mean = moments.origin + moments.offset
    rest = (moments.origin - mean) + moments.offset
    if isinstance(whitener, ThinWhitener):
        shift = np.sqrt(whitener.squared_lengths(np.array(rest, ndmin=2)))
    else:
        shift = rest * whitener if whitener.ndim == 1 else rest @ whitener.T
    return mean, rest if np.abs(shift).max() > NEGLIGIBLE else None


def factorise(moments: Moments, intensity: float, target: float, who: str) -> GaussianFactor:
    """Factor the shrunk covariance, or say what is singular and what to do; never adds jitter.

    `who` is named in the error, such as "class 'a'".
    """
    mean, scatter = moments.origin + moments.offset, moments.scatter
    thin = scatter.ndim == 2 and len(scatter) < len(mean)
    with np.errstate(over="ignore", invalid="ignore"):
        cov = scatter if thin else shrunk_covariance(moments, intensity, target)
    if not np.isfinite(cov).all():
        raise ValueError(f"{who}: the covariance overflows; rescale the features")
    if thin:
        variance = (1 - intensity) * moments.variance + intensity * target
    else:
        variance = cov if cov.ndim == 1 else cov.diagonal()
    # A variance at the level of rounding in the data is no variance.
    constant = np.flatnonzero(variance <= (4 * EPS * np.abs(mean)) ** 2)
    if len(constant):
        raise ValueError(constant_message(moments, constant, intensity, who))
    if thin:
        root = ThinWhitener.of(scatter, moments.weight, intensity, target)
        condition = root.outer / root.inner.max(initial=root.outer) if root.outer > 0 else 0.0
        check_regular(moments, condition, intensity, who)
        return GaussianFactor(*_mean_and_rest(moments, root), root, root.log_det)
    scale = np.sqrt(variance)
    if cov.ndim == 1:
        log_det = float(2 * np.log(scale).sum())
        return GaussianFactor(*_mean_and_rest(moments, 1 / scale), 1 / scale, log_det)
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
    return GaussianFactor(*_mean_and_rest(moments, inverse), inverse, log_det)


def check_regular(moments: Moments, reciprocal: float, intensity: float, who: str) -> None:
    """Raise ValueError if a covariance of that reciprocal condition number is singular."""
    p = len(moments.offset)
    if reciprocal < p * EPS:
        raise ValueError(
            f"{who}: the covariance of {p} features is singular (rank {rank(moments)}, "
            f"n_samples = {moments.weight:g}) and shrinkage is {intensity:g}; use "
            "shrinkage='oas', covariance_type='tied' or 'diag', or drop duplicated features"
        )


@dataclass(frozen=True, eq=False)
class TiedFactors(Sequence[GaussianFactor]):
    """k Gaussians of one covariance; as a sequence, the factor of each.

    `mean` and `rest` are (k, p), `whitener` and `log_det` those of the covariance; as in
    `GaussianFactor`.
    """

    mean: np.ndarray
    rest: np.ndarray | None
    whitener: np.ndarray | ThinWhitener
    log_det: float

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, c: Any) -> Any:
        rest = None if self.rest is None else self.rest[c]
        return GaussianFactor(self.mean[c], rest, self.whitener, self.log_det)

    @cached_property
    def comparison(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whitened means (k, p) minus the first, their squares (k,), and those of gaps (k, k)."""
        means = self[0].whiten(self.mean, 0.0 if self.rest is None else self.rest)
        square = np.einsum("ij,ij->i", means, means)
        between = square[:, None] + square - 2 * means @ means.T
        np.fill_diagonal(between, 0.0)
        return means, square, between

    def fill(self, X: np.ndarray, distances: np.ndarray) -> None:
        """Write the squared distances of rows X (n, p) to `distances` (k, n); for a full factor.

        A row is whitened once, and one product compares it with all means.
        """
        means, square, between = self.comparison
        first = self[0]
        for rows in _row_blocks(len(X), max(means.shape)):
            white = first.whiten(X[rows])
            # The square is expanded about the nearest mean: about the origin it would cancel.
            near = (white @ means.T - 0.5 * square).argmax(axis=1)
            mean = means[near]
            white -= mean
            own = np.einsum("ij,ij->i", white, white + 2 * mean)
            distance = own - 2 * means @ white.T + between[near].T
            distances[:, rows] = np.where(np.isnan(distance), np.inf, np.maximum(distance, 0.0))


@dataclass(frozen=True, eq=False)
class BasisFactors(Sequence[GaussianFactor]):
    """k Gaussians with variances along one basis; as a sequence, the factor of each.

    `mean` (k, p), `variance` (k, p) along the orthonormal rows of the `basis` (p, p), and `log_det`
    (k,) of the covariances.
    """

    mean: np.ndarray
    variance: np.ndarray
    basis: np.ndarray
    log_det: np.ndarray

    @classmethod
    def of(
        cls, moments: BasisMoments, shrinkage: np.ndarray, target: np.ndarray, who: Sequence[str]
    ) -> BasisFactors:
        """Shrink the variances of `moments`; raises the errors of `factorise`."""
        variance = []
        for m, intensity, level, name in zip(moments, shrinkage, target, who, strict=True):
            variance.append(moments.scale**2 * shrunk_covariance(m, intensity, level))
            least = len(moments.scale) * EPS
            if not variance[-1].min() > least * variance[-1].max():
                of_features = variance[-1] @ moments.basis**2
                constant = np.flatnonzero(of_features <= least * of_features.max())
                if len(constant):
                    raise ValueError(constant_message(m, constant, intensity, name))
                check_regular(m, 0.0, intensity, name)
        along = np.stack([m.mean for m in moments]) * moments.scale
        mean = moments.centre + along @ moments.basis
        return cls(mean, np.stack(variance), moments.basis, np.log(variance).sum(axis=1))

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, c: Any) -> Any:
        variance = self.variance[c]
        whitener = ThinWhitener(self.basis, variance, float(variance.max()))
        return GaussianFactor(self.mean[c], None, whitener, float(self.log_det[c]))

    @cached_property
    def along(self) -> np.ndarray:
        """Means (k, p) minus the first, along the basis."""
        return np.asarray((self.mean - self.mean[0]) @ self.basis.T)

    def fill(self, X: np.ndarray, distances: np.ndarray) -> None:
        """Write the squared distances of rows X (n, p) to `distances` (k, n)."""
        pairs = list(zip(self.along, 1 / self.variance, strict=True))
        for rows in _row_blocks(len(X), 8 * X.shape[1]):
            turned = np.subtract(X[rows], self.mean[0], dtype=np.float64) @ self.basis.T
            for c, (mean, precision) in enumerate(pairs):
                D = turned - mean
                D *= D
                distances[c, rows] = D @ precision
        distances[np.isnan(distances)] = np.inf


def _row_blocks(n: int, k: int) -> list[slice]:
    """Return parts of n rows of which k numbers a row fit the cache."""
    step = max(1, _BLOCK_BYTES // (8 * k))
    return [slice(start, start + step) for start in range(0, n, step)]


def squared_distances(factors: Sequence[GaussianFactor], X: np.ndarray) -> np.ndarray:
    """Squared Mahalanobis distance of each row of X (n, p) to each of k Gaussians, (n, k)."""
    distances = np.empty((len(factors), len(X)))
    if isinstance(factors, BasisFactors) or (
        isinstance(factors, TiedFactors) and not isinstance(factors.whitener, ThinWhitener)
    ):
        factors.fill(X, distances)
    else:
        for factor, row in zip(factors, distances, strict=True):
            row[:] = factor.squared_distance(X)
    return distances.T


def class_factors(
    covariance_type: str,
    moments: Sequence[Moments],
    shrinkage: np.ndarray,
    target: np.ndarray,
    who: Sequence[str],
) -> Sequence[GaussianFactor]:
    """Factor k covariances of `class_moments`, shrunk by (k,) towards (k,), as `factorise` does."""
    if covariance_type == "tied":
        tied = moments if isinstance(moments, TiedMoments) else TiedMoments.pooling(moments)
        shared = factorise(tied.within, shrinkage[0], target[0], "the tied covariance")
        whitener = shared.whitener
        return TiedFactors(*_mean_and_rest(tied, whitener), whitener, shared.log_det)
    if isinstance(moments, BasisMoments):
        return BasisFactors.of(moments, shrinkage, target, who)
    return [factorise(*part) for part in zip(moments, shrinkage, target, who, strict=True)]


def mixture_log_density(
    factors: Sequence[GaussianFactor], log_weights: np.ndarray, X: np.ndarray
) -> np.ndarray:
    """Log-density in nats of each row of X (n, p) under a mixture of k Gaussians, (n,)."""
    log_density = np.empty(len(X))
    for rows in _row_blocks(len(X), len(log_weights)):
        joint = log_densities(factors, X[rows]) + log_weights
        top = joint.max(axis=-1)
        top = np.where(top == -np.inf, 0.0, top)
        log_density[rows] = top + np.log(np.exp(joint - top[:, None]).sum(axis=-1))
    return log_density


def log_densities(factors: Sequence[GaussianFactor], X: np.ndarray) -> np.ndarray:
    """Log-density in nats of each row of X (n, p) under each of k Gaussians, (n, k)."""
    if isinstance(factors, TiedFactors | BasisFactors):
        log_det = factors.log_det
    else:
        log_det = np.array([factor.log_det for factor in factors])
    constant = X.shape[1] * LOG_2PI + log_det
    return np.asarray(-0.5 * (constant + squared_distances(factors, X)))


def leave_one_out_densities(
    factors: Sequence[GaussianFactor],
    moments: Sequence[Moments],
    intensity: np.ndarray,
    X: np.ndarray,
    own: np.ndarray,
    w: np.ndarray | None,
) -> np.ndarray:
    """Return `log_densities` of rows X (n, p) of the fit, each by the fit to all others, (n, k).

    `factors` and `moments` are those of k Gaussians, full or tied, `intensity` (k,) is their
    shrinkage, `own` (n,) the number of the class of each row and `w` (n,) its weight. A row alone
    in its class has density zero there. The variance that covariances are shrunk towards stays.

    Without a row at ``d = x - m``, of squared distance ``M = d^T C^-1 d``, the covariance is
    ``scale (C - b d d^T)``; its determinant and its inverse follow from M (Sherman, Morrison).
    """
    n, p = X.shape
    weight = weights_of(moments)
    w = np.ones(n) if w is None else w
    rows, left = np.arange(n), weight[own] - w
    with np.errstate(all="ignore"):
        gain = weight[own] / left
        distances = np.array(squared_distances(factors, X))
        M = distances[rows, own].copy()
        total = weight.sum() if isinstance(factors, TiedFactors) else weight[own]
        scale = total / (total - w)
        b = (1 - intensity[own]) * gain * w / ((total - w) * scale)
        rest = 1 - b * M
        log_det = np.tile([factor.log_det for factor in factors], (n, 1))
        change = p * np.log(scale) + np.log(rest)
        if isinstance(factors, TiedFactors):
            log_det += change[:, None]
            between = squared_distances(factors, factors.mean)[own]
            cross = (M[:, None] + distances - between) / 2
            distances = (distances + (b / rest)[:, None] * cross**2) / scale[:, None]
        else:
            log_det[rows, own] += change
        distances[rows, own] = gain**2 * M / (scale * rest)
        joint = -0.5 * (p * LOG_2PI + log_det + distances)
    bad = ~((left > 0) & (rest > 0))
    joint[rows[bad], own[bad]] = -np.inf
    return np.asarray(np.where(np.isnan(joint), -np.inf, joint))


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


def explain_nearest(
    factors: Sequence[GaussianFactor], labels: Sequence[Any], X: np.ndarray, top: int
) -> list[dict[str, Any]]:
    """Return `explain_rows` of each row of X (n, p) under the Gaussian of least distance."""
    with np.errstate(all="ignore"):
        nearest = squared_distances(factors, X).argmin(axis=1)
    return [
        next(explain_rows(factors[c].mean, factors[c].contributions(x), x, top, labels[c]))
        for c, x in zip(nearest.tolist(), X[:, None], strict=True)
    ]
