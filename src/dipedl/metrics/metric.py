"""Shared by all metrics: their direction and kind, and checks of their arguments.

Each error names the argument, expectation, what came and the remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, ParamSpec, Protocol, cast

import numpy as np
import numpy.typing as npt

from ..maths.arrays import check_simplex, drop_mask

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

#: The kind says how a metric is called: ``id`` with ``(y, proba)``, ``ood`` with
#: ``(uncertainty_in, uncertainty_out)``, ``risk`` with ``(correct, uncertainty)``.
Kind = Literal["id", "ood", "risk"]

P = ParamSpec("P")


class Metric(Protocol[P]):
    """A function of arrays that returns a float, with its direction and kind.

    `baseline` takes the same arguments and gives the value that a constant score reaches on these
    data, for metrics whose value cannot be read without it, such as AUPR.
    """

    __name__: str
    higher_is_better: bool
    kind: Kind
    baseline: Callable[..., float] | None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> float:
        """Value of the metric."""
        ...


def metric(
    *, higher_is_better: bool, kind: Kind, baseline: Callable[..., float] | None = None
) -> Callable[[Callable[P, float]], Metric[P]]:
    """Declare a function to be a metric; the function stays the same and gets three attributes."""

    def declare(function: Callable[P, float]) -> Metric[P]:
        declared: Any = function
        declared.higher_is_better = higher_is_better
        declared.kind = kind
        declared.baseline = baseline
        return cast("Metric[P]", declared)

    return declare


_SHAPE_REMEDIES = {
    1: "one number per input: ravel a single column",
    2: "one row per input and one column per class: use predict_proba, not predict",
}


def check_scores(name: str, values: npt.ArrayLike) -> Floats:
    """Require one uncertainty per input: (n,), n >= 1, infinities allowed, NaN refused."""
    scores = _numbers(name, values, "(n,)", ndim=1)
    if np.isnan(scores).any():
        bad = int(np.isnan(scores).sum())
        raise ValueError(
            f"{name} must not hold NaN, got {bad} NaN in {scores.size} values; "
            "find out why the score failed, or put +inf there to say 'not sure at all'"
        )
    return scores


def check_proba(proba: npt.ArrayLike) -> Floats:
    """Require class probabilities: (n, k), n >= 1, k >= 2, rows on the simplex."""
    rows = _numbers("proba", proba, "(n, k)", ndim=2)
    if rows.shape[1] < 2:
        raise ValueError(
            f"proba must have at least two columns, got shape {rows.shape}; "
            "for a binary model pass both: np.column_stack([1 - p, p])"
        )
    check_simplex("proba", rows)
    return rows


def check_labels(y: npt.ArrayLike, proba: npt.ArrayLike) -> tuple[Ints, Floats]:
    """Require true class indices (n,) and class probabilities (n, k) of the same n inputs."""
    rows = check_proba(proba)
    labels = _array("y", y, "(n,)", ndim=1)
    if labels.dtype.kind not in "iu":
        raise TypeError(
            f"y must hold integer class indices, got dtype {labels.dtype}; "
            "turn labels into indices with np.searchsorted(classifier.classes_, y)"
        )
    _check_same_length("y", labels, "proba", rows)
    low, high, k = int(labels.min()), int(labels.max()), rows.shape[1]
    if low < 0 or high >= k:
        raise ValueError(
            f"y must be in 0..{k - 1} because proba has {k} columns, got {low} to {high}; "
            "turn labels into indices with np.searchsorted(classifier.classes_, y)"
        )
    return labels.astype(np.intp), rows


def top_label(y: npt.ArrayLike, proba: npt.ArrayLike) -> tuple[Floats, Bools]:
    """Return the highest probability (n,) and whether that class is the true one (n,).

    Ties: among equally probable classes the lowest index is the prediction.
    """
    labels, rows = check_labels(y, proba)
    return rows.max(axis=1), rows.argmax(axis=1) == labels


def check_correct(correct: npt.ArrayLike, uncertainty: npt.ArrayLike) -> tuple[Bools, Floats]:
    """Require whether each prediction is right (n,) and its uncertainty (n,)."""
    hits = _array("correct", correct, "(n,)", ndim=1)
    if hits.dtype.kind != "b":
        raise TypeError(
            f"correct must be boolean, got dtype {hits.dtype}; pass correct = y == model.predict(X)"
        )
    scores = check_scores("uncertainty", uncertainty)
    _check_same_length("correct", hits, "uncertainty", scores)
    return hits, scores


def _array(name: str, values: npt.ArrayLike, shape: str, ndim: int) -> npt.NDArray[Any]:
    try:
        array: npt.NDArray[Any] = np.asarray(drop_mask(name, values))
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array of shape {shape}, got something ragged ({error}); "
            "pass rows of equal length"
        ) from error
    if array.ndim != ndim:
        raise ValueError(
            f"{name} must have shape {shape}, got shape {array.shape}; {_SHAPE_REMEDIES[ndim]}"
        )
    if array.size == 0:
        raise ValueError(
            f"{name} must not be empty, got shape {array.shape}; a metric needs at least one input"
        )
    return array


def _numbers(name: str, values: npt.ArrayLike, shape: str, ndim: int) -> Floats:
    array = _array(name, values, shape, ndim)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold real numbers, got dtype {array.dtype}; convert it to float first"
        )
    return array.astype(np.float64)


def _check_same_length(
    name: str, one: npt.NDArray[Any], other_name: str, other: npt.NDArray[Any]
) -> None:
    if len(one) != len(other):
        raise ValueError(
            f"{name} and {other_name} must have the same length, got {len(one)} and {len(other)}; "
            "pass both for the same inputs, in the same order"
        )
