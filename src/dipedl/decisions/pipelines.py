"""Decisions of a model at the end of a pipeline or a search.

scikit-learn hands on ``predict`` and ``predict_proba`` of the last step, but no other method. Each
function here prepares X by the steps before, and calls the method of its name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from ..dirichlet import Dirichlet
from .costs import Decision
from .rejection import Rejection

__all__ = [
    "decide",
    "p_value",
    "predict_dirichlet",
    "predict_ood",
    "predict_set",
    "predict_with_reject",
    "uncertainty",
]


def predict_dirichlet(model: Any, X: Any) -> Dirichlet:
    """The Dirichlet of each of the n inputs X (n, d); see `DIPClassifier.predict_dirichlet`."""
    answer: Dirichlet = _of_last_step(model, "predict_dirichlet", X)
    return answer


def uncertainty(model: Any, X: Any, kind: str | None = None) -> np.ndarray:
    """Uncertainty of each input, shape (n,), by default of the model's own kind.

    The kinds are those of the model: see `DIPClassifier.uncertainty`; some baselines have one only.
    """
    kinds = () if kind is None else (kind,)
    return np.asarray(_of_last_step(model, "uncertainty", X, *kinds))


def p_value(model: Any, X: Any, *, by_class: bool = False) -> np.ndarray:
    """Conformal p-value of each input, shape (n,); see `DIPClassifier.p_value`."""
    return np.asarray(_of_last_step(model, "p_value", X, by_class=by_class))


def predict_ood(
    model: Any, X: Any, alpha: float | None = None, *, by_class: bool = False
) -> np.ndarray:
    """+1 for inputs like the training data, -1 for others; see `DIPClassifier.predict_ood`."""
    return np.asarray(_of_last_step(model, "predict_ood", X, alpha=alpha, by_class=by_class))


def predict_set(model: Any, X: Any, coverage: float = 0.9, *, by_class: bool = False) -> np.ndarray:
    """Classes that may be the true one, shape (n, k); see `DIPClassifier.predict_set`."""
    return np.asarray(_of_last_step(model, "predict_set", X, coverage, by_class=by_class))


def predict_with_reject(model: Any, X: Any, **promise: Any) -> Rejection:
    """Labels, and which of them not to trust; see `DIPClassifier.predict_with_reject`."""
    answer: Rejection = _of_last_step(model, "predict_with_reject", X, **promise)
    return answer


def decide(model: Any, X: Any, **costs: Any) -> Decision:
    """Answers of the least expected cost; see `DIPClassifier.decide`."""
    answer: Decision = _of_last_step(model, "decide", X, **costs)
    return answer


def _of_last_step(model: Any, method: str, X: Any, *arguments: Any, **promise: Any) -> Any:
    inner, before = last_step_with(method, model)
    prepared = X if before is None else before.transform(X)
    return getattr(inner, method)(prepared, *arguments, **promise)


def last_step_with(method: str, model: Any) -> tuple[Any, Any]:
    """Return `last_step` of a model that has a method; raise TypeError for any other."""
    inner, before = last_step(model)
    if not hasattr(inner, method):
        raise TypeError(
            "model must be a DIPClassifier, a DIPModule or a baseline, or a pipeline or search "
            f"that ends in one, got {type(inner).__name__} at its end"
        )
    return inner, before


def last_step(model: Any) -> tuple[Any, Any]:
    """The model behind searches and pipelines, and the fitted steps before it; None without any."""
    if isinstance(model, FrozenEstimator):
        return last_step(model.estimator)
    if isinstance(model, BaseSearchCV):
        if not hasattr(model, "best_estimator_"):
            raise NotFittedError(
                f"this {type(model).__name__} has no best_estimator_: call fit, with refit=True"
            )
        return last_step(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return model, None
    inner, between = last_step(model.steps[-1][1])
    before = model.steps[:-1] if between is None else [*model.steps[:-1], ("before", between)]
    return inner, Pipeline(before) if before else None
