"""Toy data, and methods fitted on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...fitting.seeds import seeded_clone

METHODS = ("predict", "predict_proba", "uncertainty")
#: Room for the last digits of a network in float32.
ROUNDING = 1e-4


def data(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """The given data, or 60 rows of three classes: noise about one 4 x 4 image each."""
    if X is not None:
        return np.array(X, dtype=np.float64), np.array(y)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    images = rng.uniform(0.1, 0.9, size=(3, 16))
    return np.clip(images[y] + rng.normal(scale=0.05, size=(60, 16)), 0, 1), y


def fitted(estimator: Any, X: Any, y: np.ndarray) -> Any:
    return seeded_clone(estimator, 0).fit(X, y)
