"""What a density scores."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import numpy as np

from .._assertions import require, same
from .toy import fit, fitted, new, toy


def check_one_finite_float_per_row(density: Any, random_state: int = 0) -> None:
    """Fit returns the density itself; `score_samples` gives float64, shape (n,), all finite."""
    X, y = toy(random_state)
    model = new(density, random_state)
    require(fit(model, X, y) is model, f"{density}: fit must return self")
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
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
    queries = np.concatenate([X, 3 * X[:20], X[:3] + 1e4])
    whole = model.score_samples(queries)
    for size in (1, 7):
        parts = [model.score_samples(queries[i : i + size]) for i in range(0, len(queries), size)]
        same(np.concatenate(parts), whole, 1e-12, f"{density}: rows scored in chunks of {size}")
    order = np.random.default_rng(random_state).permutation(len(queries))
    same(model.score_samples(queries[order]), whole[order], 1e-12, f"{density}: permuted queries")


def check_far_points_score_lower(density: Any, random_state: int = 0) -> None:
    """Away from the data the log-density falls below that of every training row, and on."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
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
        X, y = toy(random_state, p=p)
        grid = np.stack(np.meshgrid(*[axis] * p), axis=-1).reshape(-1, p)
        model = fitted(density, X, y, random_state)
        parts = (model.score_samples(grid[i : i + 4000]) for i in range(0, len(grid), 4000))
        mass = sum(np.exp(part).sum() for part in parts) * (axis[1] - axis[0]) ** p
        require(abs(mass - 1) < 0.01, f"{density}: integrates to {mass:.6g} in {p}-D")


def check_memory_is_linear(density: Any, random_state: int = 0) -> None:
    """Twice the query rows do not need four times the memory: no n x n buffer."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
    n = 2000
    small, large = (_peak(model, toy(random_state, n=m)[0]) for m in (n, 2 * n))
    require(
        large < 3 * small,
        f"{density}: scoring {n} rows takes {small:,} bytes and {2 * n} rows {large:,}",
    )


def check_huge_query(density: Any, random_state: int = 0) -> None:
    """Queries near the largest float give -inf or a finite number, never NaN, and no warning."""
    X, y = toy(random_state)
    model = fitted(density, X, y, random_state)
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
