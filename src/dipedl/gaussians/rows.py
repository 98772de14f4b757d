"""Rows of a matrix with weights, centred a part at a time: no copy of the matrix is made."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_CHUNK_BYTES = 1 << 20
#: Rows whose mean is a point near that of all: a quarter of these are lost if it is far off.
_FIRST = 256


class WeightedRows:
    """The rows of X (n, p) at `places` (None: all), with weights (m,) of their own (None: ones).

    X of any type; what is computed is float64.
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

    def reference(self) -> np.ndarray:
        """A point (p,) near the mean; rows that are all the same are that point."""
        stop = min(_FIRST, self._count)
        D = self._taken(0, stop).astype(np.float64)
        origin = D[0].copy()
        D -= origin
        w = self._weights_of(0, stop)
        return np.asarray(origin + w @ D / (w.sum() or 1.0))

    def less(
        self, point: np.ndarray, offset: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows less `point`, and less `offset`, with their weights: as many as fit the cache.

        Each part takes the place of the one before.
        """
        step = min(self._step, self._count)
        D, ones = np.empty((step, self.n_features)), np.ones(step)
        for start in range(0, self._count, step):
            stop = min(start + step, self._count)
            part = np.subtract(self._taken(start, stop), point, out=D[: stop - start])
            if offset is not None:
                part -= offset
            yield part, ones[: stop - start] if self.equal else self._weights_of(start, stop)

    def _taken(self, start: int, stop: int) -> np.ndarray:
        if self._places is None:
            return self._X[start:stop]
        # Faster than self._X[places], which asks whether each lies inside.
        return np.take(self._X, self._places[start:stop], axis=0, mode="clip")

    def _weights_of(self, start: int, stop: int) -> np.ndarray:
        return np.ones(stop - start) if self._weights is None else self._weights[start:stop]
