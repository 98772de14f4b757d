"""Smoothing and thinning of a noisy curve, for plots."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d

#: Steps across the figure; of each, the raw curve keeps the smallest and largest value.
_STEPS = 420


def smoothed(values: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian mean of the finite values, (p,); NaN without one within four sigma."""
    if sigma == 0:
        return values
    there = np.isfinite(values)
    total = gaussian_filter1d(np.where(there, values, 0.0), sigma, mode="constant")
    weight = gaussian_filter1d(there.astype(np.float64), sigma, mode="constant")
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(weight > 1e-4, total / weight, np.nan))


def outline(x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curve; with many points, only the lowest and highest of each step."""
    p = len(x)
    if p <= 2 * _STEPS:
        return x, values
    starts = np.arange(_STEPS) * p // _STEPS
    filled = np.isfinite(values)
    low = np.minimum.reduceat(np.where(filled, values, np.inf), starts)
    high = np.maximum.reduceat(np.where(filled, values, -np.inf), starts)
    ends = np.stack([low, high], axis=1).ravel()
    return np.repeat(x[starts], 2), np.where(np.isfinite(ends), ends, np.nan)
