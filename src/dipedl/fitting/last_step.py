"""A model at the end of a pipeline, and what comes before it."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline


def last_step(model: Any) -> tuple[Any, Any]:
    """The model behind searches and pipelines, and the fitted steps before it; None without any."""
    if isinstance(model, FrozenEstimator):
        return last_step(model.estimator)
    if isinstance(model, BaseSearchCV):
        return last_step(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return model, None
    inner, between = last_step(model.steps[-1][1])
    before = model.steps[:-1] if between is None else [*model.steps[:-1], ("before", between)]
    return inner, Pipeline(before) if before else None
