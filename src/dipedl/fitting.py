"""Fits and calls of classifiers, and what fits have in common: progress and state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import has_fit_parameter

from .inputs import (
    categories,
    empty_columns,
    explain_dtype,
    explain_new_levels,
    refuse_dates,
    refuse_infinity,
    weight_argument,
    weights_passed,
    with_categories,
)
from .maths.arrays import check_simplex, on_simplex
from .maths.seeds import seeded_clone
from .maths.threads import one_thread_if_small

_Method = TypeVar("_Method", bound=Callable[..., Any])
_PROBA = "predict_proba of the estimator"
#: XGBoost has a KeyError for a type of column that it does not know, NumPy a TypeError for dates.
_REFUSALS = (ValueError, KeyError, TypeError)


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A fitted classifier whose probabilities have a column for every class of the model.

    `estimator` may know a part of the `classes` only, as in a fold that lacks one; `template` is
    unfitted, for the folds: frozen or None if the classifier is never fitted again. `known` are the
    labels of its columns where it has learned numbers in their place, `categories` those of the
    columns of a table by `inputs.categories`.
    """

    estimator: Any
    classes: np.ndarray
    template: Any = None
    known: np.ndarray | None = None
    categories: Mapping[int, list[Any]] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, template: Any, classes: np.ndarray, X: Any, y: np.ndarray, w: np.ndarray | None
    ) -> Self:
        """Fit a clone of the template to X (n, d), y (n,) and weights; a frozen one stays."""
        if isinstance(template, FrozenEstimator):
            return cls(template, classes, template, None, categories(X))
        keywords = {} if w is None else weight_argument(template, w)
        estimator, known = fit_classifier(template, X, y, keywords)
        return cls(estimator, classes, template, known, categories(X))

    def refitted(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> FittedClassifier:
        """Return the classifier fitted to these rows; itself if it is frozen."""
        if isinstance(self.template, FrozenEstimator):
            return self
        return FittedClassifier.fit(self.template, self.classes, X, y, w)

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), shape (n, k); zero for a class it has not seen."""
        P = self._estimator_proba(X)
        check_simplex(_PROBA, P)
        return self._align_columns(P)

    def proba_or_none(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities (n, k), and the rows (n,) where the classifier gives none.

        Those that are no probabilities, far from its training data, are equal there.
        """
        P = self._estimator_proba(X)
        none = ~on_simplex(P)
        P[none] = 1 / P.shape[1]
        return self._align_columns(P), none

    def _estimator_proba(self, X: Any) -> np.ndarray:
        """Return a copy of the estimator's probabilities, a column for each class it knows."""
        X = with_categories(X, self.categories) if self.categories else X
        try:
            # A row whose numbers overflow is answered as unknown, without a warning.
            with np.errstate(over="ignore", invalid="ignore"), one_thread_if_small(X):
                P = np.array(self.estimator.predict_proba(X), dtype=np.float64)
        except Exception as error:
            explain_new_levels(error)
            explain_dtype(error, X)
            raise
        shape = X.shape[0], len(self.labels())
        if P.shape != shape:
            raise ValueError(f"{_PROBA} must have shape {shape}, got {P.shape}")
        return P

    def _align_columns(self, P: np.ndarray) -> np.ndarray:
        """P (n, known classes) with rows that sum to one and a column for every class, (n, k)."""
        known, P = self.labels(), np.asarray(P / P.sum(axis=1, keepdims=True))
        if np.array_equal(known, self.classes):
            return P
        aligned = np.zeros((len(P), len(self.classes)))
        aligned[:, self.indices(known)] = P
        return aligned

    def labels(self) -> np.ndarray:
        """The label of each column of the estimator's probabilities."""
        if self.known is not None:
            return self.known
        known = np.asarray(getattr(self.estimator, "classes_", self.classes))
        # It was fitted to the numbers of all classes, see `fit_classifier`.
        coded = np.array_equal(known, np.arange(len(self.classes)))
        return self.classes if coded else known

    def indices(self, y: np.ndarray) -> np.ndarray:
        """Index of each label among the columns, shape (n,)."""
        if not np.isin(y, self.classes).all():
            raise ValueError(
                f"classes_ of the estimator are {np.unique(y).tolist()}, and y holds the labels "
                f"{self.classes.tolist()}: an estimator keeps the labels that it is given"
            )
        order = np.argsort(self.classes)
        return np.asarray(order[np.searchsorted(self.classes, y, sorter=order)])


def clone_classifier(estimator: Any, random_state: Any = None) -> Any:
    """Return a clone of the classifier, checked; None stands for logistic regression."""
    if estimator is None:
        return LogisticRegression(max_iter=1000)
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be a classifier object, got {estimator!r}")
    copy = seeded_clone(estimator, random_state)
    if isinstance(copy, FrozenEstimator):
        require_proba(copy)
    return copy


def require_proba(fitted: Any) -> None:
    """Raise TypeError unless a fitted classifier gives probabilities: some have them only then."""
    if not hasattr(fitted, "predict_proba"):
        raise TypeError(
            f"estimator must have a method predict_proba, got {fitted!r}; wrap it in "
            "CalibratedClassifierCV, or set probability=True, voting='soft' or a final estimator "
            "with probabilities where the classifier has these"
        )


def accepted_arguments(estimator: Any, **offered: Any) -> dict[str, Any]:
    """The arguments that are not None and that ``estimator.fit`` takes."""
    return {
        name: value
        for name, value in offered.items()
        if value is not None and has_fit_parameter(estimator, name)
    }


def fit_classifier(
    template: Any, X: Any, y: np.ndarray, keywords: dict[str, Any]
) -> tuple[Any, np.ndarray | None]:
    """Return a fitted clone of the template, and the labels that it knows by number, if it does.

    Some libraries, XGBoost among them, want labels 0..k-1 and refuse all others.
    """
    labels = None
    with weights_passed(template):
        try:
            fitted = _fit_clone(template, X, y, keywords)
        except _REFUSALS as error:
            labels, numbers = np.unique(y, return_inverse=True)
            if np.array_equal(labels, np.arange(len(labels))):
                raise _add_remedy(error, template, X) from error.__cause__
            try:
                fitted = _fit_clone(template, X, numbers, keywords)
            except _REFUSALS as second:
                # Labels are not what is wrong, or not all: what else is, the second error says.
                raise _add_remedy(second, template, X) from second.__cause__
    require_proba(fitted)
    return fitted, labels


def _fit_clone(template: Any, X: Any, y: np.ndarray, keywords: dict[str, Any]) -> Any:
    try:
        with one_thread_if_small(X):
            return clone(template).fit(X, y, **keywords)
    except Exception as error:
        explain_dtype(error, X)
        raise


def _add_remedy(error: Exception, template: Any, X: Any) -> Exception:
    """The error of a fit, with the remedy for what some classifiers refuse."""
    name, empty = type(template).__name__, empty_columns(X)
    refuse_dates(error, X)
    refuse_infinity(error, X)
    unset = isinstance(error, UnsetMetadataPassedError)
    if unset or "enable_metadata_routing=True" in str(error):
        error.add_note(
            f"{name} hands weights on only to parts that request them, with "
            "sklearn.set_config(enable_metadata_routing=True): call "
            "set_fit_request(sample_weight=True) on the classifier inside; where that is scored "
            "too, as in RFECV and searches, give "
            "scoring=make_scorer(accuracy_score).set_score_request(sample_weight=True)"
        )
    if "could not convert string" in str(error):
        error.add_note(
            f"{name} takes no text: give a pipeline that encodes it, as "
            "make_pipeline(ColumnTransformer(...), LogisticRegression()), or columns of dtype "
            "category to a classifier that takes these"
        )
    if empty:
        error.add_note(
            f"X holds nothing but gaps in the columns {empty}, which {name} may not take: drop them"
        )
    return error


def take_input_tags(tags: Tags, estimator: Any) -> Tags:
    """Tags of a model that hands inputs on: sparse and missing ones as `estimator` takes them."""
    if not hasattr(estimator, "__sklearn_tags__"):
        return tags
    inner = get_tags(estimator).input_tags
    tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
    return tags


def sparse_by_default(tags: Tags, features: Any, estimator: Any = None) -> Tags:
    """Tags of a model whose default `features` take sparse inputs, and whose classifier may."""
    classifier = LogisticRegression() if estimator is None else estimator
    known = hasattr(classifier, "__sklearn_tags__") and not isinstance(classifier, type)
    tags.input_tags.sparse = features is None and known and get_tags(classifier).input_tags.sparse
    return tags


def explain_fold(error: Exception, y: np.ndarray, n: int) -> None:
    """Add to an error of a fit to rows of labels y (m,) that these are a fold of n rows."""
    classes, counts = np.unique(y, return_counts=True)
    error.add_note(
        f"this was a fit to one fold, {len(y)} of {n} rows, {counts.min()} of class "
        f"{classes[counts.argmin()].tolist()!r}: cv holds the others out. Give settings that fewer "
        "rows allow too, such as fewer folds to a classifier that cross-validates by itself; or "
        "give held-out rows as fit(X, y, calibration=(X_held, y_held)), by which nothing is fitted "
        "again"
    )


class Stopwatch:
    """Print what was done and how long it took since the last line; silent if not `verbose`."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.last = time.perf_counter()

    def say(self, done: str) -> None:
        """Print one line, and count the seconds of the next one from now."""
        now = time.perf_counter()
        if self.verbose:
            print(f"[dipedl] {done}: {now - self.last:.2f} s", flush=True)
        self.last = now


def atomic(fit: _Method) -> _Method:
    """Return the fit run on a copy of the model, which takes the new state over at once.

    Another thread sees the model of before or that of after, and an error leaves it as it was.
    Parameters that it sets meanwhile stay set. Of two fits at once the later to end counts.
    """

    @wraps(fit)
    def fit_copy(model: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(model))
        learned = object.__new__(type(model))
        vars(learned).update(before)
        fit(learned, *args, **kwargs)
        meanwhile = {
            name: value
            for name, value in vars(model).items()
            if not name.endswith("_") and value is not before.get(name, value)
        }
        model.__dict__ = vars(learned) | meanwhile
        return model

    return cast(_Method, fit_copy)
