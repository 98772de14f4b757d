"""What `fit` accepts: each refusal names the argument, what was expected, what came, the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from .maths.array_namespace import unmasked
from .maths.checks import LARGEST_SQUARED, check_magnitude, is_missing, missing_as_nan, within

#: A row that counts more often leaves nothing of the others: float64 counts no further.
_MOST_COPIES = 2.0**53
_WIDEST = 1e12


class NoAnswer(ValueError):
    """A part of a model cannot compute with the numbers of a row."""


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights (n,) as float64, 0 <= w <= 2**53 with a positive sum, or None if none were given."""
    if sample_weight is None:
        return None
    given = unmasked("sample_weight", sample_weight)
    if isinstance(given, str):
        raise ValueError(
            f"sample_weight must hold a number for each row, got {given!r}; weights by class are "
            "class_weight of the classifier"
        )
    numbers = np.asarray(given, dtype=np.float64).ravel()
    bad = np.flatnonzero(~((numbers >= 0) & (numbers <= _MOST_COPIES)))
    if len(bad):
        raise ValueError(
            f"sample_weight must be >= 0 and at most 2**53, got {float(numbers[bad[0]])!r} at row "
            f"{bad[0]}: a weight counts its row that often; divide all weights by one number"
        )
    weights = _check_sample_weight(given, X, dtype=np.float64)
    if not weights.sum() > 0:
        raise ValueError("sample_weight must have a positive sum, got all zeros")
    return np.asarray(weights)


def indexable(X: Any) -> Any:
    """X with rows that can be taken: array, DataFrame, sparse matrix, array of texts (n,).

    What is missing in it is None or NaN.
    """
    X = missing_as_nan(unmasked("X", X))
    if sparse.issparse(X):
        return X.tocsr()
    _refuse_other_frames(X)
    _refuse_broken_texts(X)
    if _are_texts(X):
        return np.asarray(X, dtype=object)
    X = X if hasattr(X, "shape") and hasattr(X, "__getitem__") else np.asarray(X)
    if len(X.shape) < 2:
        raise ValueError(
            f"X must have shape (n, d), got shape {X.shape}. Reshape your data: X[None, :] for "
            "one input, X[:, None] for one feature"
        )
    if X.shape[0] == 0:
        raise ValueError(
            f"X is empty, shape {X.shape}: 0 sample(s) while a minimum of 1 is required"
        )
    return X


def _are_texts(X: Any) -> bool:
    """Whether X is a list, an array or a series of texts."""
    if hasattr(X, "shape") and len(X.shape) != 1:
        return False
    return hasattr(X, "__len__") and len(X) > 0 and all(isinstance(text, str) for text in X)


def learned_inputs(model: Any, X: Any) -> Any:
    """X to fit on, within float32; `model` learns the width and the column names."""
    X = validate_data(model, indexable(X), skip_check_array=True)
    check_magnitude("X", X)
    return X


def _refuse_other_frames(X: Any) -> None:
    """Raise TypeError for np.matrix, and for any table but a DataFrame of pandas or polars.

    A lazy table, whose rows are still to be read, is refused too.
    """
    if isinstance(X, np.matrix):
        raise TypeError(
            "X must be an array, got np.matrix, which scikit-learn does not support either: give "
            "np.asarray(X)"
        )
    if hasattr(X, "columns") and not (hasattr(X, "iloc") or hasattr(X, "to_series")):
        raise TypeError(
            "X must be an array, a sparse matrix or a DataFrame of pandas or polars, got "
            f"{type(X).__module__.split('.')[0]}'s {type(X).__name__}; convert it first, such as "
            "X.to_pandas(), or X.collect() if it is lazy"
        )


def _refuse_broken_texts(X: Any) -> None:
    """Raise ValueError for one text, and for a list of texts that holds something else."""
    if isinstance(X, str):
        raise ValueError(f"X must be a list of texts, got one text: give [{X[:20]!r}]")
    if not hasattr(X, "__len__") or len(getattr(X, "shape", (1,))) != 1:
        return
    odd = [i for i, text in enumerate(X) if not isinstance(text, str)]
    if odd and len(odd) < len(X):
        raise ValueError(
            f"X must hold texts alone, got {list(X)[odd[0]]!r} at position {odd[0]} (no text in "
            f"{len(odd)} of {len(X)} places); drop such rows, or put '' in their place"
        )


def labelled_inputs(model: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """X and y, consistent with one another; `model` learns the width and the column names."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None"
        )
    X, y = learned_inputs(model, X), label_array(y)
    check_consistent_length(X, y)
    _refuse_objects(y)
    check_classification_targets(y)
    return X, y


def _refuse_objects(y: np.ndarray) -> None:
    """Raise ValueError for labels y (n,) that are objects but no texts."""
    objects = y.tolist() if y.dtype.kind == "O" else []
    others = [i for i, label in enumerate(objects) if not isinstance(label, str | bytes)]
    if others:
        label = objects[others[0]]
        raise ValueError(
            "Unknown label type: y must hold texts, whole numbers, truth values or numpy's "
            f"datetime64, got {type(label).__name__} {label!r} at row {others[0]}, in an array of "
            "objects: give y.astype(str), or y.astype(int) or y.astype(bool) where they are such"
        )


@contextmanager
def explain_wide_weights(sample_weight: Any) -> Iterator[None]:
    """Makes an error of a fit name the weights if they span more than float64 can add."""
    try:
        yield
    except (ValueError, IndexError) as error:
        if sample_weight is None or "sample_weight" in str(error):
            raise
        weights = np.asarray(sample_weight, dtype=np.float64)
        low, high = weights[weights > 0].min(initial=np.inf), weights.max()
        if high <= _WIDEST * low:
            raise
        raise ValueError(
            f"sample_weight spans {low:g} to {high:g}: beside the large ones the small ones vanish "
            f"in every sum, and folds of small ones have none. Give weights within a factor of "
            f"{_WIDEST:g}, or 0 to rows that shall not count. The error: {error}"
        ) from error


def label_array(y: Any) -> np.ndarray:
    """Labels y (n,) as an array, none of them missing."""
    y = unmasked("y", y)
    dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biu" and not y.isna().any():
        # scikit-learn makes floats of pandas' nullable whole numbers, and these end at 2**53.
        y = y.to_numpy(dtype)
    labels = np.asarray(column_or_1d(y, warn=True))
    gaps = [i for i, label in enumerate(labels.tolist()) if is_missing(label)]
    if gaps:
        raise ValueError(
            f"y must hold a label for each row, but it contains NaN, None or another gap in "
            f"{len(gaps)} of {len(labels)} rows, the first at row {gaps[0]}; drop these rows of X "
            "and y"
        )
    objects = labels.tolist() if labels.dtype.kind == "O" else []
    types = sorted({type(label).__name__ for label in objects})
    if "str" in types and len(types) > 1:
        raise ValueError(f"y mixes {' and '.join(types)}: give y.astype(str)")
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    return labels


def training_rows(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """X, y and weights of the rows of positive weight, checked, of two classes or more.

    Last the indices of these rows among the given ones; None if all are there.
    """
    X, y = labelled_inputs(model, X, y)
    weights, kept = check_weights(sample_weight, X), None
    if weights is not None and (weights == 0).any():
        kept = np.flatnonzero(weights > 0)
        X, y, weights = _safe_indexing(X, kept), y[kept], weights[kept]
    check_class_counts(y)
    return X, y, weights, kept


def known_inputs(model: Any, X: Any) -> Any:
    """X with its width and column names checked against those that `model` was fitted with."""
    if _of_known_width(model, X):
        return X
    try:
        return validate_data(model, indexable(X), reset=False, skip_check_array=True)
    except ValueError as error:
        refuse_table(model, error)
        raise


class ColumnTypeError(ValueError):
    """A column of X is of another type than in the fit."""


def refuse_table(model: Any, error: ValueError) -> None:
    """Raise ValueError that names `TableAnswers` if X is not what ``dipedl fit`` made of a table.

    `error` is about the columns of X; other models are none of a table.
    """
    if hasattr(model, "table_"):
        raise ValueError(
            f"X must have the columns that `dipedl fit` made of its table, "
            f"{list(model.feature_names_in_)}; to ask with the columns of the table itself: "
            f"dipedl.adapters.TableAnswers(model).predict(table). {error}"
        ) from error


def require_fitted(model: Any, attribute: str) -> None:
    """``check_is_fitted(model, attribute)``, at no cost where the attribute is there."""
    if not hasattr(model, attribute):
        check_is_fitted(model, attribute)


FLOATS = (np.float64, np.float32)  # features taken as they are, to be converted in parts


def learned_rows(
    model: Any, X: Any, *, reset: bool = True, dtype: Any = np.float64, **checks: Any
) -> np.ndarray:
    """Features X (n, p) to fit on, finite and with squares that can be summed.

    They become float64, or the first of `dtype` unless they are of one of these. With `reset` the
    model learns the width; `checks` are those of ``validate_data``.
    """
    X = unmasked("X", X)
    X = validate_data(model, X, dtype=dtype, reset=reset, ensure_all_finite=False, **checks)
    if not within(X, LARGEST_SQUARED):
        assert_all_finite(X, input_name="X", estimator_name=type(model).__name__)
        check_magnitude("X", X, LARGEST_SQUARED)
    return np.asarray(X)


def known_rows(model: Any, X: Any, dtype: Any = np.float64) -> np.ndarray:
    """Features X (n, p), finite, checked against those that `model` was fitted with.

    They become float64, or the first of `dtype` unless of one of these. A float64 array is spared
    scikit-learn's checks: they take longer than the score of one row.
    """
    if _of_known_width(model, X) and X.dtype == np.float64 and within(X, LARGEST_SQUARED):
        return np.asarray(X)
    return np.asarray(validate_data(model, unmasked("X", X), dtype=dtype, reset=False))


def _of_known_width(model: Any, X: Any) -> bool:
    """Whether X is an array with rows of the fitted width, and names of columns play no part."""
    table = type(X) is np.ndarray and X.ndim == 2 and len(X) > 0
    known = getattr(model, "n_features_in_", None)
    named = hasattr(model, "feature_names_in_")
    return table and X.dtype.kind != "O" and X.shape[1] == known and not named


def rate_in_range(rate: Any, name: str = "false_alarm_rate") -> float:
    """`rate` as a float, strictly between 0 and 1."""
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number):
        raise TypeError(f"{name} must be a number strictly between 0 and 1, got {rate!r}")
    if not 0 < rate < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {rate!r}")
    return float(rate)


def known_classes(estimator: Any, y: np.ndarray) -> np.ndarray:
    """The classes of a frozen classifier, which must know every label of y; else those of y."""
    found = np.unique(y)
    if not isinstance(estimator, FrozenEstimator):
        return found
    if not hasattr(estimator, "classes_"):
        raise ValueError(
            f"the frozen estimator {estimator!r} has no classes_; fit it before it is frozen"
        )
    known = np.asarray(estimator.classes_)
    if of_text(known) != of_text(found):
        raise ValueError(
            f"y holds labels of dtype {found.dtype}, the fitted estimator of {known.dtype}: "
            "give it the labels that it was fitted with"
        )
    unknown = np.setdiff1d(found, known)
    if len(unknown):
        raise ValueError(
            f"y holds labels {unknown.tolist()} that the fitted estimator does not know; "
            f"it knows {known.tolist()}"
        )
    return known


def of_text(labels: np.ndarray) -> bool:
    """Whether the labels are text, in an array of text or of objects."""
    of_objects = labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
    return labels.dtype.kind in "US" or of_objects


def check_class_counts(y: np.ndarray) -> None:
    """Raise ValueError unless y holds two classes or more, each at least twice."""
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least 2 classes, got {len(classes)} class: {classes.tolist()}; "
            "for one class use OODDetector"
        )
    if counts.min() < 2:
        rare = classes[counts < 2].tolist()
        raise ValueError(
            f"y must hold at least 2 samples of each class, got 1 sample of class {rare}; "
            "merge or drop rare classes"
        )


def weight_argument(estimator: Any, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    """The keyword that passes sample weights to ``estimator.fit``, within `weights_passed`."""
    if weights is None or isinstance(estimator, FrozenEstimator):
        return {}
    prefix = ""
    while not _requests_weights(estimator):
        if isinstance(estimator, Pipeline):
            name, estimator = estimator.steps[-1]
            prefix += f"{name}__"
        elif has_fit_parameter(estimator, "sample_weight"):
            break
        elif not _takes_keywords(estimator):
            raise ValueError(
                f"sample_weight was given but {type(estimator).__name__}.fit does not take it; "
                "use another estimator or drop the weights"
            )
        elif isinstance(getattr(estimator, "estimator", None), Pipeline):
            # A search hands on what it is given to the pipeline inside.
            estimator = estimator.estimator
        else:
            break
    return {f"{prefix}sample_weight": weights}


def weights_passed(estimator: Any) -> AbstractContextManager[None]:
    """A block for ``estimator.fit`` in which weights are routed only if a part requests them."""
    context: AbstractContextManager[None] = config_context(
        enable_metadata_routing=_requests_weights(estimator)
    )
    return context


def _requests_weights(estimator: Any) -> bool:
    """Return whether metadata routing is on and a part of the estimator requests weights."""
    if not get_config()["enable_metadata_routing"] or not hasattr(
        estimator, "get_metadata_routing"
    ):
        return False
    return bool(get_routing_for_object(estimator).consumes("fit", ["sample_weight"]))


def _takes_keywords(estimator: Any) -> bool:
    """Return whether ``fit`` takes any keywords, as searches and ensembles of classifiers do."""
    return any(p.kind == p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values())


def check_positive_number(name: str, value: Any) -> None:
    """Raise unless `value` is a finite number > 0."""
    if not isinstance(value, int | float | np.number) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number > 0, got {value!r}")
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be finite and > 0, got {value!r}")


def prior_vector(prior: Any, k: int) -> np.ndarray:
    """The prior concentration as a (k,) array, checked."""
    prior = unmasked("prior", prior)
    try:
        vector = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"prior must be a number or one number per class, got {prior!r}") from error
    if vector.ndim == 0:
        vector = np.full(k, float(vector))
    if vector.shape != (k,):
        raise ValueError(
            f"prior must be a number or one number per class, shape ({k},), got {vector.shape}"
        )
    if not (np.isfinite(vector).all() and (vector > 0).all()):
        raise ValueError(f"prior must be finite and > 0, got {prior!r}")
    return vector
