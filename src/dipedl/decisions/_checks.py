"""What the decisions accept."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs import check_weights
from ..maths.array_namespace import unmasked
from ..maths.checks import check_simplex


def score_array(name: str, values: Any) -> np.ndarray:
    """One number a row, shape (n,), float64; infinities allowed."""
    array = np.asarray(unmasked(name, values), dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{name} must hold one number a row, shape (n,), got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{name} must not hold NaN, got it at row {int(np.isnan(array).argmax())}")
    return array


def held_out_array(name: str, values: Any) -> np.ndarray:
    """As `score_array`, with one row at least."""
    array = score_array(name, values)
    if not len(array):
        raise ValueError(f"{name} is empty: a threshold needs in-distribution rows held out of fit")
    return array


def weights_or_ones(weights: Any, rows: np.ndarray) -> np.ndarray:
    """How many inputs each row stands for, shape (n,)."""
    checked = check_weights(weights, rows)
    return np.ones(len(rows)) if checked is None else checked


def class_probabilities(name: str, proba: Any) -> np.ndarray:
    """Class probabilities (n, k), float64."""
    P = np.asarray(unmasked(name, proba), dtype=np.float64)
    if P.ndim != 2 or P.shape[1] < 2:
        raise ValueError(f"{name} must have shape (n, k) with k >= 2, got {P.shape}")
    check_simplex(name, P)
    return P
