"""Pseudo-outliers made of in-distribution rows: no other data set is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..maths.array_namespace import drop_mask
from .crossfit import row_hash

__all__ = ["make_pseudo_outliers"]


def make_pseudo_outliers(
    X: Any,
    y: np.ndarray,
    *,
    n: int = 500,
    sample_weight: np.ndarray | None = None,
    random_state: int = 0,
) -> dict[str, np.ndarray]:
    """Rows that are like those of X in some respects and unlike all of them in others.

    - "blended": the mean of two rows of different classes;
    - "pasted": the first columns of one row and the last of another, of different classes;
    - "permuted": each column from a row of its own: every margin kept, all dependence lost;
    - "noised": a row plus normal noise of one standard deviation of each column.

    All stay within the range that each column has in X. Which rows are drawn depends on their
    content, not on their order; a weight counts a row that often.

    Parameters
    ----------
    X : array-like, shape (m, d)
        ID rows. What is not a finite numeric array of two dimensions gives no pseudo-outliers.
    y : ndarray, shape (m,)
        Labels. With one class only, "of different classes" means any two rows.
    n : int, default=500
        Rows of each kind.
    sample_weight : ndarray, shape (m,), optional
        Weights >= 0.
    random_state : int, default=0
        Seed.

    Returns
    -------
    dict of str to ndarray, shape (n, d)
        By kind, with the dtype of X; rounded to whole numbers where X has an integer dtype.

    References
    ----------
    Hendrycks, Mazeika, Dietterich, "Deep anomaly detection with outlier exposure", ICLR (2019), on
    outliers to calibrate with; Zhang et al., "mixup", ICLR (2018), and Yun et al., "CutMix", ICCV
    (2019), on blends and pastes.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(12.0).reshape(4, 3), np.array([0, 0, 1, 1])
    >>> {kind: rows.shape for kind, rows in make_pseudo_outliers(X, y, n=2).items()}
    {'blended': (2, 3), 'pasted': (2, 3), 'permuted': (2, 3), 'noised': (2, 3)}
    """
    X = drop_mask("X", X)
    if not _numeric(X):
        return {}
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    kept = np.flatnonzero(weights > 0)
    order = kept[np.argsort(row_hash(X[kept]), kind="stable")]
    rows = _Source(X[order], np.asarray(y)[order], weights[order])
    rng = np.random.default_rng(random_state)
    pairs = rows.pairs(n, rng)
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    made = {kind: make(rows, *pairs, rng) for kind, make in KINDS.items()}
    whole = np.issubdtype(X.dtype, np.integer)
    return {
        kind: np.clip(np.rint(found) if whole else found, low, high).astype(X.dtype)
        for kind, found in made.items()
    }


@dataclass(frozen=True, eq=False)
class _Source:
    """ID rows in the order of their hashes, with weights."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray

    def draw(self, u: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        """Numbers of rows at the shares `u` in [0, 1) of the weight, `among` some of them."""
        rows = np.arange(len(self.X)) if among is None else among
        total = np.cumsum(self.weights[rows])
        found = np.searchsorted(total, u * total[-1], side="right")
        return np.asarray(rows[np.minimum(found, len(rows) - 1)])

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """n rows, and for each a row of another class, if there is one."""
        first, u = self.draw(rng.random(n)), rng.random(n)
        second = np.empty(n, int)
        for c in np.unique(self.y[first]):
            of_class = np.flatnonzero(self.y[first] == c)
            others = np.flatnonzero(self.y != c)
            second[of_class] = self.draw(u[of_class], others if len(others) else None)
        return first, second


def _numeric(X: Any) -> bool:
    dtype, shape = getattr(X, "dtype", None), getattr(X, "shape", ())
    dense = isinstance(X, np.ndarray) and len(shape) == 2 and min(shape) > 0
    return bool(dense and np.issubdtype(dtype, np.number) and np.isfinite(X).all())


Numbers = np.ndarray


def _blended(s: _Source, first: Numbers, second: Numbers, rng: np.random.Generator) -> np.ndarray:
    return np.asarray(s.X[first] / 2 + s.X[second] / 2)


def _pasted(s: _Source, first: Numbers, second: Numbers, rng: np.random.Generator) -> np.ndarray:
    left = np.arange(s.X.shape[1]) < s.X.shape[1] // 2
    return np.asarray(np.where(left, s.X[first], s.X[second]))


def _permuted(s: _Source, first: Numbers, second: Numbers, rng: np.random.Generator) -> np.ndarray:
    rows = s.draw(rng.random((len(first), s.X.shape[1])))
    return np.asarray(np.take_along_axis(s.X, rows, axis=0))


def _noised(s: _Source, first: Numbers, second: Numbers, rng: np.random.Generator) -> np.ndarray:
    mean = np.average(s.X, axis=0, weights=s.weights)
    spread = np.sqrt(np.average((s.X - mean) ** 2, axis=0, weights=s.weights))
    return np.asarray(s.X[first] + rng.normal(size=(len(first), s.X.shape[1])) * spread)


#: Kind -> how rows are made of a source, two lists of row numbers, and a generator.
KINDS: dict[str, Callable[[_Source, Numbers, Numbers, np.random.Generator], np.ndarray]] = {
    "blended": _blended,
    "pasted": _pasted,
    "permuted": _permuted,
    "noised": _noised,
}
