"""The classifier as the evidence side asks it: fitted on all rows, or on those of a fold."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ._parts import class_probabilities, fitted_classifier
from ._validation import weight_argument


class ClassifierView:
    """A fitted classifier, with the unfitted one that it came from.

    Parameters
    ----------
    template : classifier
        Unfitted, or frozen.
    fitted : classifier
        The fitted classifier.
    classes : ndarray, shape (k,)
        Labels of the columns of every answer.
    """

    def __init__(self, template: Any, fitted: Any, classes: np.ndarray) -> None:
        self.template, self.fitted, self.classes = template, fitted, classes

    @property
    def frozen(self) -> bool:
        """Whether it was fitted before, on rows that nobody here knows."""
        return isinstance(self.template, FrozenEstimator)

    def indices(self, y: np.ndarray) -> np.ndarray:
        """Index of each label among the classes, shape (n,)."""
        order = np.argsort(self.classes)
        return np.asarray(order[np.searchsorted(self.classes, y, sorter=order)])

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), shape (n, k); zero for a class it has not seen."""
        seen = np.asarray(getattr(self.fitted, "classes_", self.classes))
        P = class_probabilities(self.fitted, X, len(seen))
        if len(seen) == len(self.classes):
            return P
        whole = np.zeros((len(P), len(self.classes)))
        whole[:, self.indices(seen)] = P
        return whole

    def refitted(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> ClassifierView:
        """The same classifier fitted on these rows; a frozen one is itself."""
        if self.frozen:
            return self
        copy = clone(self.template)
        fitted = fitted_classifier(copy, X, y, weight_argument(copy, w))
        return ClassifierView(self.template, fitted, self.classes)
