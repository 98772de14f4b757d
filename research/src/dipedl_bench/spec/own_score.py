"""A score of features and logits, written by anyone, as a method of a suite."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dipedl.baselines import MaxSoftmax

#: What ``fit`` of a score takes.
_ARGUMENTS = {"features", "logits", "labels"}


@cache
def is_score(made: Any) -> bool:
    """Return whether a class is a score of features and logits: its ``fit`` takes these."""
    fit = getattr(made, "fit", None)
    return callable(fit) and set(inspect.signature(fit).parameters) >= _ARGUMENTS


class OwnScore(ClassifierMixin, BaseEstimator):
    """A network classifier with the uncertainty of a score.

    Parameters
    ----------
    estimator : classifier in FrozenEstimator
        It has ``transform`` and ``logits``.
    score : object
        ``fit(features, logits, labels)`` gets features (n, p) and logits (n, k) in float64, and
        labels (n,) out of 0..k-1; ``uncertainty(features, logits)`` gives (n,) numbers, higher
        where the input is less known. Features are None where there are none. A ``fit`` with an
        argument ``head`` gets the weights (k, p) and the bias (k,) of the last layer too.
    arguments : mapping
        What the score was made with, for the config of a row.
    """

    def __init__(
        self, estimator: Any = None, score: Any = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        self.estimator = estimator
        self.score = score
        self.arguments = arguments

    def fit(self, X: Any, y: np.ndarray) -> Self:
        """Fit the score to the outputs of the classifier for X (n, d) and labels y (n,)."""
        network = MaxSoftmax(self.estimator).fit(X, y)
        self.network_, self.estimator_, self.classes_ = (
            network,
            network.estimator_,
            network.classes_,
        )
        self.score_ = deepcopy(self.score)
        features, logits = self._outputs(X)
        labels = np.searchsorted(self.classes_, y)
        rows: dict[str, Any] = {"features": features, "logits": logits, "labels": labels}
        if "head" in inspect.signature(self.score_.fit).parameters:
            head = self.estimator_.linear_head()
            rows["head"] = tuple(np.array(of, dtype=np.float64) for of in head)
        self.score_.fit(**rows)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input X (n, d), shape (n,)."""
        return np.asarray(self.network_.predict(X))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, k) of the classifier."""
        return np.asarray(self.network_.predict_proba(X))

    def uncertainty(self, X: Any) -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,)."""
        check_is_fitted(self, "score_")
        found = np.asarray(self.score_.uncertainty(*self._outputs(X)), dtype=np.float64)
        name = type(self.score).__name__
        if found.shape != (len(X),):
            raise ValueError(
                f"{name}.uncertainty must return one number per row, shape ({len(X)},), got shape "
                f"{found.shape}"
            )
        if not np.isfinite(found).all():
            rows = np.flatnonzero(~np.isfinite(found))
            raise ValueError(
                f"{name}.uncertainty must return finite numbers, got {found[rows[0]]} in row "
                f"{rows[0]} and {len(rows) - 1} others"
            )
        return found

    def _outputs(self, X: Any) -> tuple[np.ndarray | None, np.ndarray]:
        """Features (n, p) if any and logits (n, k), as copies that a score may change in place."""
        network, features = self.estimator_, None
        if getattr(network, "has_features", True):  # arrays of one's own may have none
            features = np.array(network.transform(X), dtype=np.float64)
        return features, np.array(network.logits(X), dtype=np.float64)
