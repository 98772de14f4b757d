"""Shared part of the post-hoc methods: a classifier, fitted or frozen, with a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..features.transformer import fit_feature_transformer
from ..inputs import (
    FittedClassifier,
    check_class_counts,
    clone_classifier,
    compute_features,
    fit_classifier,
    input_tags,
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
        self.check_parameters()
        self._check_rows(y)
        estimator = clone_classifier(self._template())
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
        template = self._template()
        default = LogisticRegression() if template is None else template
        tags = take_input_tags(super().__sklearn_tags__(), default)
        tags.input_tags.sparse &= not hasattr(self, "features")
        return tags

    def _template(self) -> Any:
        """Return the estimator of which a copy is fitted; None is logistic regression."""
        return self.estimator

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""

    def _check_rows(self, y: np.ndarray) -> None:
        """Raise ValueError for a setting that rows with labels y (n,) cannot take."""

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

    def _logits(self, X: Any) -> np.ndarray:
        """Logits of X (n, d), shape (n, k)."""
        check_is_fitted(self, "estimator_")
        X = validate_inputs(self, X)
        return compute_logits(self.estimator_, X, (X.shape[0], len(self.classes_)))


class LastLayer:
    """Part of a `PostHoc` that scores what the last layer of its classifier takes, and weights."""

    estimator_: Any
    classes_: np.ndarray

    def __sklearn_tags__(self) -> Tags:
        """The tags of the classifier, but for sparse inputs."""
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = False
        return tags

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        self.head_ = linear_head(self.estimator_, X, len(self.classes_))
        self._fit_to_features(compute_features(self.head_.features, X))

    def _fit_to_features(self, Z: np.ndarray) -> None:
        """Fit what ``uncertainty`` needs besides the head to features Z (n, p)."""

    def _features(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "head_")
        return compute_features(self.head_.features, validate_inputs(self, X))


@dataclass(frozen=True, eq=False)
class LinearHead:
    """The last layer of a classifier: its logits are ``W z + b`` of features z.

    Attributes
    ----------
    features : transformer or None
        From inputs to features; None takes inputs as they are.
    weight, bias : ndarray, shapes (k, p) and (k,)
        W and b.
    """

    features: Any
    weight: np.ndarray
    bias: np.ndarray

    def logits(self, Z: np.ndarray) -> np.ndarray:
        """Logits of features Z (n, p), shape (n, k)."""
        return np.asarray(Z @ self.weight.T + self.bias)

    def energy(self, Z: np.ndarray) -> np.ndarray:
        """Free energy of the logits of features Z (n, p), shape (n,)."""
        return np.asarray(-logsumexp(self.logits(Z), axis=1))


#: Rows on which a head must give the logits of its classifier, and the relative difference.
_ROWS, _TOLERANCE = 64, 1e-3


def linear_head(estimator: Any, X: Any, k: int) -> LinearHead:
    """Return the last layer of a fitted classifier of k classes, checked on rows X (n, d).

    A network has ``linear_head()`` and its own ``transform``; a linear classifier has ``coef_`` and
    ``intercept_``, and its features are the inputs, in a pipeline those of its last step. The one
    margin of two classes stands for the symmetric pair, as in `compute_logits`.
    """
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    last, before = (inner[-1], inner[:-1]) if isinstance(inner, Pipeline) else (inner, None)
    before = before or None  # a pipeline of one step
    if hasattr(last, "linear_head"):
        features, (weight, bias) = estimator, last.linear_head()
    elif hasattr(last, "coef_") and hasattr(last, "intercept_"):
        features = before
        weight = np.asarray(last.coef_, dtype=np.float64)
        bias = np.broadcast_to(last.intercept_, len(weight)).astype(np.float64)
        if len(weight) == 1:
            weight, bias = (np.concatenate([-part / 2, part / 2]) for part in (weight, bias))
    else:
        raise _no_head(estimator, "no linear_head() and no coef_")
    head = LinearHead(features, weight, bias)
    rows = _safe_indexing(X, np.arange(min(X.shape[0], _ROWS)))
    got = head.logits(compute_features(features, rows))
    given = rows if before is None else before.transform(rows)
    expected = compute_logits(last, given, (len(got), k))
    largest = np.abs(expected).max()
    if got.shape != expected.shape or np.abs(got - expected).max() > _TOLERANCE * largest:
        raise _no_head(estimator, "other logits than its weights give")
    return head


def _no_head(estimator: Any, got: str) -> TypeError:
    return TypeError(
        "estimator must be a network with a linear last layer, such as a TorchClassifier, or a "
        "linear classifier whose coef_ gives its logits, such as LogisticRegression, alone or last "
        f"in a pipeline; got {estimator!r} with {got}; use a score of logits or probabilities"
    )


def require_logits(estimator: Any) -> None:
    """Raise TypeError unless a classifier gives logits; None is the default, which does."""
    if estimator is None or hasattr(estimator, "logits"):
        return
    if not hasattr(estimator, "decision_function"):
        raise TypeError(
            "estimator must have a method logits or decision_function, "
            f"got {estimator!r}: probabilities do not determine logits; "
            "use MaxSoftmax, PredictiveEntropy or GEN"
        )


def compute_logits(estimator: Any, X: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return logits of X, of the given shape (n, k).

    The one margin f of a classifier of two classes stands for the logits (-f/2, f/2).
    """
    function = estimator.logits if hasattr(estimator, "logits") else estimator.decision_function
    logits = np.asarray(function(X), dtype=np.float64)
    if logits.ndim == 1:
        logits = np.column_stack([-logits / 2, logits / 2])
    if logits.shape != shape:
        raise ValueError(
            f"logits of the estimator must have shape {shape}, one per class, got {logits.shape}; "
            "give a support vector machine decision_function_shape='ovr'"
        )
    if not np.isfinite(logits).all():
        raise ValueError(
            "logits of the estimator must be finite, got NaN or inf; check its fit and scaling"
        )
    return logits


def take_input_tags(tags: Tags, estimator: Any) -> Tags:
    """Tags of a model that hands inputs on: sparse and missing ones as `estimator` takes them."""
    inner = input_tags(estimator)
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
    return tags


def accepted_arguments(estimator: Any, **offered: Any) -> dict[str, Any]:
    """The arguments that are not None and that ``estimator.fit`` takes."""
    return {
        name: value
        for name, value in offered.items()
        if value is not None and has_fit_parameter(estimator, name)
    }
