"""Standardisation that a few rows cannot spoil, and a word on the rows that would have."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

#: In spreads of a column: what lies farther from its median has no part in the scale,
FENCE = 30.0
#: and what lies as far as this is said aloud.
GROSS = 100.0
#: Larger shares of a column that lie outside are its own tail.
_TAIL = 0.1
#: Less than a half by more than rounding.
_MOST = 0.49
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
    outside = _beyond(FENCE, values, w)
    if outside.any():
        inner = StandardScaler().fit(np.where(outside, np.nan, values), sample_weight=w)
        scaler.mean_, scaler.var_, scaler.scale_ = inner.mean_, inner.var_, inner.scale_
    return scaler


def spread(distance: np.ndarray, w: np.ndarray | None = None) -> float:
    """Median of the distances (n,) from the median of a column that are not zero; 1 if all are."""
    away = distance > 0
    return _median(distance[away], None if w is None else w[away]) if away.any() else 1.0


def gross_outliers(X: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    """Where X (n, d) lies more than `GROSS` spreads from the median of its column, (n, d).

    Nowhere in a column of which more than a tenth does.
    """
    return _beyond(GROSS, X, w)


def warn_of_gross_outliers(X: np.ndarray, w: np.ndarray | None, names: Any = None) -> None:
    """Warn of rows and columns of X (n, d) with values beyond `GROSS` spreads."""
    gross = gross_outliers(X, w)
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


def _beyond(fence: float, X: np.ndarray, w: np.ndarray | None) -> np.ndarray:
    """Where X (n, d) lies more than `fence` spreads from the median of its column, (n, d).

    Nowhere in a column of which more than a tenth does.
    """
    beyond = np.zeros(X.shape, dtype=bool)
    for j, column in enumerate(X.T):
        with np.errstate(over="ignore"):
            distance = np.abs(column - _median(column, w))
        # The spread is larger if most values are farther away than this; counting is fast.
        if np.average(distance <= distance.max() / fence, weights=w) < _MOST:
            continue
        far = distance > fence * spread(distance, w)
        beyond[:, j] = far & (np.average(far, weights=w) <= _TAIL)
    return beyond


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
