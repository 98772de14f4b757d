"""Moments of classes whose rows stream: exact ones, or their leading directions; mergeable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg

from ..gaussians.factor import GaussianFactor, factorise
from ..gaussians.moments import (
    Moments,
    Shrinkage,
    add_moments,
    class_moments,
    class_shrinkages,
    dense_scatter,
    oas_intensity,
    pool,
    weights_of,
)
from ..maths.arrays import EPS

# Of the directions of a sketch, this share guards the others (see `SketchMoments`).
_GUARDS = 0.25


class ExactMoments:
    """Moments of k classes as `dipedl.density.GDADensity` has them, for a type of covariance."""

    def __init__(self, covariance_type: str, k: int) -> None:
        self.covariance_type, self.classes = covariance_type, np.arange(k)
        self.moments: Any = None

    def add(self, X: np.ndarray, y: np.ndarray) -> None:
        """Add rows X (n, p) of classes y (n,)."""
        self._add(class_moments(self.covariance_type, X, y, None, self.classes, higher=False))

    def __iadd__(self, other: Self) -> Self:
        self._add(other.moments)
        return self

    def _add(self, moments: Any) -> None:
        self.moments = moments if self.moments is None else add_moments(self.moments, moments)

    @property
    def weight(self) -> np.ndarray:
        """Rows of each class, shape (k,)."""
        return weights_of(self.moments)

    @property
    def place(self) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays (k, p) whose sum is the means."""
        # Those of a tied covariance are arrays already.
        parts = self.moments if self.covariance_type != "tied" else [self.moments]
        origin, offset = zip(*((m.origin, m.offset) for m in parts), strict=True)
        return np.vstack(origin), np.vstack(offset)

    def factors(self, shrinkage: Shrinkage) -> Any:
        """Return the factor of each class, or the one of all for a tied covariance."""
        tied = self.covariance_type == "tied"
        amounts, levels = class_shrinkages(self.moments, shrinkage, tied=tied)
        if tied:
            return _factor(pool(self.moments), amounts[0], levels[0], "the tied covariance")
        parts = enumerate(zip(self.moments, amounts, levels, strict=True))
        return (_factor(m, amount, level, f"class {c}") for c, (m, amount, level) in parts)


def _factor(moments: Moments, intensity: float, target: float, who: str) -> GaussianFactor:
    """Factor one covariance, into a triangle also where the moments are those of wide data."""
    moments = replace(moments, scatter=dense_scatter(moments.scatter))
    try:
        return factorise(moments, intensity, target, who)
    except ValueError as error:
        # The remedy by the names that it has here.
        text = str(error).replace("covariance_type=", "covariance=")
        raise ValueError(text.replace("'diag'", "'diagonal'")) from None


class SketchMoments:
    """Count and mean of k classes, leading directions of their scatter, and its exact trace.

    Frequent Directions: rows are appended to the sketch (k, l, p), and a decomposition leaves l of
    them. Only the last fifth, the guards, lose the first value that is left out; the `rank`
    directions before them lose nothing. Nothing is lost at all where the rows of a class span at
    most l dimensions. `dtype` is that of the sketch: in float32 that of 1,000 classes, 2,048
    features and rank 32 takes 0.31 GiB. Means are held as the first row of the class plus an
    offset, so that no digit is lost far from zero.

    Ghashami, Liberty, Phillips, Woodruff, "Frequent directions: simple and deterministic matrix
    sketching", SIAM Journal on Computing 45 (2016). Desai, Ghashami, Phillips, "Improved practical
    matrix sketching with guarantees", IEEE TKDE 28 (2016): the guards are its alpha = 0.2.
    """

    def __init__(self, k: int, p: int, rank: int, dtype: type[np.floating]) -> None:
        self.rank = min(rank, p)
        size = min(rank + max(1, round(rank * _GUARDS)), p)
        self.sketch = np.zeros((k, size, p), dtype)
        self.weight, self.energy = np.zeros((2, k))
        self.place = np.zeros((2, k, p))

    def add(self, X: np.ndarray, y: np.ndarray) -> None:
        """Add rows X (n, p) of classes y (n,)."""
        for c in np.unique(y).tolist():
            rows = X[y == c]
            origin = rows[0].copy()
            rows -= origin
            offset = rows.mean(axis=0)
            rows -= offset
            self._merge(c, len(rows), origin, offset, rows, float(np.vdot(rows, rows)))

    def __iadd__(self, other: Self) -> Self:
        for c in np.flatnonzero(other.weight).tolist():
            origin, offset = other.place[:, c]
            weight, energy = float(other.weight[c]), float(other.energy[c])
            self._merge(c, weight, origin, offset, other.sketch[c], energy)
        return self

    def _merge(
        self,
        c: int,
        weight: float,
        origin: np.ndarray,
        offset: np.ndarray,
        rows: np.ndarray,
        energy: float,
    ) -> None:
        """Add to class c rows that are centred at their mean, ``origin + offset``."""
        before, place = self.weight[c], self.place[:, c]
        if not before:
            place[0] = origin
        gap = (origin - place[0]) + (offset - place[1])
        # The move of the mean adds to the scatter what one more row would.
        bridge = gap * np.sqrt(before * weight / (before + weight))
        together = np.vstack([self.sketch[c], rows, bridge])
        self.sketch[c] = leading_rows(together, self.sketch.shape[1], self.rank)
        self.energy[c] += energy + bridge @ bridge
        place[1] += gap * (weight / (before + weight))
        self.weight[c] += weight

    def factors(self, shrinkage: Shrinkage) -> Iterator[PrincipalParts]:
        """Yield ``C_c = U diag(l) U^T + psi (I - U U^T)`` of each class, shrunk as if it were full.

        That is probabilistic principal component analysis at its maximum-likelihood solution; `psi`
        is what the exact trace leaves for each direction that is not held. Tipping, Bishop,
        "Probabilistic principal component analysis", JRSS B 61 (1999), eq. 7-8.
        """
        p, r = self.sketch.shape[2], self.rank
        pooled = float(self.energy.sum() / self.weight.sum()) / p
        rounding = 16 * np.finfo(self.sketch.dtype).eps
        for c, n in enumerate(self.weight.tolist()):
            rows = self.sketch[c, :r].astype(float)
            values, energy = np.einsum("ij,ij->i", rows, rows) / n, float(self.energy[c]) / n
            # Shorter rows are rounding, and point anywhere.
            spanned = values > p * EPS * values[0]
            free = p - np.count_nonzero(spanned)
            rest, level = energy - float(values.sum()), energy / p
            # What rounding of the sketch may leave is nothing.
            rest = rest if free and rest > rounding * energy else 0.0
            intensity, target = 0.0 if shrinkage in (None, "oas") else float(shrinkage), level
            if level == 0 and shrinkage not in (None, 0):
                # As for a full covariance: all rows are the same point, which has no level.
                intensity, target = 1.0, pooled
            elif shrinkage == "oas" and p > 1:
                across = rest * rest / max(free, 1)
                mean_square = (float((values**2).sum()) + across) / energy**2
                intensity = oas_intensity(mean_square, n, p)
            inner = (1 - intensity) * values + intensity * target
            outer = (1 - intensity) * rest / max(free, 1) + intensity * target
            # A direction that explains less than the average of the others was guessed, not found.
            inner = inner.clip(outer)
            outer = outer if free else float(inner.max())
            low, high = min(float(inner.min()), outer), max(float(inner.max()), outer)
            if high <= 0:
                raise ValueError(
                    f"class {c}: all samples are the same point (n_samples = {n:g}), so there is "
                    "no spread; give it more distinct samples"
                )
            if low <= p * EPS * high:
                raise ValueError(
                    f"class {c}: the covariance of {p} features is singular (n_samples = {n:g}) "
                    f"and shrinkage is {intensity:g}; use shrinkage='oas', or covariance='tied' or "
                    "'diagonal'"
                )
            length = np.sqrt(values * n)[:, None]
            basis = np.divide(rows, length, out=np.zeros_like(rows), where=spanned[:, None])
            yield PrincipalParts(basis, inner, outer)


def leading_rows(rows: np.ndarray, size: int, rank: int) -> np.ndarray:
    """Return orthogonal rows (size, p), longest first, with the outer products of `rows` (a, p).

    Of those after the first `rank`, the square of the first that is left out is taken away.
    """
    # A row of zeros, such as the mean of one, is nothing.
    rows = rows[rows.any(axis=1)]
    result = np.zeros((size, rows.shape[1]))
    if len(rows):
        values, vectors = linalg.eigh(rows @ rows.T)
        values, vectors = values[::-1].clip(0), vectors[:, ::-1]
        reduced = values[:size].copy()
        if len(values) > size:
            reduced[rank:] = (reduced[rank:] - values[size]).clip(0)
        values, vectors = values[:size], vectors[:, :size]
        scale = np.sqrt(np.divide(reduced, values, out=np.zeros_like(values), where=values > 0))
        result[: len(values)] = (vectors * scale).T @ rows
    return result


class PrincipalParts(NamedTuple):
    """One class: directions (r, p), variances along them (r,), variance across them."""

    basis: np.ndarray
    inner: np.ndarray
    outer: float
