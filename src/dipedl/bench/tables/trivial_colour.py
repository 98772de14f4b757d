"""Detectors for photographs that need no model: how unusual an image is in one number.

A photograph has neither a black frame nor ink. What can tell an OOD set from known images is how
bright, coloured, smooth or rich in contrast its images are. Each detector is the distance of such a
number from its mean over the training images: no direction is chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["COLOUR_DETECTORS"]

#: Training images that the means are taken over; the first ones, in the order of the seed.
_ROWS = 5000

Measure = Callable[[np.ndarray], np.ndarray]


def _brightness(images: np.ndarray) -> np.ndarray:
    return np.asarray(images.mean(axis=(1, 2, 3), dtype=np.float64))


def _contrast(images: np.ndarray) -> np.ndarray:
    return np.asarray(images.std(axis=(1, 2, 3), dtype=np.float64))


def _roughness(images: np.ndarray) -> np.ndarray:
    """Mean difference between neighbours."""
    down = np.abs(np.diff(images, axis=2)).mean(axis=(1, 2, 3), dtype=np.float64)
    right = np.abs(np.diff(images, axis=3)).mean(axis=(1, 2, 3), dtype=np.float64)
    return np.asarray((down + right) / 2)


def _colour(images: np.ndarray) -> np.ndarray:
    """Mean of each channel less that of all, shape (n, channels)."""
    channels = images.mean(axis=(2, 3), dtype=np.float64)
    return np.asarray(channels - channels.mean(axis=1, keepdims=True))


def _unusual(measure: Measure) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    def detect(images: np.ndarray, reference: np.ndarray) -> np.ndarray:
        away = measure(images) - measure(reference[:_ROWS]).mean(axis=0)
        return np.asarray(np.abs(away) if away.ndim == 1 else np.linalg.norm(away, axis=1))

    return detect


#: Title of a detector -> ``(images, training images)``, both (n, channels, height, width), to
#: uncertainty (n,).
COLOUR_DETECTORS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "unusual brightness": _unusual(_brightness),
    "unusual contrast": _unusual(_contrast),
    "unusual roughness": _unusual(_roughness),
    "unusual colour": _unusual(_colour),
}
