"""Synthetic departures from in-distribution rows: outliers that need no other data set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["DEPARTURES", "synthetic_departures"]

Rows = np.ndarray


def synthetic_departures(
    X: Any, y: np.ndarray, *, n: int = 500, random_state: int = 0
) -> dict[str, np.ndarray]:
    """Rows that are like those of X in some respects and unlike all of them in others.

    - "blended": the mean of two rows of different classes;
    - "pasted": the first columns of one row and the last of another, of different classes;
    - "permuted": each column from a row of its own: every margin kept, all dependence lost;
    - "noised": a row plus normal noise of one standard deviation of each column.

    All stay within the range that each column has in X.

    Parameters
    ----------
    X : array-like, shape (m, d)
        ID rows. What is not a numeric array of two dimensions gives no departures.
    y : ndarray, shape (m,)
        Labels. With one class only, "different classes" means different rows.
    n : int, default=500
        Rows of each kind.
    random_state : int, default=0
        Seed.

    Returns
    -------
    dict of str to ndarray, shape (n, d)
        By kind, with the dtype of X.

    References
    ----------
    Hendrycks, Mazeika, Dietterich, "Deep anomaly detection with outlier exposure", ICLR (2019), on
    outliers to calibrate with; Thulasidasan et al., "On mixup training", NeurIPS (2019), and Yun et
    al., "CutMix", ICCV (2019), on blends and pastes.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(12.0).reshape(4, 3), np.array([0, 0, 1, 1])
    >>> {kind: rows.shape for kind, rows in synthetic_departures(X, y, n=2).items()}
    {'blended': (2, 3), 'pasted': (2, 3), 'permuted': (2, 3), 'noised': (2, 3)}
    """
    if not _numeric(X):
        return {}
    X = np.asarray(X)
    rng = np.random.default_rng(random_state)
    first = rng.integers(len(X), size=n)
    second = _of_another_class(first, np.asarray(y), rng)
    low, high = X.min(axis=0), X.max(axis=0)
    made = {kind: make(X, first, second, rng) for kind, make in DEPARTURES.items()}
    return {kind: np.clip(rows, low, high).astype(X.dtype) for kind, rows in made.items()}


def _numeric(X: Any) -> bool:
    dtype, shape = getattr(X, "dtype", None), getattr(X, "shape", ())
    dense = isinstance(X, np.ndarray) and len(shape) == 2 and min(shape) > 0
    return bool(dense and np.issubdtype(dtype, np.number) and np.isfinite(X).all())


def _of_another_class(rows: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A random row for each of `rows`, of another class unless there is only one."""
    classes, codes = np.unique(y, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    if len(classes) == 1:
        return (rows + 1 + rng.integers(max(len(y) - 1, 1), size=len(rows))) % len(y)
    own = codes[rows]
    start = np.cumsum(counts)[own]  # past the own class, in the order of the classes, around
    step = (rng.random(len(rows)) * (len(y) - counts[own])).astype(int)
    return np.asarray(order[(start + step) % len(y)])


def _blended(X: Rows, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    return np.asarray((X[first] + X[second]) / 2)


def _pasted(X: Rows, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    return np.where(np.arange(X.shape[1]) < X.shape[1] // 2, X[first], X[second])


def _permuted(X: Rows, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    rows = rng.integers(len(X), size=(len(first), X.shape[1]))
    return np.take_along_axis(X, rows, axis=0)


def _noised(X: Rows, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    return np.asarray(X[first] + rng.normal(size=(len(first), X.shape[1])) * X.std(axis=0))


#: Kind -> how rows are made of X, two lists of row numbers, and a generator.
DEPARTURES: dict[str, Callable[[Rows, Rows, Rows, np.random.Generator], Rows]] = {
    "blended": _blended,
    "pasted": _pasted,
    "permuted": _permuted,
    "noised": _noised,
}
