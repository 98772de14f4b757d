"""Where a calibrator may make a classifier surer: on typical inputs, never on flagged ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..maths.scores import entropy
from .held_out import HeldOut
from .temperature import Temperature

#: Share of held-out rows at whose score a sharpening applies in full.
_FULL = 0.95
_APART = 1e-6


def sharpening_range(held: HeldOut, offset: float) -> tuple[float, float]:
    """Scores at which a sharpening begins and is in full, the first below the second.

    The first is the lowest finite held-out score that is not flagged: `held` is sorted, and
    `offset` is the alarm threshold.
    """
    scores, weights = held.scores[held.finite], held.counts[held.finite]
    if not len(scores):
        return 0.0, 1.0
    low = float(scores[min(np.searchsorted(scores, offset), len(scores) - 1)])
    above = np.searchsorted(np.cumsum(weights), _FULL * weights.sum() * (1 - 1e-12))
    high = float(scores[min(above, len(scores) - 1)])
    # Further apart than the rounding of float32.
    return low, max(high, low + _APART * max(1.0, abs(low)))


def calibrated_in_share(calibrator: Any, proba: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Calibrated class probabilities (n, k); those that get surer, in a share (n,) only.

    Surer are a larger largest probability or a smaller entropy. A temperature applies in that share
    of its inverse; what any other calibrator gives is mixed with `proba`.
    """
    if type(calibrator) is Temperature:
        return calibrator.transform(proba, share)
    calibrated = np.asarray(calibrator.transform(proba))
    surer = calibrated.max(axis=1) > proba.max(axis=1)
    surer |= entropy(calibrated) < entropy(proba)
    w = np.where(surer, share, 1.0)[:, None]
    return np.asarray((1 - w) * proba + w * calibrated)
