"""Whether a classifier knows rows by heart, told without other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from .._fold import like
from ..fitting.classifiers import FittedClassifier
from ..fitting.columns import numbers

MOST, FEWEST = 1000, 100
#: A rise of the Brier score is no chance from so many standard errors on, and large from so much.
_SIGMAS, _RISE = 3.0, 0.01
#: Errors of the nearest row beside which a classifier without one is suspect.
_ERRORS = 5


def memorised(classifier: FittedClassifier, X: Any, y: np.ndarray, Z: np.ndarray) -> bool | None:
    """Whether a classifier has learned rows X (n, d) of class indices y (n,) by heart.

    Half-way between a row and the nearest one of its class, in the features Z (n, p), a classifier
    is surer of the class than at the rows, whose labels may be noise; one that has learned them is
    less sure. It is also suspect if it makes no error, where the nearest row often has another
    label. At most a thousand rows are looked at. None if the classifier is not frozen, for fewer
    than a hundred rows, if X holds other things than numbers, and if it refuses those half-way.
    """
    if not isinstance(classifier.template, FrozenEstimator):
        return None
    values = numbers(X)
    if values is None or len(Z) < FEWEST or not np.isfinite(values).all():
        return None
    some = np.linspace(0, len(Z) - 1, min(len(Z), MOST)).astype(int)
    values, y, Z = values[some], y[some], Z[some]
    middle = like(X, (values + values[nearest_of_class(Z, y)]) / 2)
    P = classifier.proba(_safe_indexing(X, some))
    try:
        between = classifier.proba(middle)
    except Exception:
        # Between two codes of a category there may be no third.
        return None
    errors = int((y[_nearest(Z)] != y).sum())
    flawless = errors >= _ERRORS and bool((P.argmax(axis=1) == y).all())
    return flawless or less_sure_between(P, between, y)


def less_sure_between(P: np.ndarray, between: np.ndarray, y: np.ndarray) -> bool:
    """Return whether probabilities half-way between rows fit the labels y (n,) worse than at them.

    P (n, k) are at the rows, `between` (n, k) half-way to another row of the class.
    """
    truth = np.eye(P.shape[1])[y]
    rise = ((between - truth) ** 2).sum(axis=1) - ((P - truth) ** 2).sum(axis=1)
    return bool(rise.mean() > max(_RISE, _SIGMAS * rise.std() / np.sqrt(len(rise))))


def _nearest(Z: np.ndarray) -> np.ndarray:
    """Number of the nearest other row of each, shape (n,)."""
    return np.asarray(NearestNeighbors(n_neighbors=1).fit(Z).kneighbors()[1][:, 0])


def nearest_of_class(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Number of the nearest other row of the same class; of a class of one row itself."""
    found = np.arange(len(Z))
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            found[rows] = rows[_nearest(Z[rows])]
    return found
