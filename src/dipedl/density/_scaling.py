"""Standardisation of the features, with an overflow refused."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler


def fit_scaler(X: np.ndarray, weights: np.ndarray | None = None) -> StandardScaler:
    """Scaler fitted on X (n, p); its scale is 1 for a constant feature."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(X, sample_weight=weights)
    # An infinite variance would be taken for a constant feature.
    overflowing = np.flatnonzero(~np.isfinite(scaler.var_))
    if len(overflowing):
        raise ValueError(
            f"the variance of features {overflowing[:5].tolist()} overflows; rescale the features"
        )
    return scaler
