"""Entries that are missing: gaps, and what a mask hides."""

from __future__ import annotations

from typing import Any

import numpy as np

_OR_IMPUTE = ", or make the entries NaN, X.filled(np.nan), for an imputer"


def unmasked(name: str, values: Any) -> Any:
    """`values` as they are, or as a plain array if nothing in them is masked.

    Raises
    ------
    ValueError
        If an entry is masked, also in a list of masked arrays.
    """
    parts = values if isinstance(values, list | tuple) else [values]
    masked = [part for part in parts if isinstance(part, np.ma.MaskedArray)]
    hidden = sum(int(np.ma.getmaskarray(part).sum()) for part in masked)
    if hidden:
        raise ValueError(
            f"{name} must not be masked, got {hidden} masked entries: what a mask hides is missing."
            f" Leave these rows out{_OR_IMPUTE if name == 'X' else ''}"
        )
    return np.asarray(values) if masked else values


def is_missing(value: Any) -> bool:
    """Whether an entry is None, NaN, NaT or pandas.NA, whose comparison has no truth value."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value)


def missing_as_nan(X: Any) -> Any:
    """X with NaN for pandas.NA, and dense columns, as most libraries need; else as it is.

    Columns of a DataFrame with gaps become float64 if they are numbers or booleans of pandas'
    nullable or Arrow types, and objects if they are text. Decimals of Arrow become float64,
    and sparse columns dense: scikit-learn would take a frame of nothing else for a sparse matrix.
    """
    if isinstance(X, np.ndarray):
        return _objects_with_nan(X) if X.dtype.kind == "O" else X
    if not hasattr(X, "iloc") or len(X.shape) != 2:
        return X
    changed = {j: _with_nan(X.iloc[:, j]) for j, dtype in enumerate(X.dtypes) if _may_hold(dtype)}
    if all(values is None for values in changed.values()):
        return X
    X = X.copy()
    for j, values in changed.items():
        if values is not None:
            X.isetitem(j, values)
    return X


def _may_hold(dtype: Any) -> bool:
    """Whether a column of this dtype may hold pandas.NA."""
    return dtype.kind == "O" or not isinstance(dtype, np.dtype)


def _with_nan(values: Any) -> np.ndarray | None:
    """A column of pandas as a dense array with NaN for its gaps; None where it needs no change."""
    if isinstance(values.dtype, np.dtype):
        plain = values.to_numpy()
        changed = _objects_with_nan(plain)
        return None if changed is plain else changed
    name = str(values.dtype)
    if name.startswith("Sparse["):
        return np.asarray(values.sparse.to_dense())
    text, decimal = "string" in name, name.startswith("decimal")
    gaps = (values.dtype.kind in "biuf" or text) and values.hasnans
    if not gaps and not decimal:
        return None
    return np.asarray(values.to_numpy(dtype=object if text else np.float64, na_value=np.nan))


def _objects_with_nan(values: np.ndarray) -> np.ndarray:
    """An array of objects with NaN for pandas.NA; the same array if it has none."""
    gaps = [type(value).__name__ == "NAType" for value in values.ravel().tolist()]
    if not any(gaps):
        return values
    return np.where(np.reshape(gaps, values.shape), np.nan, values)
