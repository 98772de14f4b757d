"""Toy data, and densities fitted on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ...density._fitting import as_density


def toy(seed: int, n: int = 80, p: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping classes with unlike units: X (n, p) and labels y (n,)."""
    y = np.arange(n) % 2
    noise = np.random.default_rng(seed).normal(size=(n, p))
    return noise * np.linspace(0.5, 2.0, p) + np.where(y, 1.5, -1.5)[:, None], y


def new(density: Any, random_state: int = 0) -> Any:
    return as_density(density, random_state)


def fitted(density: Any, X: Any, y: np.ndarray, random_state: int) -> Any:
    return fit(new(density, random_state), X, y)


def fit(model: Any, X: Any, y: np.ndarray) -> Any:
    return model.fit(X, y) if has_fit_parameter(model, "y") else model.fit(X)
