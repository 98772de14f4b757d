"""Checks and slices of rows of spectra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

# Few rows, so that they fit the cache in float64; a whole array is never converted.
_VALUES_AT_ONCE = 2**18


class FluxTransformer(TransformerMixin, BaseEstimator):
    """A transformer of flux that keeps its type."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def row_slices(X: np.ndarray) -> Iterator[slice]:
    """Slices that cover the rows of X (n, p) in order, each of about 2 MiB in float64."""
    yield from gen_batches(len(X), max(1, _VALUES_AT_ONCE // X.shape[1]))


def flux_rows(estimator: Any, X: Any, *, reset: bool, min_pixels: int = 1) -> np.ndarray:
    """X as finite rows (n, p) of float32 or float64, with as many columns as in fit."""
    if not reset:
        check_is_fitted(estimator)
    rows = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_features=min_pixels,
    )
    for part in row_slices(rows):
        bad = ~np.isfinite(rows[part])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"X must be finite, got {rows[part][row, column]} (NaN or inf) in row "
                f"{part.start + row}, column {column}; fill masked pixels from their neighbours, "
                "or drop the row"
            )
    return np.asarray(rows)
