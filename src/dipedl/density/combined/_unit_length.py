"""Rows of unit length, taken once for all densities that look at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

#: A length below this is left as it is, as in scikit-learn.
_ZERO = 10 * float(np.finfo(np.float64).eps)


def behind_normalizer(part: Any) -> Any:
    """The density of a pipeline ``Normalizer() -> density``; None if `part` is no such pipeline."""
    if type(part) is not Pipeline or len(part.steps) != 2:
        return None
    first, last = part.steps[0][1], part.steps[1][1]
    return last if type(first) is Normalizer and first.norm == "l2" else None


def unit_rows(X: np.ndarray) -> np.ndarray:
    """The rows of X (n, p), each divided by its length: ``Normalizer().transform(X)``."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths < _ZERO] = 1.0
    return np.asarray(X / lengths[:, None])
