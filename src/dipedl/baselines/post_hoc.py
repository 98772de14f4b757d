"""Shared part of the post-hoc methods: a classifier, fitted or frozen, with a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..features.transformer import fit_feature_transformer
from ..inputs import (
    FittedClassifier,
    check_class_counts,
    clone_classifier,
    compute_features,
    fit_classifier,
    known_classes,
    validate_inputs,
    validate_inputs_and_labels,
)
from ..protocols import atomic


@dataclass(eq=False, repr=False)
class PostHoc(ClassifierMixin, BaseEstimator):
    """Labels and probabilities of the wrapped classifier; a method adds ``uncertainty``."""

    estimator: Any = None

    @atomic
    def fit(self, X: Any, y: Any, validation: tuple[Any, Any] | None = None) -> Self:
        """Fit the classifier, unless it is frozen, and the score.

        Parameters
        ----------
        X, y : array-like or DataFrame, shape (n, d), and array-like, shape (n,)
            Inputs and labels.
        validation : tuple (X, y), optional
            Passed to ``estimator.fit`` if it takes the argument; the score does not use it.
        """
        self.__dict__.pop("held_out_", None)  # of an earlier fit
        X, y = validate_inputs_and_labels(self, X, y)
        check_class_counts(y)
        self._check_parameters(y)
        estimator = clone_classifier(self.estimator)
        classes = known_classes(estimator, y)
        keywords = accepted_arguments(estimator, validation=validation)
        self.estimator_, known = fit_classifier(estimator, X, y, keywords)
        own = getattr(self.estimator_, "classes_", classes) if known is None else known
        self.classes_ = np.asarray(own)
        self._fit_score(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input X (n, d), shape (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, k) of the wrapped classifier."""
        check_is_fitted(self, "estimator_")
        return FittedClassifier(self.estimator_, self.classes_).proba(validate_inputs(self, X))

    def __sklearn_tags__(self) -> Tags:
        """The tags of the classifier; scores of features need dense inputs."""
        default = LogisticRegression() if self.estimator is None else self.estimator
        tags = take_input_tags(super().__sklearn_tags__(), default)
        tags.input_tags.sparse &= not hasattr(self, "features")
        return tags

    def _check_parameters(self, y: np.ndarray) -> None:
        """Raise ValueError or TypeError for a parameter that does not fit."""

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        """Fit what ``uncertainty`` needs besides the classifier."""

    def _fit_features(self, features: Any, X: Any, y: np.ndarray) -> np.ndarray:
        """Set `features_`; the features of X, shape (n, p)."""
        if features is not None:
            self.features_ = fit_feature_transformer(features, X, y, None)
        else:
            self.features_ = self.estimator_ if hasattr(self.estimator_, "transform") else None
        return compute_features(self.features_, X)

    def readable_density(self, X: Any) -> tuple[Any, np.ndarray, Any] | None:
        """Return the density behind the score, the features of X (n, p) and their transformer."""
        density = getattr(self, "density_", None)
        return None if density is None else (density, self._features(X), self.features_)

    def _features(self, X: Any) -> np.ndarray:
        """Features of X (n, d), shape (n, p)."""
        check_is_fitted(self, "features_")
        return compute_features(self.features_, validate_inputs(self, X))


def take_input_tags(tags: Tags, estimator: Any) -> Tags:
    """Tags of a model that hands inputs on: sparse and missing ones as `estimator` takes them."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator).input_tags
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
    return tags


def accepted_arguments(estimator: Any, **offered: Any) -> dict[str, Any]:
    """The arguments that are not None and that ``estimator.fit`` takes."""
    return {
        name: value
        for name, value in offered.items()
        if value is not None and has_fit_parameter(estimator, name)
    }
