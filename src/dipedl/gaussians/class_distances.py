"""Squared distances of rows to several Gaussians at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..maths.special import EPS, LOG_2PI
from .by_class import BasisMoments, TiedMoments
from .factor import (
    NEGLIGIBLE,
    GaussianFactor,
    check_regular,
    condition_number,
    constant_message,
    factorise,
    shrunk_covariance,
)
from .moments import Moments
from .thin import ThinWhitener

_BLOCK_BYTES = 1 << 23


def row_blocks(n: int, k: int) -> Iterator[slice]:
    """Parts of n rows of which k numbers a row fit the cache."""
    step = max(1, _BLOCK_BYTES // (8 * k))
    return (slice(start, start + step) for start in range(0, n, step))


def squared_distances(factors: Sequence[GaussianFactor], X: np.ndarray) -> np.ndarray:
    """Squared Mahalanobis distance of each row of X (n, p) to each of k Gaussians, (n, k)."""
    found = np.empty((len(factors), len(X)))
    if isinstance(factors, BasisFactors) or (isinstance(factors, TiedFactors) and not factors.thin):
        with np.errstate(over="ignore", invalid="ignore"):
            factors.fill(X, found)
    else:
        for factor, row in zip(factors, found, strict=True):
            row[:] = factor.squared_distance(X)
    return found.T


def class_factors(
    covariance_type: str,
    moments: Sequence[Moments],
    shrinkage: np.ndarray,
    target: np.ndarray,
    who: Sequence[str],
) -> Sequence[GaussianFactor]:
    """Factors of k covariances of `class_moments`, shrunk by (k,) towards (k,), as `factorise`."""
    if covariance_type == "tied":
        held = moments if isinstance(moments, TiedMoments) else TiedMoments.pooling(moments)
        shared = factorise(held.within, shrinkage[0], target[0], "the tied covariance")
        return TiedFactors.of(held, shared)
    if isinstance(moments, BasisMoments):
        return BasisFactors.of(moments, shrinkage, target, who)
    parts = zip(moments, shrinkage, target, who, strict=True)
    return [factorise(*part) for part in parts]


def condition_numbers(
    moments: Sequence[Moments], shrinkage: np.ndarray, target: np.ndarray
) -> np.ndarray:
    """Of the covariance that is made of the moments of each class and shrunk, (k,)."""
    parts = zip(moments, shrinkage, target, strict=True)
    unit = moments.scale**2 if isinstance(moments, BasisMoments) else 1.0
    return np.array([condition_number(unit * shrunk_covariance(*part)) for part in parts])


def log_densities(factors: Sequence[GaussianFactor], X: np.ndarray) -> np.ndarray:
    """Log-density in nats of each row of X (n, p) under each of k Gaussians, (n, k)."""
    if isinstance(factors, TiedFactors | BasisFactors):
        log_det = factors.log_det
    else:
        log_det = np.array([factor.log_det for factor in factors])
    constant = X.shape[1] * LOG_2PI + log_det
    return np.asarray(-0.5 * (constant + squared_distances(factors, X)))


@dataclass(frozen=True, eq=False)
class TiedFactors(Sequence[GaussianFactor]):
    """k Gaussians of one covariance; as a sequence, the factor of each.

    Attributes
    ----------
    mean, rest : ndarray, shape (k, p)
        As in `GaussianFactor`; `rest` may be None.
    whitener, log_det
        Of the covariance.
    """

    mean: np.ndarray
    rest: np.ndarray | None
    whitener: np.ndarray | ThinWhitener
    log_det: float

    @classmethod
    def of(cls, moments: TiedMoments, shared: GaussianFactor) -> TiedFactors:
        """The factor of the covariance of `moments`, placed at the mean of each class."""
        mean, whitener = moments.origin + moments.offset, shared.whitener
        rest = (moments.origin - mean) + moments.offset
        if isinstance(whitener, ThinWhitener):
            shift = np.sqrt(whitener.squared(rest.copy()))
        else:
            shift = rest @ whitener.T
        held = rest if np.abs(shift).max() > NEGLIGIBLE else None
        return cls(mean, held, whitener, shared.log_det)

    @property
    def thin(self) -> bool:
        """Whether the factor is that of wide data."""
        return isinstance(self.whitener, ThinWhitener)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, c: Any) -> Any:
        rest = None if self.rest is None else self.rest[c]
        return GaussianFactor(self.mean[c], rest, self.whitener, self.log_det)

    @cached_property
    def compared(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whitened means (k, p) about the first, their squares (k,), and those of gaps (k, k)."""
        means = self[0].whitened(self.mean, 0.0 if self.rest is None else self.rest)
        square = np.einsum("ij,ij->i", means, means)
        between = square[:, None] + square - 2 * means @ means.T
        np.fill_diagonal(between, 0.0)
        return means, square, between

    def fill(self, X: np.ndarray, found: np.ndarray) -> None:
        """Write the squared distances of rows X (n, p) to `found` (k, n); not of a thin factor.

        A row is whitened once, and one product compares it with all means.
        """
        means, square, between = self.compared
        first = self[0]
        for rows in row_blocks(len(X), max(means.shape)):
            white = first.whitened(X[rows])
            # The square is expanded about the nearest mean: about the origin it would cancel.
            near = (white @ means.T - 0.5 * square).argmax(axis=1)
            mean = means[near]
            white -= mean
            own = np.einsum("ij,ij->i", white, white + 2 * mean)
            distance = own - 2 * means @ white.T + between[near].T
            found[:, rows] = np.where(np.isnan(distance), np.inf, np.maximum(distance, 0.0))


@dataclass(frozen=True, eq=False)
class BasisFactors(Sequence[GaussianFactor]):
    """k Gaussians with variances along one basis; as a sequence, the factor of each.

    Attributes
    ----------
    mean, variance : ndarray, shape (k, p)
        Means, and variances along the rows of the basis.
    basis : ndarray, shape (p, p)
        Orthonormal rows.
    log_det : ndarray, shape (k,)
        Log-determinants of the covariances.
    """

    mean: np.ndarray
    variance: np.ndarray
    basis: np.ndarray
    log_det: np.ndarray

    @classmethod
    def of(
        cls, moments: BasisMoments, shrinkage: np.ndarray, target: np.ndarray, who: Sequence[str]
    ) -> BasisFactors:
        """At the means of `moments`, shrunk; ValueError as of `factorise`."""
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
        held = np.stack(variance)
        return cls(mean, held, moments.basis, np.log(held).sum(axis=1))

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, c: Any) -> Any:
        variance = self.variance[c]
        whitener = ThinWhitener(self.basis, variance, float(variance.max()))
        return GaussianFactor(self.mean[c], None, whitener, float(self.log_det[c]))

    @cached_property
    def along(self) -> np.ndarray:
        """Means (k, p) less the first, along the basis."""
        return np.asarray((self.mean - self.mean[0]) @ self.basis.T)

    def fill(self, X: np.ndarray, found: np.ndarray) -> None:
        """Write the squared distances of rows X (n, p) to `found` (k, n): a row is turned once."""
        pairs = list(zip(self.along, 1 / self.variance, strict=True))
        for rows in row_blocks(len(X), 8 * X.shape[1]):
            turned = np.subtract(X[rows], self.mean[0], dtype=np.float64) @ self.basis.T
            for c, (mean, precision) in enumerate(pairs):
                D = turned - mean
                D *= D
                found[c, rows] = D @ precision
        found[np.isnan(found)] = np.inf
