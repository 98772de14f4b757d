"""Gaussians of classes: moments, factors and distances, with or without a shared covariance."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from scipy import linalg

from ..maths.special import EPS, LOG_2PI
from .factor import (
    NEGLIGIBLE,
    GaussianFactor,
    Shrinkage,
    ThinWhitener,
    check_regular,
    class_shrinkage,
    constant_message,
    explain_rows,
    factorise,
    mean_variance,
    shrinkage_intensity,
    shrunk_covariance,
)
from .moments import Moments, OuterProducts, WeightedRows, add_scatters, scatter_rows

_BLOCK_NUMBERS, _BLOCK_BYTES = 1 << 20, 1 << 23
#: Bytes that any machine has: fewer are not counted.
_ROOMY = 1 << 30


@dataclass(frozen=True, eq=False)
class TiedMoments(Sequence[Moments]):
    """Weights and means of k classes, and one scatter of all rows about them; ``+`` merges.

    As a sequence it gives the `Moments` of each class, as if it had the shared covariance.

    Attributes
    ----------
    weight : ndarray, shape (k,)
        Sums of the sample weights; 0 for a class without rows.
    origin, offset : ndarray, shape (k, p)
        ``mean = origin + offset``, as in `Moments`.
    within : Moments
        Of the residuals from the class means.

    References
    ----------
    Chan, Golub, LeVeque (1983), for each class; the sums over classes add up.
    """

    weight: np.ndarray
    origin: np.ndarray
    offset: np.ndarray
    within: Moments

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(
        cls, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, classes: np.ndarray
    ) -> TiedMoments:
        """Sum rows X (n, p), labels y (n,), weights (n,), for the sorted `classes`; one pass."""
        k, p = len(classes), X.shape[1]
        weight, origin, offset = np.zeros(k), np.zeros((k, p)), np.zeros((k, p))
        places = _rows_by_class(y, classes)
        if weights is not None:
            places = [rows[weights[rows] > 0] for rows in places]
        thin, roots = scatter_rows(sum(map(len, places)), p) < p, []
        products = OuterProducts(0 if thin else p)
        for c, at in enumerate(places):
            if not len(at):
                continue
            w = None if weights is None else weights[at].astype(np.float64)
            rows = WeightedRows(X, at, w)
            origin[c] = rows.point_near_mean()
            for D, w in rows.minus(origin[c]):
                weight[c] += w.sum()
                offset[c] += w @ D
                if not thin:
                    products.add(D if rows.equal else D * np.sqrt(w)[:, None])
            offset[c] /= weight[c]
            if thin:
                roots += [D * np.sqrt(w)[:, None] for D, w in rows.minus(origin[c], offset[c])]
        found = np.vstack([np.zeros((0, p)), *roots])
        if not thin:
            found = products.minus(offset * np.sqrt(weight)[:, None])
        return cls(weight, origin, offset, _residuals(float(weight.sum()), found))

    @classmethod
    def pooling(cls, moments: Sequence[Moments]) -> TiedMoments:
        """Pool moments of each class, none of them diagonal."""
        weight = np.array([m.weight for m in moments])
        origin, offset = (
            np.stack([getattr(m, of) for m in moments]) for of in ("origin", "offset")
        )
        return cls(weight, origin, offset, replace(pool(moments), higher=None))

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, c: Any) -> Any:
        share = self.weight[c] / (self.within.weight or 1.0)
        scatter = self.within.scatter * (np.sqrt(share) if self.within.thin else share)
        return Moments(float(self.weight[c]), self.origin[c], self.offset[c], scatter)

    def at(self, places: np.ndarray) -> TiedMoments:
        """Return the classes at `places` (m,) in their order; one without rows where it is -1."""
        weight = np.where(places < 0, 0.0, self.weight[places])
        return replace(self, weight=weight, origin=self.origin[places], offset=self.offset[places])

    @property
    def whole(self) -> Moments:
        """Moments of all rows, which have a weight."""
        origin = self.origin[self.weight.argmax()]
        gaps = np.where(self.weight[:, None] > 0, (self.origin - origin) + self.offset, 0.0)
        offset = self.weight @ gaps / self.within.weight
        bridges = (gaps - offset) * np.sqrt(self.weight)[:, None]
        scatter = add_scatters(self.within.scatter, self.within.scatter[:0], bridges)
        return Moments(self.within.weight, origin, offset, scatter)

    def standardise(self, centre: np.ndarray, scale: np.ndarray) -> TiedMoments:
        """Return the moments of ``(x - centre) / scale``, of shapes (p,)."""
        within = self.within.standardise(0 * centre, scale)
        return TiedMoments(self.weight, (self.origin - centre) / scale, self.offset / scale, within)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: TiedMoments) -> TiedMoments:
        """Add the moments of two sets of rows of the same classes."""
        if not isinstance(other, TiedMoments):
            return NotImplemented
        mine = self.weight[:, None] > 0
        origin = np.where(mine, self.origin, other.origin)
        weight = self.weight + other.weight
        share = (other.weight / np.where(weight > 0, weight, 1.0))[:, None]
        # A class that one side alone has seen has no gap.
        met = mine & (other.weight[:, None] > 0)
        gap = np.where(met, (other.origin - origin) + (other.offset - self.offset), 0.0)
        bridges = gap * np.sqrt(self.weight[:, None] * share)
        offset = np.where(mine, self.offset + gap * share, other.offset)
        scatter = add_scatters(self.within.scatter, other.within.scatter, bridges)
        return TiedMoments(weight, origin, offset, _residuals(float(weight.sum()), scatter))


@dataclass(frozen=True, eq=False)
class BasisMoments(Sequence[Moments]):
    """Moments of k classes along one orthogonal basis: p x p numbers for all, and p for each.

    The basis holds the eigenvectors of the covariance of the residuals from the class means, so
    that it needs all rows before the first of them can be counted: it is no sum. Rows are scaled
    by that covariance, shrunk by OAS: it is what the variances of a class then shrink towards.

    Attributes
    ----------
    centre : ndarray, shape (p,)
        Mean of all rows.
    basis, scale : ndarray, shapes (p, p) and (p,)
        Directions, as rows, and the tied standard deviations along them.
    along : list of Moments
        Of each class, diagonal, of rows ``basis @ (x - centre) / scale``.

    References
    ----------
    Flury, "Common principal components in k groups", JASA 79 (1984). His basis is that of greatest
    likelihood, found by iteration; this one is that of the pooled covariance, found at once. They
    agree where the covariances of the classes commute.
    """

    centre: np.ndarray
    basis: np.ndarray
    scale: np.ndarray
    along: list[Moments]

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        weights: np.ndarray | None,
        classes: np.ndarray,
        higher: bool,
    ) -> BasisMoments:
        """Sum rows X (n, p), labels y (n,), weights (n,), for the sorted `classes`; two passes."""
        tied = TiedMoments.of(X, y, weights, classes)
        if not (target := mean_variance(tied.within)):
            everywhere = np.arange(X.shape[1])
            raise ValueError(constant_message(tied.within, everywhere, 0.0, "the shared basis"))
        shrinkage, centre = shrinkage_intensity(tied.within, "oas"), tied.whole.mean
        values, vectors = linalg.eigh(shrunk_covariance(tied.within, shrinkage, target))
        scale = np.sqrt(values.clip(target * EPS))
        turn = vectors / scale
        step = max(_BLOCK_NUMBERS // X.shape[1], 4 * len(classes))
        blocks = (slice(start, start + step) for start in range(0, len(X), step))
        along: Any = None
        for rows in blocks:
            w = None if weights is None else weights[rows]
            turned = (X[rows] - centre) @ turn
            new = moments_by_class(turned, y[rows], w, classes, diagonal=True, higher=higher)
            along = new if along is None else add_moments(along, new)
        return cls(centre, np.ascontiguousarray(vectors.T), scale, along)

    def __len__(self) -> int:
        return len(self.along)

    def __getitem__(self, c: Any) -> Any:
        return self.along[c]


def class_moments(
    covariance_type: str,
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    classes: np.ndarray,
    *,
    higher: bool,
) -> Sequence[Moments]:
    """Return the moments for a covariance of that type; MemoryError where it cannot fit."""
    # Fourth moments move with the scatter of their own class.
    pools = covariance_type == "tied" and not higher
    shared = covariance_type == "shared-basis"
    _check_room(covariance_type, len(classes), y, X.shape[1], shared=pools or shared)
    if shared:
        return BasisMoments.of(X, y, weights, classes, higher)
    if pools:
        return TiedMoments.of(X, y, weights, classes)
    diagonal = covariance_type == "diag"
    return moments_by_class(X, y, weights, classes, diagonal=diagonal, higher=higher)


def add_moments(a: Sequence[Moments], b: Sequence[Moments]) -> Any:
    """Add the moments of two sets of rows of the same classes."""
    if isinstance(a, TiedMoments) and isinstance(b, TiedMoments):
        return a + b
    return [x + y for x, y in zip(a, b, strict=True)]


def align_classes(moments: Sequence[Moments], own: np.ndarray, classes: np.ndarray) -> Any:
    """Return the moments of every class in `classes`; a class not among its `own` has weight 0."""
    places = np.full(len(classes), -1)
    places[np.searchsorted(classes, own)] = np.arange(len(own))
    if isinstance(moments, TiedMoments):
        return moments.at(places)
    return [replace(moments[0], weight=0.0) if c < 0 else moments[c] for c in places]


def class_shrinkages(
    moments: Sequence[Moments], shrinkage: Shrinkage | tuple[float, ...], *, tied: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return intensity and target of each of k classes, (k,); a tuple is one number per class."""
    k = len(moments)
    if isinstance(shrinkage, tuple) and len(shrinkage) != k:
        raise ValueError(f"shrinkage must hold {k} numbers, got {len(shrinkage)}")
    settings = shrinkage if isinstance(shrinkage, tuple) else (shrinkage,) * k
    if tied:
        found = [class_shrinkage(pool(moments), settings[0], None)] * k
    else:
        weight = sum(m.weight for m in moments) * len(moments[0].offset)
        common = None if shrinkage in (None, 0) else sum(m.trace for m in moments) / weight
        found = [class_shrinkage(m, of, common) for m, of in zip(moments, settings, strict=True)]
    intensity, target = np.array(found).T
    return intensity, target


def weights_of(moments: Sequence[Moments]) -> np.ndarray:
    """Return the weight of each class, (k,)."""
    if isinstance(moments, TiedMoments):
        return moments.weight
    return np.array([m.weight for m in moments])


def moments_by_class(
    X: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    classes: np.ndarray,
    *,
    diagonal: bool,
    higher: bool,
) -> list[Moments]:
    """Return the moments of each class of rows X (n, p); weight 0 for a class without rows."""
    found = []
    for rows in _rows_by_class(y, classes):
        w = weights
        if not len(rows):
            rows, w = np.zeros(1, dtype=int), np.zeros(len(X))
        found.append(Moments.of(X, w, rows=rows, diagonal=diagonal, higher=higher))
    return found


def _rows_by_class(y: np.ndarray, classes: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each of the sorted `classes`; labels y (n,) of no class are left out."""
    k = len(classes)
    if y.dtype.kind in "iu" and classes[-1] - classes[0] == k - 1:
        codes = np.where((y < classes[0]) | (y > classes[-1]), k, y - classes[0])
    else:
        codes = np.searchsorted(classes, y)
        codes[classes[np.minimum(codes, k - 1)] != y] = k
    # Of small integers numpy sorts in linear time.
    codes = codes.astype(np.min_scalar_type(k))
    ends = np.cumsum(np.bincount(codes, minlength=k + 1))[:k]
    return np.split(np.argsort(codes, kind="stable"), ends)[:k]


def pool(moments: Iterable[Moments]) -> Moments:
    """Return the moments of the residuals from the mean of each class."""
    if isinstance(moments, TiedMoments):
        return moments.within
    return reduce(add, (replace(m, origin=0 * m.origin, offset=0 * m.offset) for m in moments))


def _residuals(weight: float, scatter: np.ndarray) -> Moments:
    zero = np.zeros(scatter.shape[1])
    return Moments(weight, zero, zero, scatter)


def row_blocks(n: int, k: int) -> list[slice]:
    """Return parts of n rows of which k numbers a row fit the cache."""
    step = max(1, _BLOCK_BYTES // (8 * k))
    return [slice(start, start + step) for start in range(0, n, step)]


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
    """Factor k covariances of `class_moments`, shrunk by (k,) towards (k,), as `factorise` does."""
    if covariance_type == "tied":
        held = moments if isinstance(moments, TiedMoments) else TiedMoments.pooling(moments)
        shared = factorise(held.within, shrinkage[0], target[0], "the tied covariance")
        return TiedFactors.of(held, shared)
    if isinstance(moments, BasisMoments):
        return BasisFactors.of(moments, shrinkage, target, who)
    parts = zip(moments, shrinkage, target, who, strict=True)
    return [factorise(*part) for part in parts]


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
        """Place the factor of the covariance of `moments` at the mean of each class."""
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
        """True if the factor is that of wide data."""
        return isinstance(self.whitener, ThinWhitener)

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, c: Any) -> Any:
        rest = None if self.rest is None else self.rest[c]
        return GaussianFactor(self.mean[c], rest, self.whitener, self.log_det)

    @cached_property
    def comparison(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whitened means (k, p) minus the first, their squares (k,), and those of gaps (k, k)."""
        means = self[0].whitened(self.mean, 0.0 if self.rest is None else self.rest)
        square = np.einsum("ij,ij->i", means, means)
        between = square[:, None] + square - 2 * means @ means.T
        np.fill_diagonal(between, 0.0)
        return means, square, between

    def fill(self, X: np.ndarray, found: np.ndarray) -> None:
        """Write the squared distances of rows X (n, p) to `found` (k, n); not of a thin factor.

        A row is whitened once, and one product compares it with all means.
        """
        means, square, between = self.comparison
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
        """Means (k, p) minus the first, along the basis."""
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


def explain_nearest(
    factors: Sequence[GaussianFactor], labels: Sequence[Any], X: np.ndarray, top: int
) -> list[dict[str, Any]]:
    """Return `explain_rows` of each row of X (n, p) under the Gaussian of least distance."""
    nearest = squared_distances(factors, X).argmin(axis=1)
    return [
        next(explain_rows(factors[c].mean, factors[c].contributions(x), x, top, labels[c]))
        for c, x in zip(nearest.tolist(), X[:, None], strict=True)
    ]


def _check_room(covariance_type: str, k: int, y: np.ndarray, p: int, *, shared: bool) -> None:
    """Raise MemoryError where the matrices of k classes, with labels y (n,), cannot fit, up front.

    `shared` says that all classes have one scatter.
    """
    if covariance_type == "diag" or 16 * (1 if shared else k) * p**2 <= _ROOMY:
        return
    counts = np.unique(y, return_counts=True)[1]
    rows = scatter_rows(len(y) if shared else counts, p)
    needed = 8 * p * int(rows.sum() + (len(counts) if covariance_type == "full" else 1) * p)
    if needed > (memory := _memory()):
        raise MemoryError(
            f"{covariance_type=} of {len(counts)} classes and {p} features takes "
            f"{needed / 2**30:,.1f} GiB, and this machine has {memory / 2**30:,.1f}; use "
            "covariance_type='tied' or 'diag', fewer features, or "
            "dipedl.pretrained.ClassGaussians with covariance='low-rank'"
        )


def _memory() -> float:
    """Return the bytes of this machine; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return np.inf
