"""Messages of checks, and the checks that densities and methods with an uncertainty share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ._toys import Toy, fit_density


def require(condition: Any, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def same(got: Any, expected: Any, tolerance: float, what: str) -> None:
    """Raise AssertionError unless the numbers agree, relatively or absolutely."""
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=what)


def refuses(
    thing: Any, what: str, error: type[Exception], function: Callable[..., Any], *args: Any
) -> None:
    try:
        function(*args)
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{thing}: {what} must raise {error.__name__}, got {other!r}"
        ) from other
    raise AssertionError(f"{thing}: {what} must raise {error.__name__}, but it passed")


def check_unfitted_is_refused(thing: Any, *given: Any) -> None:
    """Every question before `fit` raises NotFittedError."""
    toy = Toy.of(thing, *given)
    model = toy.new()
    for name in (*toy.methods, "predict_dirichlet"):
        if hasattr(model, name):
            refuses(thing, f"unfitted, {name}", NotFittedError, getattr(model, name), toy.X)


def check_wrong_width_is_refused(thing: Any, *given: Any) -> None:
    """Another number of columns than in fit, or a single axis, raises ValueError."""
    toy = Toy.of(thing, *given)
    X, model = toy.X, toy.fitted()
    for bad in (X[:, :-1], np.column_stack([X, X[:, 0]]), X[0]):
        for name in toy.methods:
            what = f"{name} of shape {bad.shape} after fit on {X.shape}"
            refuses(thing, what, ValueError, getattr(model, name), bad)


def check_nan_and_inf_are_refused(thing: Any, *given: Any) -> None:
    """NaN and infinity raise ValueError in fit and in every answer, unless its tags allow NaN."""
    toy = Toy.of(thing, *given)
    if toy.allows_nan:
        return
    model = toy.fitted()
    for value in (np.nan, np.inf, -np.inf):
        bad = toy.X.copy()
        bad[3, 1] = value
        refuses(thing, f"fit with {value}", ValueError, fit_density, toy.new(), bad, toy.y)
        for name in toy.methods:
            refuses(thing, f"{name} with {value}", ValueError, getattr(model, name), bad)


def check_inputs_are_left_alone(thing: Any, *given: Any) -> None:
    """Neither `fit` nor an answer changes the arrays it was given."""
    toy = Toy.of(thing, *given)
    X, y = toy.X.copy(), toy.y.copy()
    model = toy.fitted(X, y)
    for name in ("fit", *toy.methods):
        if name != "fit":
            getattr(model, name)(X)
        unchanged = np.array_equal(X, toy.X) and np.array_equal(y, toy.y)
        require(unchanged, f"{thing}: {name} changed X or y")


def check_same_seed_same_model(thing: Any, *given: Any) -> None:
    """Two fits with the same seed agree, and so do two calls of a fitted model."""
    toy = Toy.of(thing, *given)
    one, two = (toy.numbers(toy.fitted()) for _ in range(2))
    for name, ask in one.items():
        answer = ask(toy.X)
        same(ask(toy.X), answer, 0.0, f"{thing}: a second call of {name}")
        what = f"{thing}: {name} after a second fit with the same seed"
        same(two[name](toy.X), answer, toy.rounding, what)


def check_fit_forgets(thing: Any, *given: Any) -> None:
    """A second `fit` starts anew, whatever the data before."""
    toy = Toy.of(thing, *given)
    again = toy.numbers(fit_density(toy.fitted(*toy.other), toy.X, toy.y))
    for name, ask in toy.numbers(toy.fitted()).items():
        what = f"{thing}: {name} when fitted a second time"
        same(again[name](toy.X), ask(toy.X), toy.rounding, what)


def rows_are_independent(
    ask: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, tolerance: float, what: str
) -> None:
    """Raise AssertionError unless chunks and permutations of the rows change nothing."""
    whole = ask(rows)
    for size in (1, 7):
        parts = [ask(rows[i : i + size]) for i in range(0, len(rows), size)]
        same(np.concatenate(parts), whole, tolerance, f"{what} of rows in chunks of {size}")
    order = np.random.default_rng(0).permutation(len(rows))
    same(ask(rows[order]), whole[order], tolerance, f"{what} of permuted rows")
