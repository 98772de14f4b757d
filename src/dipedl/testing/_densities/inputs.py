"""Which inputs a density takes, and which it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from .._assertions import refuses, require, same
from .toy import fit, fitted, new, toy

_CONSTANT = 3


def check_constant_feature(density: Any, random_state: int = 0) -> None:
    """A constant feature leaves the scores finite, or raises a ValueError that names it."""
    X, y = toy(random_state, p=5)
    X[:, _CONSTANT] = 1.5
    try:
        score = fitted(density, X, y, random_state).score_samples(X)
    except ValueError as error:
        named = re.search(rf"\b{_CONSTANT}\b", str(error)) and "constant" in str(error)
        require(
            bool(named), f"{density}: feature {_CONSTANT} is constant; the error hides it: {error}"
        )
    else:
        require(np.isfinite(score).all(), f"{density}: not finite with a constant feature")


def check_number_types(density: Any, random_state: int = 0) -> None:
    """float32, float16, integers and lists are taken, and score as the same numbers in float64."""
    X, y = toy(random_state)
    for convert in (np.float32, np.float16, np.int64, np.asfortranarray, np.ndarray.tolist):
        name = convert.__name__
        given: Any = X * 8
        given = given.astype(convert) if isinstance(convert, type) else convert(given)
        wide = np.asarray(given, dtype=np.float64)
        try:
            score = fitted(density, given, y, random_state).score_samples(given)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{density}: {name} input is refused: {error}") from error
        expected = fitted(density, wide, y, random_state).score_samples(wide)
        same(score, expected, 1e-6, f"{density}: {name} input against float64")


def check_nan_and_inf_are_refused(density: Any, random_state: int = 0) -> None:
    """NaN and infinity raise ValueError, in fitting and in scoring."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
    for value in (np.nan, np.inf, -np.inf):
        bad = X.copy()
        bad[3, 1] = value
        fresh = new(density, random_state)
        refuses(density, f"fit with {value}", ValueError, lambda f=fresh, b=bad: fit(f, b, y))
        refuses(density, f"score_samples with {value}", ValueError, model.score_samples, bad)


def check_wrong_width_is_refused(density: Any, random_state: int = 0) -> None:
    """Another number of features than in fit, or a single axis, raises ValueError."""
    X, y = toy(random_state, p=3)
    model = fitted(density, X, y, random_state)
    for bad in (X[:, :2], np.column_stack([X, X[:, 0]]), X[0]):
        what = f"score_samples of shape {bad.shape} after fit on {X.shape}"
        refuses(density, what, ValueError, model.score_samples, bad)


def check_inputs_are_left_alone(density: Any, random_state: int = 0) -> None:
    """Neither `fit` nor `score_samples` changes the arrays it was given."""
    X, y = toy(random_state)
    given_X, given_y = X.copy(), y.copy()
    model = fitted(density, given_X, given_y, random_state)
    require(
        np.array_equal(given_X, X) and np.array_equal(given_y, y), f"{density}: fit changed X or y"
    )
    model.score_samples(given_X)
    require(np.array_equal(given_X, X), f"{density}: score_samples changed X")
