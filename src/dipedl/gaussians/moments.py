"""Mergeable moments of rows, of all or by class: what Gaussians are made of; their shrinkage."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from scipy import linalg
from scipy.linalg import blas

from ..maths.arrays import EPS, check_number

__all__ = ["Moments"]

#: From so many features on, and twice as many as rows, the rows themselves are the smaller form.
WIDE = 256
_CHUNK_BYTES = 1 << 20
#: Rows whose mean is a point near that of all: a quarter of these are lost if it is far off.
_FIRST = 256
#: Numbers of a block of rows that are turned at once.
_BLOCK_NUMBERS = 1 << 20
#: Bytes that any machine has: fewer are not counted.
_ROOMY = 1 << 30
Shrinkage = float | str | None
#: Estimated from the third and fourth powers of the features.
LEDOIT_WOLF = "ledoit-wolf"


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
        return self.covariance if self.diagonal else self.covariance.diagonal()

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
        w = np.ones(stop) if self._weights is None else self._weights[:stop]
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
            yield part, ones[: len(part)] if self._weights is None else self._weights[start:stop]

    def _rows(self, start: int, stop: int) -> np.ndarray:
        if self._places is None:
            return self._X[start:stop]
        # Faster than self._X[places], which asks whether each lies inside.
        return np.take(self._X, self._places[start:stop], axis=0, mode="clip")


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
        # Under a Gaussian each variance s^2 has the sampling error 2 s^4 / n.
        error = float((2 * cov * cov).sum() / m.weight)
        spread = float(((cov - cov.mean()) ** 2).sum())
        return error / (error + spread) if error > 0 else 1.0
    return oas_intensity(float((cov * cov).sum()) / p**2, m.weight, p)


def oas_intensity(mean_square: float, n: float, p: int) -> float:
    """OAS of n rows and p features, from the mean square of the covariance over its level."""
    denominator = (n + 1) * (mean_square - 1 / p)
    return min((mean_square + 1) / denominator, 1.0) if denominator > 0 else 1.0


_ESTIMATED: dict[str, Callable[[Moments, float], float]] = {
    LEDOIT_WOLF: _ledoit_wolf,
    "oas": _oas,
}


def check_shrinkage(shrinkage: Any) -> None:
    """Raise unless it is None, a number in [0, 1] or a known estimate; a tuple may hold several."""
    for one in shrinkage if isinstance(shrinkage, tuple) else (shrinkage,):
        if isinstance(one, str):
            if one not in _ESTIMATED:
                raise ValueError(
                    f"shrinkage must be None, a number in [0, 1] or one of {sorted(_ESTIMATED)}, "
                    f"got {one!r}"
                )
        elif one is not None:
            check_number("shrinkage", one, "in [0, 1]", lambda x: 0 <= x <= 1)


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
        level = mean_variance(moments)
        if not np.isfinite(level):
            raise ValueError("the covariance of the features overflows; rescale the features")
        if len(moments.offset) == 1:
            return 0.0
        # Relative to its own level a covariance can be squared in any unit.
        return _ESTIMATED[shrinkage](moments, level) if level > 0 else 1.0
    return float(shrinkage)


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


@dataclass(frozen=True, eq=False)
class TiedMoments(Sequence[Moments]):
    """Weights and means of k classes, and one scatter of all rows about them; ``+`` merges.

    As a sequence it gives the `Moments` of each class, as if it had the shared covariance. `weight`
    (k,) is 0 for a class without rows, ``origin + offset`` (k, p) are the means, and `within` are
    the moments of the residuals from them.
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
        scatter = np.vstack([np.zeros((0, p)), *roots])
        if not thin:
            scatter = products.minus(offset * np.sqrt(weight)[:, None])
        return cls(weight, origin, offset, _residuals(float(weight.sum()), scatter))

    @classmethod
    def pooling(cls, moments: Sequence[Moments]) -> TiedMoments:
        """Pool moments of each class, none of them diagonal."""
        origin, offset = np.stack([(m.origin, m.offset) for m in moments], axis=1)
        return cls(weights_of(moments), origin, offset, replace(pool(moments), higher=None))

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
    `along` are the diagonal moments of each class, of rows ``basis @ (x - centre) / scale``, where
    `centre` (p,) is the mean of all rows and `scale` (p,) the tied standard deviations.

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
        along: Any = None
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
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


def add_moments(a: Any, b: Any) -> Any:
    """Add the moments of two sets of rows of the same classes."""
    shared = isinstance(a, TiedMoments) and isinstance(b, TiedMoments)
    return a + b if shared else list(map(add, a, b))


def align_classes(moments: Sequence[Moments], own: np.ndarray, classes: np.ndarray) -> Any:
    """Return the moments of every class in `classes`; a class not among its `own` has weight 0."""
    places = np.full(len(classes), -1)
    places[np.searchsorted(classes, own)] = np.arange(len(own))
    if isinstance(moments, TiedMoments):
        return moments.at(places)
    return [replace(moments[0], weight=0.0) if c < 0 else moments[c] for c in places]


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
    moments = []
    for rows in _rows_by_class(y, classes):
        w = weights
        if not len(rows):
            rows, w = np.zeros(1, dtype=int), np.zeros(len(X))
        moments.append(Moments.of(X, w, rows=rows, diagonal=diagonal, higher=higher))
    return moments


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


def class_shrinkages(
    moments: Sequence[Moments], shrinkage: Shrinkage | tuple[float, ...], *, tied: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return intensity and target of each of k classes, (k,); a tuple is one number per class."""
    k = len(moments)
    if isinstance(shrinkage, tuple) and len(shrinkage) != k:
        raise ValueError(f"shrinkage must hold {k} numbers, got {len(shrinkage)}")
    settings = shrinkage if isinstance(shrinkage, tuple) else (shrinkage,) * k
    if tied:
        pairs = [class_shrinkage(pool(moments), settings[0], None)] * k
    else:
        weight = sum(m.weight for m in moments) * len(moments[0].offset)
        common = None if shrinkage in (None, 0) else sum(m.trace for m in moments) / weight
        pairs = [class_shrinkage(m, of, common) for m, of in zip(moments, settings, strict=True)]
    intensity, target = np.array(pairs).T
    return intensity, target


def _check_room(covariance_type: str, k: int, y: np.ndarray, p: int, *, shared: bool) -> None:
    """Raise MemoryError where the matrices of k classes, with labels y (n,), cannot fit, up front.

    `shared` says that all classes have one scatter.
    """
    if covariance_type == "diag" or 16 * (1 if shared else k) * p**2 <= _ROOMY:
        return
    counts = np.unique(y, return_counts=True)[1]
    rows = scatter_rows(len(y) if shared else counts, p)
    needed = 8 * p * int(rows.sum() + (len(counts) if covariance_type == "full" else 1) * p)
    if needed > (memory := machine_memory()):
        raise MemoryError(
            f"{covariance_type=} of {len(counts)} classes and {p} features takes "
            f"{needed / 2**30:,.1f} GiB, and this machine has {memory / 2**30:,.1f}; use "
            "covariance_type='tied' or 'diag', fewer features, or "
            "dipedl.pretrained.ClassGaussians with covariance='low-rank'"
        )


def machine_memory() -> float:
    """Return the bytes of this machine; infinity where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return np.inf
