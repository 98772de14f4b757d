"""Public conformance checks for densities: the contract of `dipedl.protocols.Density`, tested.

Every check is a function ``check(density, random_state=0)`` that raises AssertionError, with the
density and what it did wrong, and else returns None. In a test suite::

    @pytest.mark.parametrize("check", dipedl.testing.density_checks(), ids=lambda c: c.__name__)
    def test_my_density(check):
        check(MyDensity())
"""

from __future__ import annotations

import inspect
import pickle
import re
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import has_fit_parameter

from ..density.base import as_density
from ._shared import (
    check_fit_forgets,
    check_inputs_are_left_alone,
    check_nan_and_inf_are_refused,
    check_same_seed_same_model,
    check_unfitted_is_refused,
    check_wrong_width_is_refused,
    refuses,
    require,
    rows_are_independent,
    same,
)
from ._toys import fit_density, fitted_density, two_classes

__all__ = ["DENSITY_CHECKS", "check_density", "density_checks"]


def check_density(density: Any, *, random_state: int = 0) -> None:
    """Run every check of `DENSITY_CHECKS` on a density.

    Parameters
    ----------
    density : density estimator
        Unfitted, with ``fit`` and ``score_samples``; it is never changed. An object that is no
        scikit-learn estimator is checked as `DIPClassifier` would use it, inside a `CustomDensity`.
        A class attribute ``normalized = False`` says that the density need not integrate to one.
    random_state : int, default=0
        Seed of the toy data, and of every ``random_state`` of the density that is None.

    Raises
    ------
    AssertionError
        At the first check that fails.
    TypeError
        If there is nothing to fit or to score with.

    Examples
    --------
    >>> from dipedl.density import GaussianDensity
    >>> from dipedl.testing import check_density
    >>> check_density(GaussianDensity())
    """
    for name in ("fit", "score_samples"):
        if not hasattr(density, name):
            raise TypeError(
                f"density must have the methods fit and score_samples, got {density!r} "
                f"without {name}"
            )
    for check in density_checks():
        check(density, random_state)


def density_checks() -> list[Callable[..., None]]:
    """The checks, for ``pytest.mark.parametrize``."""
    return list(DENSITY_CHECKS)


def check_one_finite_float_per_row(density: Any, random_state: int = 0) -> None:
    """Fit returns the density itself; `score_samples` gives float64, shape (n,), all finite."""
    X, y = two_classes(random_state)
    model = as_density(density, random_state)
    require(fit_density(model, X, y) is model, f"{density}: fit must return self")
    for rows in (X, X[:1], X + 0.5):
        score = model.score_samples(rows)
        what = f"{type(score).__name__} of {getattr(score, 'dtype', '?')}, {np.shape(score)}"
        good = isinstance(score, np.ndarray) and score.dtype == np.float64
        require(
            good and score.shape == (len(rows),),
            f"{density}: score_samples of {len(rows)} rows must be a float64 array of shape "
            f"({len(rows)},), got {what}",
        )
        require(np.isfinite(score).all(), f"{density}: log-densities near the data are not finite")


def check_rows_are_scored_independently(density: Any, random_state: int = 0) -> None:
    """Chunks and permutations of the query rows change nothing."""
    X, y = two_classes(random_state)
    model = fitted_density(density, X, y, random_state)
    queries = np.concatenate([X, 3 * X[:20], X[:3] + 1e4])
    rows_are_independent(model.score_samples, queries, 1e-12, f"{density}: score_samples")


def check_far_points_score_lower(density: Any, random_state: int = 0) -> None:
    """Away from the data the log-density falls below that of every training row, and on."""
    X, y = two_classes(random_state)
    model = fitted_density(density, X, y, random_state)
    lowest = model.score_samples(X).min()
    angle = np.arange(12) * np.pi / 6
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    score = np.array([model.score_samples(r * directions) for r in (30, 100, 1e3, 1e4, 1e6)])
    require(
        (score[0] < lowest).all(),
        f"{density}: a point 10 sd away scores {score[0].max():.6g}, "
        f"above the lowest training row, {lowest:.6g}",
    )
    lower = (score[1:] < score[:-1]) | np.isneginf(score[1:])
    require(lower.all(), f"{density}: the log-density does not keep falling with the distance")


_GRIDS = {1: np.linspace(-25, 25, 10001), 2: np.linspace(-16, 16, 401)}


def check_integrates_to_one(density: Any, random_state: int = 0) -> None:
    """The density integrates to one in 1-D and 2-D, unless it sets ``normalized = False``."""
    if not getattr(density, "normalized", True):
        return
    for p, axis in _GRIDS.items():
        X, y = two_classes(random_state, p=p)
        grid = np.stack(np.meshgrid(*[axis] * p), axis=-1).reshape(-1, p)
        model = fitted_density(density, X, y, random_state)
        parts = (model.score_samples(grid[i : i + 4000]) for i in range(0, len(grid), 4000))
        mass = sum(np.exp(part).sum() for part in parts) * (axis[1] - axis[0]) ** p
        require(abs(mass - 1) < 0.01, f"{density}: integrates to {mass:.6g} in {p}-D")


def check_memory_is_linear(density: Any, random_state: int = 0) -> None:
    """Twice the query rows do not need four times the memory: no n x n buffer."""
    X, y = two_classes(random_state)
    model = fitted_density(density, X, y, random_state)
    n = 2000
    small, large = (_peak(model, two_classes(random_state, n=m)[0]) for m in (n, 2 * n))
    require(
        large < 3 * small,
        f"{density}: scoring {n} rows takes {small:,} bytes and {2 * n} rows {large:,}",
    )


def check_huge_query(density: Any, random_state: int = 0) -> None:
    """Queries near the largest float give -inf or a finite number, never NaN, and no warning."""
    X, y = two_classes(random_state)
    model = fitted_density(density, X, y, random_state)
    lowest = model.score_samples(X).min()
    pattern = np.array([[1, 1], [1, -1], [-1, 0], [0, 1]])
    queries = np.concatenate([size * pattern for size in (1e154, 1e200, 1e300, 1.7e308)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            score = model.score_samples(queries)
        except Warning as warning:
            raise AssertionError(f"{density}: warns for a huge query: {warning}") from warning
    require(
        (score < lowest).all(),
        f"{density}: queries from 1e154 to 1.7e308 score {score}, not below the training rows",
    )


def _peak(model: Any, X: np.ndarray) -> int:
    model.score_samples(X)
    tracemalloc.start()
    try:
        model.score_samples(X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


_CONSTANT = 3


def check_constant_feature(density: Any, random_state: int = 0) -> None:
    """A constant feature leaves the scores finite, or raises a ValueError that names it."""
    X, y = two_classes(random_state, p=5)
    X[:, _CONSTANT] = 1.5
    try:
        score = fitted_density(density, X, y, random_state).score_samples(X)
    except ValueError as error:
        named = re.search(rf"\b{_CONSTANT}\b", str(error)) and "constant" in str(error)
        require(
            bool(named), f"{density}: feature {_CONSTANT} is constant; the error hides it: {error}"
        )
    else:
        require(np.isfinite(score).all(), f"{density}: not finite with a constant feature")


def check_number_types(density: Any, random_state: int = 0) -> None:
    """float32, float16, integers and lists are taken, and score as the same numbers in float64."""
    X, y = two_classes(random_state)
    for convert in (np.float32, np.float16, np.int64, np.asfortranarray, np.ndarray.tolist):
        name = convert.__name__
        given: Any = X * 8
        given = given.astype(convert) if isinstance(convert, type) else convert(given)
        wide = np.asarray(given, dtype=np.float64)
        try:
            score = fitted_density(density, given, y, random_state).score_samples(given)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"{density}: {name} input is refused: {error}") from error
        expected = fitted_density(density, wide, y, random_state).score_samples(wide)
        same(score, expected, 1e-6, f"{density}: {name} input against float64")


def check_training_order_is_irrelevant(density: Any, random_state: int = 0) -> None:
    """The order of the training rows does not matter.

    For a density with a ``random_state`` another order may act like another seed: then only the
    mean log-density must agree, to half a nat.
    """
    X, y = two_classes(random_state)
    order = np.random.default_rng(random_state).permutation(len(X))
    score = fitted_density(density, X, y, random_state).score_samples(X)
    again = fitted_density(density, X[order], y[order], random_state).score_samples(X)
    if _is_random(density):
        gap = abs(score.mean() - again.mean())
        require(gap < 0.5, f"{density}: training order moves the mean log-density by {gap:.3g}")
    else:
        same(again, score, 1e-8, f"{density}: fitted on permuted rows")


def check_partial_fit_equals_fit(density: Any, random_state: int = 0) -> None:
    """`partial_fit` in any chunks, one row each too, gives what `fit` gives; if offered."""
    if not hasattr(density, "partial_fit"):
        return
    X, y = two_classes(random_state)
    expected = fitted_density(density, X, y, random_state).score_samples(X)
    rng = np.random.default_rng(random_state)
    cuts = np.sort(rng.choice(np.arange(1, len(X)), 6, replace=False))
    for chunks in (cuts, np.arange(1, len(X))):
        model = as_density(density, random_state)
        for rows in np.split(rng.permutation(len(X)), chunks):
            _partial_fit(model, X[rows], y[rows], np.unique(y))
        what = f"{density}: partial_fit in {len(chunks) + 1} chunks against fit"
        same(model.score_samples(X), expected, 1e-9, what)


def check_merging_equals_fit(density: Any, random_state: int = 0) -> None:
    """``a + b`` is the density of the rows of both, and leaves a and b alone; if offered."""
    if not hasattr(density, "__add__"):
        return
    X, y = two_classes(random_state)
    X, y = np.concatenate([X, X[:10] + 1]), np.concatenate([y, y[:10]])
    expected = fitted_density(density, X, y, random_state).score_samples(X)
    a = fitted_density(density, X[:30], y[:30], random_state)
    b = fitted_density(density, X[30:], y[30:], random_state)
    before = a.score_samples(X), b.score_samples(X)
    same((a + b).score_samples(X), expected, 1e-9, f"{density}: a + b against fit")
    same((b + a).score_samples(X), expected, 1e-9, f"{density}: b + a against fit")
    for model, score in zip((a, b), before, strict=True):
        same(model.score_samples(X), score, 0.0, f"{density}: an operand after the merge")


def check_sample_weight_is_repetition(density: Any, random_state: int = 0) -> None:
    """A weight of m counts a row m times, and a weight of zero leaves it out; if weights are taken.

    Densities with a ``random_state`` are exempt: repeated rows may be another draw.
    """
    if not has_fit_parameter(density, "sample_weight") or _is_random(density):
        return
    X, y = two_classes(random_state)
    times = np.random.default_rng(random_state).integers(0, 4, len(X))
    X[times == 0] += 1e6
    expected = fitted_density(density, X.repeat(times, axis=0), y.repeat(times), random_state)
    model = as_density(density, random_state)
    model.fit(X, y, sample_weight=times.astype(np.float64))
    queries = X[times > 0]
    what = f"{density}: sample_weight against repeated rows"
    same(model.score_samples(queries), expected.score_samples(queries), 1e-8, what)


def check_clone_and_pickle(density: Any, random_state: int = 0) -> None:
    """A clone is unfitted and fits the same; a fitted density survives pickling."""
    X, y = two_classes(random_state)
    model = fitted_density(density, X, y, random_state)
    score = model.score_samples(X)
    copy = clone(model)
    refuses(density, "score_samples of a clone", NotFittedError, copy.score_samples, X)
    same(fit_density(copy, X, y).score_samples(X), score, 1e-12, f"{density}: a fitted clone")
    restored = pickle.loads(pickle.dumps(model))
    same(restored.score_samples(X), score, 0.0, f"{density}: after pickling")


def _partial_fit(model: Any, X: np.ndarray, y: np.ndarray, classes: np.ndarray) -> None:
    parameters = inspect.signature(model.partial_fit).parameters
    optional = {"y": y, "classes": classes}
    model.partial_fit(X, **{k: v for k, v in optional.items() if k in parameters})


def _is_random(density: Any) -> bool:
    names = density.get_params() if hasattr(density, "get_params") else ()
    return any(name.split("__")[-1] == "random_state" for name in names)


#: Every check, in the order in which `check_density` runs them.
DENSITY_CHECKS: list[Callable[..., None]] = [
    check_one_finite_float_per_row,
    check_unfitted_is_refused,
    check_rows_are_scored_independently,
    check_training_order_is_irrelevant,
    check_far_points_score_lower,
    check_memory_is_linear,
    check_integrates_to_one,
    check_partial_fit_equals_fit,
    check_merging_equals_fit,
    check_sample_weight_is_repetition,
    check_constant_feature,
    check_number_types,
    check_nan_and_inf_are_refused,
    check_wrong_width_is_refused,
    check_inputs_are_left_alone,
    check_same_seed_same_model,
    check_fit_forgets,
    check_clone_and_pickle,
    check_huge_query,
]
