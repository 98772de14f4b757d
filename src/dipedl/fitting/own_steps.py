"""Pipelines: the steps before a classifier, unfitted or fitted, and the one at the end."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler


def own_steps(estimator: Any) -> Any:
    """The steps of a pipeline before its classifier, as one transformer; None without any.

    Those of a frozen pipeline are frozen. A search and a `CalibratedClassifierCV` are looked into.
    A `StandardScaler` at the end is left out: features are standardised after these steps anyway,
    and samplers, which drop or add rows, are no transformers.
    """
    if isinstance(estimator, FrozenEstimator):
        steps = own_steps(_fitted_inside(estimator.estimator))
        return None if steps is None else FrozenEstimator(steps)
    if isinstance(estimator, BaseSearchCV | CalibratedClassifierCV):
        return own_steps(estimator.estimator)
    steps = _steps(estimator)
    if steps and type(steps[-1][1]) is StandardScaler:
        steps = steps[:-1]
    return Pipeline(steps) if steps else None


def classifier_inside(estimator: Any) -> Any:
    """The classifier at the end of pipelines, searches, `CalibratedClassifierCV`, frozen or not."""
    if isinstance(estimator, FrozenEstimator | BaseSearchCV | CalibratedClassifierCV):
        return classifier_inside(estimator.estimator)
    return (
        classifier_inside(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator
    )


def clone_with_levels(fitted: Any) -> Any:
    """An unfitted copy of fitted steps, with the levels, groups of levels and words that they know.

    Where a fold lacks a rare one there would be a feature less, and scores of densities of another
    number of features cannot be compared.
    """
    copy: Any = fitted if isinstance(fitted, str) else clone(fitted)
    if isinstance(fitted, Pipeline | FeatureUnion):
        name = "steps" if isinstance(fitted, Pipeline) else "transformer_list"
        parts = [(n, clone_with_levels(part)) for n, part in getattr(fitted, name)]
        copy.set_params(**{name: parts})
    elif isinstance(fitted, ColumnTransformer):
        # A part of no columns was not fitted.
        reads = fitted._transformer_to_input_indices
        known = {n: clone_with_levels(t) for n, t, _ in fitted.transformers_ if len(reads[n])}
        copy.set_params(transformers=[(n, known.get(n, t), of) for n, t, of in copy.transformers])
    elif isinstance(fitted, OneHotEncoder):
        # Levels, and which of them are infrequent, are all that it learns.
        copy = FrozenEstimator(fitted)
    elif isinstance(fitted, CountVectorizer):
        copy.set_params(vocabulary=fitted.vocabulary_)
    return copy


def _steps(estimator: Any) -> list[tuple[str, Any]]:
    if not isinstance(estimator, Pipeline):
        return []
    *before, (name, last) = estimator.steps
    inner = _steps(last)
    nested = [(name, Pipeline(inner))] if inner else []
    return [(n, step) for n, step in before if hasattr(step, "transform")] + nested


def _fitted_inside(estimator: Any) -> Any:
    """The fitted pipeline inside a search."""
    return estimator.best_estimator_ if isinstance(estimator, BaseSearchCV) else estimator


def last_step_with(method: str, model: Any) -> tuple[Any, Any]:
    """As `last_step`, of a model that has a method; TypeError for any other."""
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
        return last_step(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return model, None
    inner, between = last_step(model.steps[-1][1])
    before = model.steps[:-1] if between is None else [*model.steps[:-1], ("before", between)]
    return inner, Pipeline(before) if before else None
