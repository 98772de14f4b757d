"""Gap between confidence and accuracy in bins, for calibration errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._validation import Bools, Floats, Ints, check_labelled


def top_label(y: npt.ArrayLike, proba: npt.ArrayLike) -> tuple[Floats, Bools]:
    """Return the highest probability (n,) and whether that class is the true one (n,).

    Ties: among equally probable classes the lowest index is the prediction.
    """
    labels, rows = check_labelled(y, proba)
    return rows.max(axis=1), rows.argmax(axis=1) == labels


def binned_gap(confidence: Floats, hit: Bools, bins: Ints) -> float:
    """Add up n_b / n * |accuracy_b - confidence_b| over the bins.

    ``bins`` (n,) is the bin of each input. With n_b in front, the two means of a bin become sums,
    so an empty bin adds zero and needs no special case.
    """
    return float(np.abs(np.bincount(bins, weights=hit - confidence)).sum() / len(confidence))
