"""Standardisation that a few rows cannot spoil, and a word on the rows that would have."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

#: What is far from the data, in spreads of a column: a value beyond `FENCE` has no part in the
#: scale; one beyond `GROSS` is said aloud, and its row is left out of the fits of the default
#: density, unless more than a share `FEW` of the rows is. Neither holds in a column of which more
#: than `_TAIL` lies outside: that is its own tail, or, if nearly all of these values (`_CODE`) are
#: the same, a code. `RANGES` is for inputs: ranges of a feature beyond which one is out of reach.
FENCE, GROSS, RANGES = 30.0, 100.0, 3.0
FEW, _TAIL, _CODE = 0.05, 0.1, 0.9
_NAMED = 5


def fitted_scaler(X: Any, w: np.ndarray | None = None) -> StandardScaler:
    """Mean and standard deviation of each column of X (n, d), of all but values far outside.

    A value farther than `FENCE` spreads from the median of its column is left out, where the spread
    is the median distance from there of the values elsewhere: of a normal that is at 20 standard
    deviations, of a column of zeros and a few amounts at 30 typical amounts. Where no value lies
    beyond, or more than a tenth of them, this is scikit-learn's scaler to the last bit.

    Raises
    ------
    ValueError
        If the variance of a column overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(X, sample_weight=w)
    if not np.isfinite(scaler.var_).all() or not np.isfinite(scaler.mean_).all():
        raise ValueError("X is so large that its variance overflows; rescale the inputs")
    values = np.asarray(X, dtype=np.float64)
    center, spread = center_and_spread(values, w)
    outside = np.abs(values - center) > FENCE * spread
    outside &= outside.mean(axis=0) <= _TAIL
    if outside.any():
        inner = StandardScaler().fit(np.where(outside, np.nan, values), sample_weight=w)
        scaler.mean_, scaler.var_, scaler.scale_ = inner.mean_, inner.var_, inner.scale_
    return scaler


def center_and_spread(X: np.ndarray, w: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Median of each column of X (n, d), and the median distance of the values that differ from it.

    Shapes (d,); the spread of a constant column is 1.
    """
    center = np.array([_median(column, w) for column in X.T])
    spread = np.ones(X.shape[1])
    for j, column in enumerate(X.T):
        with np.errstate(over="ignore"):
            distance = np.abs(column - center[j])
        away = distance > 0
        if away.any():
            spread[j] = _median(distance[away], None if w is None else w[away])
    return center, spread


def gross_outliers(X: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Where X (n, d) lies more than `GROSS` spreads from the median of its column, (n, d).

    Nowhere in a column of which more than a tenth does.
    """
    far = _far(X, w)
    return np.asarray(far & (np.average(far, axis=0, weights=w) <= _TAIL))


def _far(X: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    center, spread = center_and_spread(X, w)
    with np.errstate(over="ignore"):
        return np.asarray(np.abs(X - center) / spread > GROSS)


def _codes(X: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Where X (n, d) holds what looks like a code: one value, far from all others of its column."""
    far = _far(X, w)
    for j in np.flatnonzero(far.any(axis=0)):
        counts = np.unique(X[far[:, j], j], return_counts=True)[1]
        far[:, j] &= counts.max() > max(_CODE * counts.sum(), 1)
    return far


def warn_of_gross_outliers(X: np.ndarray, w: np.ndarray | None, names: Any = None) -> None:
    """Warn of rows and columns of X (n, d) with values beyond `GROSS` spreads."""
    gross = gross_outliers(X, w) | _codes(X, w)
    if not gross.any():
        return
    rows, columns = np.flatnonzero(gross.any(axis=1)), np.flatnonzero(gross.any(axis=0))
    row, column = np.argwhere(gross)[0]
    label = columns if names is None else np.asarray(names)[columns]
    typical = X[~gross[:, column], column]
    named = label[columns == column].tolist()[0]
    warnings.warn(
        f"{len(rows)} of {len(X)} rows of X hold values far from the rest: rows "
        f"{_some(rows.tolist())}, columns {_some(label.tolist())}; such as {X[row, column]:g} in "
        f"row {row}, column {named!r}, where others range from {typical.min():g} to "
        f"{typical.max():g}. A few such rows are left out of the default density, many make what "
        "is as far look known: correct or drop them, impute codes of missing values, take "
        "logarithms of a skewed column",
        UserWarning,
        stacklevel=4,
    )


def _median(values: np.ndarray, w: np.ndarray | None) -> float:
    """Lower median of values (n,), each counted `w` times."""
    if w is None:
        middle = (len(values) - 1) // 2
        return float(np.partition(values, middle)[middle])
    order = np.argsort(values, kind="stable")
    total = np.cumsum(w[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2 * (1 - 1e-12))])


def _some(items: list[Any]) -> str:
    """The first few of a list."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{items[:_NAMED]}{more}"
