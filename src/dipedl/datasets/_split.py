"""Training and test part: as published, or by a stratified split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._dataset import no_rows

Part = tuple[NDArray[Any], NDArray[np.int64]]


_PARTS = {"test": ("test",), "train": ("train",), "all": ("train", "test")}


def published_parts(split: str, read: Callable[[str], Part], n_features: int) -> tuple[Part, Part]:
    """Training and test part that `split` asks for, by ``read(part)``; else without rows."""
    if split not in _PARTS:
        raise ValueError(
            f"split must be one of {sorted(_PARTS)}, got {split!r}; 'all' loads both parts"
        )
    parts = {part: read(part) for part in _PARTS[split]}
    nothing = no_rows(n_features)
    return parts.get("train", nothing), parts.get("test", nothing)


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
