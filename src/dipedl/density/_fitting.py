"""Densities: cloned, fitted, called for log-densities, with checks."""

from __future__ import annotations

from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from .._plugins import public_names
from ..inputs import NoAnswer, weight_argument, weights_passed
from ..maths.seeds import seeded_clone
from .custom import CustomDensity

_SCORERS = ("score_samples", "log_prob")


def as_density(density: Any, random_state: Any = None) -> Any:
    """An unfitted estimator for `density`: a clone, or a wrapper of any object that scores."""
    if isinstance(density, type) or not any(hasattr(density, name) for name in _SCORERS):
        classes = [n for n in sorted(public_names(Path(__file__).parent)) if n[0].isupper()]
        raise TypeError(
            "density must be an object with a method score_samples or log_prob, got "
            f"{density!r}; dipedl.density has {', '.join(classes)}, to be given as "
            "density=dipedl.density.KNNDensity()"
        )
    if not is_estimator(density):
        return CustomDensity(density)
    return clone(density) if random_state is None else seeded_clone(density, random_state)


def is_estimator(density: Any) -> bool:
    """Whether a density is fitted as it is; any other object is wrapped in `CustomDensity`."""
    return isinstance(density, BaseEstimator) and has_fit_parameter(density, "y")


def is_frozen(density: Any) -> bool:
    """Whether `density` is fitted already and stays as it is."""
    return isinstance(density, FrozenEstimator) or (
        density is not None and not hasattr(density, "fit")
    )


def fitted_density(
    density: Any, Z: np.ndarray, y: np.ndarray, w: np.ndarray | None, random_state: Any = None
) -> Any:
    """A fitted copy of the density, on features Z (n, p), labels and weights (n,)."""
    return fit_density(as_density(density, random_state), Z, y, w)


def fit_density(
    model: Any, Z: np.ndarray, y: np.ndarray, w: np.ndarray | None, proba: np.ndarray | None = None
) -> Any:
    """Fit the unfitted density itself; `proba` (n, k) for a ``fit`` that asks for it."""
    extra = {} if proba is None else {"proba": proba}
    if w is None or isinstance(model, FrozenEstimator):
        return model.fit(Z, y, **extra)
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not has_fit_parameter(last, "sample_weight"):
        raise ValueError(
            f"sample_weight was given but {type(last).__name__}.fit does not take it; "
            "use a Gaussian or kernel density, or drop the weights"
        )
    with weights_passed(model):
        return model.fit(Z, y, **weight_argument(model, w), **extra)


def clone_with_selected(fitted: Any, template: Any) -> Any:
    """The density to fit in folds: with the settings that the fit on all rows has selected."""
    # A frozen one hands on every attribute of what it holds, and is to stay as it is.
    if isinstance(fitted, FrozenEstimator) or not hasattr(fitted, "clone_with_selected"):
        return template
    return fitted.clone_with_selected()


def for_own_rows(density: Any) -> Any:
    """A fitted density, or a pipeline that ends in one, as it scores the rows of its fit."""
    if isinstance(density, Pipeline):
        name, last = density.steps[-1]
        return Pipeline([*density.steps[:-1], (name, for_own_rows(last))])
    frozen = isinstance(density, FrozenEstimator)
    return density.for_own_rows() if not frozen and hasattr(density, "for_own_rows") else density


def takes_proba(density: Any) -> bool:
    """Whether a density takes the classifier's probabilities; fitted, whether it was given them."""
    inner = density.estimator if isinstance(density, FrozenEstimator) else density
    kind: Any = type(inner)
    return _fit_takes(kind, "proba") and bool(getattr(inner, "with_classifier_", True))


@cache
def _fit_takes(kind: type, argument: str) -> bool:
    return hasattr(kind, "fit") and argument in signature(kind.fit).parameters


def log_density(density: Any, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
    """Log-densities of Z (n, p), checked: one number per row, no NaN, not +inf.

    `proba` (n, k) are given to densities that take the classifier's probabilities, and no other.
    """
    given = {"proba": proba} if proba is not None and takes_proba(density) else {}
    # What overflows is -inf or refused below; other libraries would warn of it.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(density.score_samples(Z, **given), dtype=np.float64)
    name = type(getattr(density, "model", density)).__name__
    if scores.shape != (len(Z),):
        raise ValueError(
            f"density {name} must give one log-density per row, shape ({len(Z)},), "
            f"got {scores.shape}"
        )
    usable = scores < np.inf
    if not usable.all():
        bad = ~usable
        row = int(np.flatnonzero(bad)[0])
        raise NoAnswer(
            f"density {name} gave {scores[row]} for row {row} ({int(bad.sum())} of {len(Z)} rows); "
            "a log-density is finite, or -inf where the density is zero: "
            "check the density's fit and scaling"
        )
    return scores
