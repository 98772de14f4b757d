"""Pseudo-outliers made of in-distribution rows: no other data set is needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .crossfit import row_hash

__all__: list[str] = []


def draw_pseudo_outliers(
    X: Any, y: np.ndarray, sample_weight: np.ndarray | None, random_state: int, n: int = 500
) -> dict[str, np.ndarray]:
    """Rows that are like those of X in some respects and unlike all of them in others.

    - "blended": the mean of two rows of different classes;
    - "pasted": the first columns of one row and the last of another, of different classes;
    - "permuted": each column from a row of its own: every margin kept, all dependence lost;
    - "noised": a row plus normal noise of one standard deviation of each column.

    All stay within the range that each column has in X. Which rows are drawn depends on their
    content, not on their order; a weight counts a row that often. With one class only, "of
    different classes" means any two rows.

    Returns
    -------
    dict of str to ndarray, shape (n, d)
        By kind, with the dtype of X; rounded to whole numbers where X has an integer dtype. Empty
        where X is no finite numeric array of two dimensions.

    References
    ----------
    Hendrycks, Mazeika, Dietterich, "Deep anomaly detection with outlier exposure", ICLR (2019), on
    outliers to calibrate with; Zhang et al., "mixup", ICLR (2018), and Yun et al., "CutMix", ICCV
    (2019), on blends and pastes.
    """
    dense = isinstance(X, np.ndarray) and X.ndim == 2 and min(X.shape) > 0
    if not (dense and np.issubdtype(X.dtype, np.number) and np.isfinite(X).all()):
        return {}
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    present = np.flatnonzero(weights > 0)
    order = present[np.argsort(row_hash(X[present]), kind="stable")]
    rows, w, rng = X[order], weights[order], np.random.default_rng(random_state)
    classes = np.unique(y, return_inverse=True)[1][order]
    first, u = _draw(w, rng.random(n)), rng.random(n)
    second = np.empty(n, int)
    for c in np.unique(classes[first]):
        of_class = classes[first] == c
        others = classes != c
        second[of_class] = _draw(w * others if others.any() else w, u[of_class])
    d, low, high = X.shape[1], rows.min(axis=0), rows.max(axis=0)
    mean = np.average(rows, axis=0, weights=w)
    spread = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=w))
    made = {
        "blended": rows[first] / 2 + rows[second] / 2,
        "pasted": np.where(np.arange(d) < d // 2, rows[first], rows[second]),
        "permuted": np.take_along_axis(rows, _draw(w, rng.random((n, d))), axis=0),
        "noised": rows[first] + rng.normal(size=(n, d)) * spread,
    }
    whole = np.issubdtype(X.dtype, np.integer)
    return {
        kind: np.clip(np.rint(rows) if whole else rows, low, high).astype(X.dtype)
        for kind, rows in made.items()
    }


def _draw(weights: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return numbers of rows at the shares `u` in [0, 1) of their weights (m,)."""
    total = np.cumsum(weights)
    last = np.flatnonzero(weights)[-1]
    return np.asarray(np.minimum(np.searchsorted(total, u * total[-1], side="right"), last))
