"""Sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights (n,) as float64, finite and >= 0 with a positive sum, or None if none were given."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError(f"sample_weight must be >= 0, got {float(weights.min())!r}")
    if not weights.sum() > 0:
        raise ValueError("sample_weight must have a positive sum, got all zeros")
    return np.asarray(weights)
