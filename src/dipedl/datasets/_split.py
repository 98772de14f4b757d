"""Stratified split of rows published without a test set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Part = tuple[NDArray[Any], NDArray[np.int64]]


def stratified(
    X: NDArray[Any], y: NDArray[np.int64], test_size: float, random_state: int
) -> tuple[Part, Part]:
    """Training part (X, y) and test part (X, y); stratified over distinct rows.

    Equal rows are in the same part, so no test row is in the training part.
    """
    from sklearn.model_selection import train_test_split

    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be a share in (0, 1), got {test_size!r}; 0.3 is usual")
    _, first, copy_of = np.unique(X, axis=0, return_index=True, return_inverse=True)
    sides = train_test_split(
        np.sort(first), test_size=test_size, stratify=y[np.sort(first)], random_state=random_state
    )
    original = first[copy_of.reshape(-1)]
    copies = np.flatnonzero(original != np.arange(len(X)))
    rows = [np.concatenate([side, copies[np.isin(original[copies], side)]]) for side in sides]
    (X_train, y_train), (X_test, y_test) = ((X[row], y[row].astype(np.int64)) for row in rows)
    return (X_train, y_train), (X_test, y_test)
