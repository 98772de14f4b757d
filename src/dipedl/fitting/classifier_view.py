"""The classifier as the evidence side asks it: fitted on all rows, or on those of a fold."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._validation import weight_argument
from .parts import class_probabilities, fitted_classifier


class ClassifierView:
    """A classifier that is fitted on its rows when it is first asked something.

    Parameters
    ----------
    template : classifier
        Unfitted, or frozen: then it needs no rows.
    known : ndarray, shape (k,)
        Labels of the columns of every answer.
    X, y, w : array-like (n, d), ndarray (n,), ndarray (n,) or None, optional
        Rows to fit on, with their labels and weights.
    """

    def __init__(
        self,
        template: Any,
        known: np.ndarray,
        X: Any = None,
        y: np.ndarray | None = None,
        w: np.ndarray | None = None,
    ) -> None:
        self.template, self.known = template, known
        self._rows = X, y, w

    @cached_property
    def fitted(self) -> Any:
        """The fitted classifier."""
        if isinstance(self.template, FrozenEstimator):
            return self.template
        X, y, w = self._rows
        model = clone(self.template)
        return fitted_classifier(model, X, np.asarray(y), weight_argument(model, w))

    @property
    def classes(self) -> np.ndarray:
        """Labels that the fitted classifier has seen, in its own order."""
        return np.asarray(getattr(self.fitted, "classes_", self.known))

    def indices(self, y: np.ndarray) -> np.ndarray:
        """Index of each label among the columns of every answer, shape (n,)."""
        if not np.isin(y, self.known).all():
            raise ValueError(
                f"classes_ of the estimator are {np.unique(y).tolist()}, and y holds the labels "
                f"{self.known.tolist()}: an estimator keeps the labels that it is given"
            )
        order = np.argsort(self.known)
        return np.asarray(order[np.searchsorted(self.known, y, sorter=order)])

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), shape (n, k); zero for a class it has not seen."""
        P = class_probabilities(self.fitted, X, len(self.classes))
        if np.array_equal(self.classes, self.known):
            return P
        whole = np.zeros((len(P), len(self.known)))
        whole[:, self.indices(self.classes)] = P
        return whole

    def refitted(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> ClassifierView:
        """The same classifier, to be fitted on these rows; a frozen one is itself."""
        if isinstance(self.template, FrozenEstimator):
            return self
        return ClassifierView(self.template, self.known, X, y, w)
