"""Public conformance checks for densities: the contract of `dipedl.protocols.Density`, tested.

Every check is a function ``check(density)`` that raises AssertionError, with the
density and what it did wrong, and else returns None. In a test suite::

    @pytest.mark.parametrize("check", dipedl.testing.density_checks(), ids=lambda c: c.__name__)
    def test_my_density(check):
        check(MyDensity())
"""

from __future__ import annotations

import re
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from ..density.base import add_rows
from ._shared import SHARED_CHECKS, Subject, conformance, require, same, two_classes

__all__ = ["check_density", "density_checks"]


def check_density(density: Any) -> None:
    """Run every check of `density_checks` on a density.

    Parameters
    ----------
    density : density estimator
        Unfitted, with ``fit`` and ``score_samples``; it is never changed. An object that is no
        scikit-learn estimator is checked as `DIPClassifier` would use it, inside a `CustomDensity`.
        A class attribute ``normalized = False`` says that the density need not integrate to one.

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
    subject = Subject.of_density(density)
    for check in density_checks():
        check(subject)


@conformance
def check_training_order_is_irrelevant(s: Subject) -> None:
    """Check that the order of the training rows does not matter.

    For a density with a ``random_state`` another order may act like another seed: then only the
    mean log-density must agree, to half a nat.
    """
    order = np.random.default_rng(0).permutation(len(s.X))
    score = s.fit_model().score_samples(s.X)
    again = s.fit_model(s.X[order], s.y[order]).score_samples(s.X)
    if _is_random(s.thing):
        gap = abs(score.mean() - again.mean())
        require(gap < 0.5, f"training order moves the mean log-density by {gap:.3g}")
    else:
        same(again, score, 1e-8, "fitted on permuted rows")


@conformance
def check_far_points_score_lower(s: Subject) -> None:
    """Away from the data the log-density falls below that of every training row, and on."""
    model = s.fit_model()
    lowest = model.score_samples(s.X).min()
    angle = np.arange(12) * np.pi / 6
    directions = np.column_stack([np.cos(angle), np.sin(angle)])
    score = np.array([model.score_samples(r * directions) for r in (30, 100, 1e3, 1e4, 1e6)])
    require(
        (score[0] < lowest).all(),
        f"a point 10 sd away scores {score[0].max():.6g}, above the lowest training row, "
        f"{lowest:.6g}",
    )
    lower = (score[1:] < score[:-1]) | np.isneginf(score[1:])
    require(lower.all(), "the log-density does not keep falling with the distance")


_GRIDS = {1: np.linspace(-25, 25, 10001), 2: np.linspace(-16, 16, 401)}


@conformance
def check_integrates_to_one(s: Subject) -> None:
    """Check that the density integrates to one in 1-D and 2-D; not with ``normalized = False``."""
    if not getattr(s.thing, "normalized", True):
        return
    for p, axis in _GRIDS.items():
        grid = np.stack(np.meshgrid(*[axis] * p), axis=-1).reshape(-1, p)
        model = s.fit_model(*two_classes(0, p=p))
        parts = (model.score_samples(grid[i : i + 4000]) for i in range(0, len(grid), 4000))
        mass = sum(np.exp(part).sum() for part in parts) * (axis[1] - axis[0]) ** p
        require(abs(mass - 1) < 0.01, f"integrates to {mass:.6g} in {p}-D")


@conformance
def check_memory_is_linear(s: Subject) -> None:
    """Twice the query rows do not need four times the memory: no n x n buffer."""
    model, n = s.fit_model(), 2000
    small, large = (_peak(model, two_classes(0, n=m)[0]) for m in (n, 2 * n))
    require(
        large < 3 * small,
        f"scoring {n} rows takes {small:,} bytes and {2 * n} rows {large:,}",
    )


def _peak(model: Any, X: np.ndarray) -> int:
    model.score_samples(X)
    tracemalloc.start()
    try:
        model.score_samples(X)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@conformance
def check_huge_query(s: Subject) -> None:
    """Queries near the largest float give -inf or a finite number, never NaN, and no warning."""
    model = s.fit_model()
    lowest = model.score_samples(s.X).min()
    pattern = np.array([[1, 1], [1, -1], [-1, 0], [0, 1]])
    queries = np.concatenate([size * pattern for size in (1e154, 1e200, 1e300, 1.7e308)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            score = model.score_samples(queries)
        except Warning as warning:
            raise AssertionError(f"warns for a huge query: {warning}") from warning
    require(
        (score < lowest).all(),
        f"queries from 1e154 to 1.7e308 score {score}, not below the training rows",
    )


_CONSTANT = 3


@conformance
def check_constant_feature(s: Subject) -> None:
    """Check that a constant feature leaves scores finite, or raises a ValueError that names it."""
    X, y = two_classes(0, p=5)
    X[:, _CONSTANT] = 1.5
    try:
        score = s.fit_model(X, y).score_samples(X)
    except ValueError as error:
        named = re.search(rf"\b{_CONSTANT}\b", str(error)) and "constant" in str(error)
        require(named, f"feature {_CONSTANT} is constant; the error hides it: {error}")
    else:
        require(np.isfinite(score).all(), "not finite with a constant feature")


@conformance
def check_partial_fit_equals_fit(s: Subject) -> None:
    """`partial_fit` in any chunks, one row each too, gives what `fit` gives; if offered."""
    if not hasattr(s.thing, "partial_fit"):
        return
    expected = s.fit_model().score_samples(s.X)
    rng = np.random.default_rng(0)
    cuts = np.sort(rng.choice(np.arange(1, len(s.X)), 6, replace=False))
    for chunks in (cuts, np.arange(1, len(s.X))):
        model = s.new()
        for rows in np.split(rng.permutation(len(s.X)), chunks):
            add_rows(model, s.X[rows], s.y[rows], np.unique(s.y), None)
        what = f"partial_fit in {len(chunks) + 1} chunks against fit"
        same(model.score_samples(s.X), expected, 1e-9, what)


@conformance
def check_merging_equals_fit(s: Subject) -> None:
    """``a + b`` is the density of the rows of both, and leaves a and b alone; if offered."""
    if not hasattr(s.thing, "__add__"):
        return
    X, y = np.concatenate([s.X, s.X[:10] + 1]), np.concatenate([s.y, s.y[:10]])
    expected = s.fit_model(X, y).score_samples(X)
    a, b = s.fit_model(X[:30], y[:30]), s.fit_model(X[30:], y[30:])
    before = a.score_samples(X), b.score_samples(X)
    same((a + b).score_samples(X), expected, 1e-9, "a + b against fit")
    same((b + a).score_samples(X), expected, 1e-9, "b + a against fit")
    for model, score in zip((a, b), before, strict=True):
        same(model.score_samples(X), score, 0.0, "an operand after the merge")


@conformance
def check_sample_weight_is_repetition(s: Subject) -> None:
    """Check that a weight of m counts a row m times, and one of zero leaves it out; if taken.

    Densities with a ``random_state`` are exempt: repeated rows may be another draw.
    """
    if not has_fit_parameter(s.thing, "sample_weight") or _is_random(s.thing):
        return
    X, y = s.X.copy(), s.y
    times = np.random.default_rng(0).integers(0, 4, len(X))
    X[times == 0] += 1e6
    expected = s.fit_model(X.repeat(times, axis=0), y.repeat(times))
    model = s.new().fit(X, y, sample_weight=times.astype(np.float64))
    queries = X[times > 0]
    what = "sample_weight against repeated rows"
    same(model.score_samples(queries), expected.score_samples(queries), 1e-8, what)


def _is_random(density: Any) -> bool:
    names = density.get_params() if hasattr(density, "get_params") else ()
    return any(name.split("__")[-1] == "random_state" for name in names)


def density_checks() -> list[Callable[..., None]]:
    """Return all checks in the order of their runs, for ``pytest.mark.parametrize``."""
    return [
        *SHARED_CHECKS,
        check_training_order_is_irrelevant,
        check_far_points_score_lower,
        check_memory_is_linear,
        check_integrates_to_one,
        check_partial_fit_equals_fit,
        check_merging_equals_fit,
        check_sample_weight_is_repetition,
        check_constant_feature,
        check_huge_query,
    ]
