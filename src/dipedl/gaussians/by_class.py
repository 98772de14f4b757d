"""Moments of rows by class: of each its own, or one scatter for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy import linalg

from ..maths.special import EPS
from .factor import constant_message, shrunk_covariance
from .moments import Moments, OuterProducts, summed
from .rows import WeightedRows
from .shrinkage import Shrinkage, class_shrinkage, mean_variance, shrinkage_intensity
from .thin import check_matrices, scatter_rows

_BLOCK_NUMBERS = 1 << 20


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
        """Of rows X (n, p), labels y (n,), weights (n,), for the sorted `classes`; one pass."""
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
            origin[c] = rows.reference()
            for D, w in rows.less(origin[c]):
                weight[c] += w.sum()
                offset[c] += w @ D
                if not thin:
                    products.add(D if rows.equal else D * np.sqrt(w)[:, None])
            offset[c] /= weight[c]
            if thin:
                roots += [D * np.sqrt(w)[:, None] for D, w in rows.less(origin[c], offset[c])]
        found = np.vstack([np.zeros((0, p)), *roots])
        if not thin:
            found = products.less(offset * np.sqrt(weight)[:, None])
        return cls(weight, origin, offset, _residuals(float(weight.sum()), found))

    @classmethod
    def pooling(cls, moments: Sequence[Moments]) -> TiedMoments:
        """Of moments of each class, none of them diagonal."""
        weight = np.array([m.weight for m in moments])
        origin, offset = (
            np.stack([getattr(m, of) for m in moments]) for of in ("origin", "offset")
        )
        return cls(weight, origin, offset, replace(pooled(moments), higher=None))

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, c: Any) -> Any:
        share = self.weight[c] / (self.within.weight or 1.0)
        scatter = self.within.scatter * (np.sqrt(share) if self.within.thin else share)
        return Moments(float(self.weight[c]), self.origin[c], self.offset[c], scatter)

    def at(self, places: np.ndarray) -> TiedMoments:
        """The classes at `places` (m,) in their order; one without rows where a place is -1."""
        weight = np.where(places < 0, 0.0, self.weight[places])
        return replace(self, weight=weight, origin=self.origin[places], offset=self.offset[places])

    @property
    def whole(self) -> Moments:
        """Moments of all rows, which have a weight."""
        origin = self.origin[self.weight.argmax()]
        gaps = np.where(self.weight[:, None] > 0, (self.origin - origin) + self.offset, 0.0)
        offset = self.weight @ gaps / self.within.weight
        bridges = (gaps - offset) * np.sqrt(self.weight)[:, None]
        scatter = summed(self.within.scatter, self.within.scatter[:0], bridges)
        return Moments(self.within.weight, origin, offset, scatter)

    def standardised(self, centre: np.ndarray, scale: np.ndarray) -> TiedMoments:
        """Moments of ``(x - centre) / scale``, of shapes (p,)."""
        within = self.within.standardised(0 * centre, scale)
        return TiedMoments(self.weight, (self.origin - centre) / scale, self.offset / scale, within)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: TiedMoments) -> TiedMoments:
        """Moments of both sets of rows together, of the same classes."""
        if not isinstance(other, TiedMoments):
            return NotImplemented
        seen = self.weight[:, None] > 0
        origin = np.where(seen, self.origin, other.origin)
        weight = self.weight + other.weight
        share = (other.weight / np.where(weight > 0, weight, 1.0))[:, None]
        # A class that one side alone has seen has no gap.
        met = seen & (other.weight[:, None] > 0)
        gap = np.where(met, (other.origin - origin) + (other.offset - self.offset), 0.0)
        bridges = gap * np.sqrt(self.weight[:, None] * share)
        offset = np.where(seen, self.offset + gap * share, other.offset)
        scatter = summed(self.within.scatter, other.within.scatter, bridges)
        return TiedMoments(weight, origin, offset, _residuals(float(weight.sum()), scatter))


@dataclass(frozen=True, eq=False)
class BasisMoments(Sequence[Moments]):
    """Of k classes along one orthogonal basis: p x p numbers for all, and p for each.

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
        """Of rows X (n, p), labels y (n,), weights (n,), for the sorted `classes`; two passes."""
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
            along = new if along is None else added(along, new)
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
    """What a covariance of that type is made of; MemoryError where it cannot fit."""
    # Fourth moments move with the scatter of their own class.
    pools = covariance_type == "tied" and not higher
    shared = covariance_type == "shared-basis"
    check_matrices(covariance_type, len(classes), y, X.shape[1], shared=pools or shared)
    if shared:
        return BasisMoments.of(X, y, weights, classes, higher)
    if pools:
        return TiedMoments.of(X, y, weights, classes)
    diagonal = covariance_type == "diag"
    return moments_by_class(X, y, weights, classes, diagonal=diagonal, higher=higher)


def added(a: Sequence[Moments], b: Sequence[Moments]) -> Any:
    """Moments of both sets of rows, of the same classes."""
    if isinstance(a, TiedMoments) and isinstance(b, TiedMoments):
        return a + b
    return [x + y for x, y in zip(a, b, strict=True)]


def at_classes(moments: Sequence[Moments], own: np.ndarray, classes: np.ndarray) -> Any:
    """Those of all `classes`, among which their `own` are; of weight 0 for any other."""
    places = np.full(len(classes), -1)
    places[np.searchsorted(classes, own)] = np.arange(len(own))
    if isinstance(moments, TiedMoments):
        return moments.at(places)
    return [replace(moments[0], weight=0.0) if c < 0 else moments[c] for c in places]


def class_shrinkages(
    moments: Sequence[Moments], shrinkage: Shrinkage | tuple[float, ...], *, tied: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Intensity and target of each of k classes, (k,); a tuple holds one number per class."""
    k = len(moments)
    if isinstance(shrinkage, tuple) and len(shrinkage) != k:
        raise ValueError(f"shrinkage must hold {k} numbers, got {len(shrinkage)}")
    settings = shrinkage if isinstance(shrinkage, tuple) else (shrinkage,) * k
    if tied:
        found = [class_shrinkage(pooled(moments), settings[0], None)] * k
    else:
        weight = sum(m.weight for m in moments) * len(moments[0].offset)
        common = None if shrinkage in (None, 0) else sum(m.trace for m in moments) / weight
        found = [class_shrinkage(m, of, common) for m, of in zip(moments, settings, strict=True)]
    intensity, target = np.array(found).T
    return intensity, target


def weights_of(moments: Sequence[Moments]) -> np.ndarray:
    """Weight of each class, (k,)."""
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
    """Moments of the rows of X (n, p) of each class; of weight 0 for a class without rows."""
    found = []
    for rows in _rows_by_class(y, classes):
        w = weights
        if not len(rows):
            rows, w = np.zeros(1, dtype=int), np.zeros(len(X))
        found.append(Moments.of(X, w, rows=rows, diagonal=diagonal, higher=higher))
    return found


def _rows_by_class(y: np.ndarray, classes: np.ndarray) -> list[np.ndarray]:
    """Where the labels y (n,) are each of the sorted `classes`; labels of no class are left out."""
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


def pooled(moments: Iterable[Moments]) -> Moments:
    """Moments of the residuals from the mean of each."""
    if isinstance(moments, TiedMoments):
        return moments.within
    return reduce(add, (replace(m, origin=0 * m.origin, offset=0 * m.offset) for m in moments))


def _residuals(weight: float, scatter: np.ndarray) -> Moments:
    zero = np.zeros(scatter.shape[1])
    return Moments(weight, zero, zero, scatter)
