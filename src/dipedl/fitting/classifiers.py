"""Classifiers: cloned, fitted, called for probabilities, with checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, get_tags

from .._validation import weight_argument
from ..maths.simplex import check_simplex
from .seeds import seeded_clone


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A fitted classifier whose probabilities have a column for every class of the model.

    `estimator` may know a part of the `classes` only, as in a fold that lacks one; `template` is
    unfitted, for the folds: frozen or None if the classifier is never fitted again.
    """

    estimator: Any
    classes: np.ndarray
    template: Any = None

    @classmethod
    def fit(
        cls, template: Any, classes: np.ndarray, X: Any, y: np.ndarray, w: np.ndarray | None
    ) -> Self:
        """Fit a clone of the template to X (n, d), y (n,) and weights; a frozen one stays."""
        estimator = template
        if not isinstance(template, FrozenEstimator):
            keywords = {} if w is None else weight_argument(template, w)
            estimator = fitted_classifier(clone(template), X, y, keywords)
        return cls(estimator, classes, template)

    def refitted(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> FittedClassifier:
        """The same classifier fitted to these rows; itself if it is frozen."""
        if isinstance(self.template, FrozenEstimator):
            return self
        return FittedClassifier.fit(self.template, self.classes, X, y, w)

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), shape (n, k); zero for a class it has not seen."""
        known = np.asarray(getattr(self.estimator, "classes_", self.classes))
        P = class_probabilities(self.estimator, X, len(known))
        if np.array_equal(known, self.classes):
            return P
        aligned = np.zeros((len(P), len(self.classes)))
        aligned[:, self.indices(known)] = P
        return aligned

    def indices(self, y: np.ndarray) -> np.ndarray:
        """Index of each label among the columns, shape (n,)."""
        if not np.isin(y, self.classes).all():
            raise ValueError(
                f"classes_ of the estimator are {np.unique(y).tolist()}, and y holds the labels "
                f"{self.classes.tolist()}: an estimator keeps the labels that it is given"
            )
        order = np.argsort(self.classes)
        return np.asarray(order[np.searchsorted(self.classes, y, sorter=order)])


def unfitted_classifier(estimator: Any, random_state: Any = None) -> Any:
    """A clone of the classifier, checked; None stands for logistic regression."""
    if estimator is None:
        return LogisticRegression(max_iter=1000)
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a classifier object, got {estimator!r}")
    copy = seeded_clone(estimator, random_state)
    if not hasattr(copy, "predict_proba"):
        raise TypeError(
            f"estimator must have a method predict_proba, got {estimator!r}; wrap it in "
            "CalibratedClassifierCV, or set probability=True where the classifier has it"
        )
    return copy


def fitted_classifier(estimator: Any, X: Any, y: np.ndarray, keywords: dict[str, Any]) -> Any:
    """``estimator.fit(X, y, **keywords)``, with a note on labels that some libraries refuse."""
    try:
        return estimator.fit(X, y, **keywords)
    except ValueError as error:
        classes = np.unique(y)
        if not np.array_equal(classes, np.arange(len(classes))):
            error.add_note(
                f"y holds the labels {classes.tolist()}: a classifier that wants 0..k-1, such "
                "as XGBClassifier, needs them encoded: LabelEncoder().fit_transform(y)"
            )
        raise


def class_probabilities(estimator: Any, X: Any, k: int) -> np.ndarray:
    """Class probabilities (n, k) of a fitted classifier, checked, rows summing to one."""
    P = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    if P.shape != (X.shape[0], k):
        raise ValueError(
            f"predict_proba of the estimator must have shape ({X.shape[0]}, {k}), got {P.shape}"
        )
    check_simplex("predict_proba of the estimator", P)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def take_input_tags(tags: Tags, estimator: Any) -> Tags:
    """Tags of a model that hands inputs on: sparse and missing ones as `estimator` takes them."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator).input_tags
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
    return tags
