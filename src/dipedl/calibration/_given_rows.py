"""Held-out rows that are given to a model, checked against its inputs and classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from ..inputs import of_text, validate_inputs, validate_labels
from ..maths.checks import check_magnitude


def calibration_rows(
    model: Any, calibration: Any, classes: np.ndarray
) -> tuple[Any, np.ndarray | None]:
    """Held-out inputs (m, d) and their labels, checked against the fitted inputs and classes."""
    if not (isinstance(calibration, tuple | list) and len(calibration) == 2):
        raise TypeError(
            f"calibration must be a pair (X, y) of held-out rows, got {type(calibration).__name__}"
        )
    try:
        X, y = validate_inputs(model, calibration[0]), calibration[1]
        check_magnitude("X", X)
        y = None if y is None else validate_labels(y)
        check_consistent_length(X, y)
    except ValueError as error:
        raise ValueError(f"calibration rows: {error}") from None
    if X.shape[0] < 2:
        raise ValueError(
            "calibration rows: 1 row cannot show how scores vary; give 100 or more, or leave "
            "calibration out and the rows in fit, which then holds rows out by itself"
        )
    if y is None:
        return X, None
    if of_text(y) != of_text(np.asarray(classes)):
        raise ValueError(
            f"y of the calibration rows has dtype {y.dtype}, that of fit {classes.dtype}: "
            "give both the same labels"
        )
    unseen = np.setdiff1d(y, classes)
    if len(unseen):
        raise ValueError(
            f"y of the calibration rows holds labels {unseen.tolist()} that fit has not seen, the "
            f"classes are {np.asarray(classes).tolist()}; drop those rows, or fit with them"
        )
    if len(np.unique(y)) < 2:
        warnings.warn(
            f"the calibration rows are all of class {y[:1].tolist()}: temperature, evidence and "
            "thresholds are learned for it alone, and inputs of other classes may be flagged as "
            "OOD; give rows of every class",
            UserWarning,
            stacklevel=3,
        )
    return X, y
