"""Which inputs a method takes, and which it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import get_tags

from ...fitting.seeds import seeded_clone
from .._assertions import refuses, require, same
from .toy import METHODS, data, fitted


def check_wrong_width_is_refused(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Another number of columns than in fit, or a single axis, raises ValueError."""
    X, y = data(X, y)
    model = fitted(estimator, X, y)
    for bad in (X[:, :-1], np.column_stack([X, X[:, 0]]), X[0]):
        for name in METHODS:
            what = f"{name} of shape {bad.shape} after fit on {X.shape}"
            refuses(estimator, what, ValueError, getattr(model, name), bad)


def check_nan_and_inf_are_refused(estimator: Any, X: Any = None, y: Any = None) -> None:
    """NaN and infinity raise ValueError in fit and in every answer, unless its tags allow NaN."""
    X, y = data(X, y)
    if get_tags(estimator).input_tags.allow_nan:
        return
    model = fitted(estimator, X, y)
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[3, 1] = value
        refuses(estimator, f"fit with {value}", ValueError, seeded_clone(estimator, 0).fit, bad, y)
        for name in METHODS:
            refuses(estimator, f"{name} with {value}", ValueError, getattr(model, name), bad)


def check_bad_labels_are_refused(estimator: Any, X: Any = None, y: Any = None) -> None:
    """No labels, too few labels, one class and real numbers raise ValueError."""
    X, y = data(X, y)
    cases = {
        "y=None": None,
        "a label too few": y[:-1],
        "a single class": np.full(len(y), y[0]),
        "labels that are real numbers": np.linspace(0.1, 1.9, len(y)),
    }
    for what, bad in cases.items():
        refuses(estimator, f"fit with {what}", ValueError, seeded_clone(estimator, 0).fit, X, bad)


def check_inputs_are_left_alone(estimator: Any, X: Any = None, y: Any = None) -> None:
    """Neither `fit` nor an answer changes the arrays it was given."""
    X, y = data(X, y)
    given_X, given_y = X.copy(), y.copy()
    model = fitted(estimator, given_X, given_y)
    for name in METHODS:
        getattr(model, name)(given_X)
    require(np.array_equal(given_X, X), f"{estimator}: X was changed")
    require(np.array_equal(given_y, y), f"{estimator}: y was changed")


def check_number_types(estimator: Any, X: Any = None, y: Any = None) -> None:
    """float32, Fortran order and lists are taken, and answered as the same numbers in float64."""
    X, y = data(X, y)
    X = X.astype(np.float32).astype(np.float64)
    expected = fitted(estimator, X, y).predict_proba(X)
    for given in (X.astype(np.float32), np.asfortranarray(X), X.tolist()):
        what = f"{type(given).__name__} of {getattr(given, 'dtype', 'numbers')}"
        try:
            P = fitted(estimator, given, y).predict_proba(given)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{estimator}: {what} is refused: {error}") from error
        # Trained in single precision, not only asked: there is more to lose.
        same(P, expected, 1e-2, f"{estimator}: {what} against an array of float64")
