"""Third and fourth powers of centred rows, which Ledoit-Wolf shrinkage needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..maths.array_namespace import Array


@dataclass(frozen=True, eq=False)
class HigherMoments:
    """Sums over centred rows d of weight w: of one class (p,), or of several (q, p).

    `cubic` sums ``w |d|^2 d`` and `quartic` (..., 1) ``w |d|^4``; if the scatter is diagonal ``w
    d**3`` and, (..., p), ``w d**4``.
    """

    cubic: Array
    quartic: Array

    @classmethod
    def of(cls, D: np.ndarray, w: np.ndarray, diagonal: bool) -> Self:
        """Higher moments of centred rows D (n, p) with weights w (n,)."""
        square = dot(D, D, diagonal)
        return cls(w @ (square * D), w @ (square * square))

    def about(self, e: Array, weight: Any, times: Array, spread: Array) -> HigherMoments:
        """Those about the point ``mean - e``, of a weight and a scatter S.

        `times` (..., p) is S e, and `spread` (..., 1) the trace of S; S itself if it is diagonal.
        """
        diagonal = self.quartic.shape == self.cubic.shape
        square, along = dot(e, e, diagonal), dot(e, self.cubic + times, diagonal)
        tail = 4 * along + 2 * square * spread + weight * square * square
        cubic = self.cubic + spread * e + 2 * times + weight * square * e
        return HigherMoments(cubic, self.quartic + tail)

    def __add__(self, other: HigherMoments) -> HigherMoments:
        """Higher moments of both sets of rows, about the same point."""
        return HigherMoments(self.cubic + other.cubic, self.quartic + other.quartic)

    def __getitem__(self, classes: Any) -> HigherMoments:
        return HigherMoments(self.cubic[classes], self.quartic[classes])

    def __setitem__(self, classes: Any, found: HigherMoments) -> None:
        self.cubic[classes], self.quartic[classes] = found.cubic, found.quartic


def dot(a: Array, b: Array, diagonal: bool) -> Array:
    """Products of the rows of a and b, (..., 1); by coordinate if the scatter is diagonal."""
    return a * b if diagonal else (a * b).sum(-1)[..., None]
