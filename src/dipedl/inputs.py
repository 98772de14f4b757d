"""Inputs: rows as the user gave them, checked at the door, and handed to classifier and features.

With the labels and weights that come with them. Each error names the argument, what was expected,
what came, and the remedy; one of a classifier or of features gets the row, the column and the
remedy added.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2 import dependencies
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import InputTags, _safe_indexing, assert_all_finite, get_tags
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)
from threadpoolctl import ThreadpoolController

from .columns import (
    LEVEL,
    NO_DATES,
    Inputs,
    as_numbers,
    categories,
    column_names,
    date_columns,
    entry_kinds,
    is_category,
    is_frame,
    is_pandas,
    missing_entries,
    named_columns,
    replace_columns,
    with_categories,
)
from .maths.arrays import (
    CORRECT,
    LARGEST_SQUARED,
    TOLERANCE,
    check_magnitude,
    check_simplex,
    drop_mask,
    float_array,
    places,
    within,
)
from .maths.seeds import clone_with_seed
from .protocols import optional
from .writing.finding import warn_caller

#: A row that counts more often leaves nothing of the others: float64 counts no further.
_MOST_COPIES = 2.0**53
#: Weights further apart than this factor are refused.
_WIDEST = 1e12
#: What scikit-learn says of numbers that float32 or float64 cannot hold.
TOO_LARGE = "too large for dtype"
#: In the errors of its encoders for levels that no row of the fit had.
NEW_LEVEL = "Found unknown categories"
#: What PyTorch calls a dtype of NumPy.
_OF_TORCH = {"double": "float64", "float": "float32", "half": "float16", "long": "int64"}
_PROBA = "predict_proba of the estimator"
#: Default concentration of the prior for each class, by Jeffreys; prior of the class frequencies.
PRIOR, EMPIRICAL = 0.5, "empirical"
#: XGBoost has a KeyError for a type of column that it does not know, NumPy a TypeError for dates.
_REFUSALS = (ValueError, KeyError, TypeError)
#: Up to so many entries a classifier is kept on one thread. So are products of rows of up to so
#: many features, but for those of so few rows that setting the threads would take longer.
_FEW_ENTRIES, _FEW_FEATURES, _FEW_ROWS = 1 << 17, 256, 8
_IMPUTE = (
    "impute it: fit with estimator=make_pipeline(SimpleImputer(add_indicator=True), "
    "StandardScaler(), <classifier>)"
)
_ABOUT_DATES = re.compile("date|time", re.IGNORECASE)


class NotComputableError(ValueError):
    """A part of a model cannot compute with the numbers of a row."""


def check_weights(sample_weight: Any, X: Any, name: str = "sample_weight") -> np.ndarray | None:
    """Return weights (n,) as float64, 0 <= w <= 2**53 with a positive sum; None for None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        raise ValueError(
            f"{name} must hold a number for each row, got {sample_weight!r}; weights by class are "
            "class_weight of the classifier"
        )
    numbers = float_array(name, sample_weight)
    weights = np.full(X.shape[:1], numbers) if numbers.ndim == 0 else numbers
    if weights.shape != X.shape[:1]:
        raise ValueError(
            f"{name} must have a number for each row, shape {X.shape[:1]}, got {weights.shape}"
        )
    bad = np.flatnonzero(~((weights >= 0) & (weights <= _MOST_COPIES)))
    if len(bad):
        raise ValueError(
            f"{name} must be >= 0 and at most 2**53, got {float(weights[bad[0]])!r} at row "
            f"{bad[0]}: a weight counts its row that often; divide all weights by one number"
        )
    if not weights.sum() > 0:
        raise ValueError(f"{name} must have a positive sum, got all zeros")
    return weights


def validate_rows(X: Any) -> Any:
    """Return X as an array, DataFrame, sparse matrix or array of texts (n,), gaps as None or NaN.

    A table of Arrow becomes a DataFrame of pandas. Raises TypeError or ValueError for anything
    else, such as a lazy table, and for X without rows.
    """
    X = _missing_as_nan(drop_mask("X", from_arrow(X)))
    if sparse.issparse(X):
        return X.tocsr()
    if isinstance(X, np.matrix):
        raise TypeError(
            "X must be an array, got np.matrix, which scikit-learn does not support either: give "
            "np.asarray(X)"
        )
    if hasattr(X, "columns") and not is_frame(X):
        raise TypeError(
            "X must be an array, a sparse matrix or a table of pandas, polars or Arrow, got "
            f"{type(X).__module__.split('.')[0]}'s {type(X).__name__}; convert it first, such as "
            "X.to_pandas(), or X.collect() if it is lazy"
        )
    check_column_names(X)
    if isinstance(X, str):
        raise ValueError(f"X must be a list of texts, got one text: give [{X[:20]!r}]")
    if hasattr(X, "__len__") and len(getattr(X, "shape", (1,))) == 1:
        texts = [isinstance(row, str) for row in X]
        if any(texts) and not all(texts):
            place = texts.index(False)
            raise ValueError(
                f"X must hold texts alone, got {list(X)[place]!r} at position {place} (no text in "
                f"{texts.count(False)} of {len(texts)} places); drop such rows, or put '' in their "
                "place"
            )
        if any(texts):
            return np.asarray(X, dtype=object)
    # Tensors of PyTorch too: what takes rows one by one knows arrays and tables.
    X = X if isinstance(X, np.ndarray) or is_frame(X) else _as_array(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: X must hold real numbers, got {X.dtype}; give X.real and "
            "X.imag as columns"
        )
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


def _as_array(rows: Any) -> np.ndarray:
    """Return rows as an array; of objects where NumPy would make texts of numbers beside texts."""
    array = np.asarray(rows)
    if array.dtype.kind != "U":
        return array
    objects = np.asarray(rows, dtype=object)
    return (
        array
        if all(isinstance(v, str) for v in objects.ravel().tolist())
        else _plain_objects(objects)
    )


def check_column_names(X: Any) -> None:
    """Raise ValueError if X is a DataFrame of pandas with two columns of one name."""
    if is_pandas(X) and X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise ValueError(
            f"X has more than one column {twice!r}: drop or rename all others of that name, as "
            "X.loc[:, ~X.columns.duplicated()] does"
        )


def from_arrow(X: Any) -> Any:
    """Return a table of Arrow as a DataFrame of pandas, which scikit-learn's parts take; else X."""
    if not dependencies.is_pyarrow_table(X):
        return X
    optional("pandas", "a table of Arrow as X")
    return X.to_pandas()


def _missing_as_nan(X: Any) -> Any:
    """Return X with NaN for pandas.NA and dense columns, as most libraries need.

    Texts of NumPy among objects become those of Python, as cards and errors show them. Columns of a
    DataFrame of pandas with gaps become float64 if they are numbers or booleans of its nullable or
    Arrow types, and objects if they are text. Decimals of Arrow become float64, and sparse columns
    dense: scikit-learn would take a frame of nothing else for a sparse matrix.
    """
    if isinstance(X, np.ndarray):
        return _plain_objects(X) if X.dtype.kind == "O" else X
    if not is_pandas(X):
        return X
    # Numbers of NumPy have NaN already, and most columns are such.
    plain = [isinstance(t, np.dtype) and t.kind in "biuf" for t in X.dtypes]
    columns = ((j, _column_with_nan(X.iloc[:, j])) for j, known in enumerate(plain) if not known)
    changed = {j: values for j, values in columns if values is not None}
    return replace_columns(X, changed)


def _column_with_nan(values: Any) -> np.ndarray | None:
    """Return a column of pandas as a dense array with NaN for gaps; None if it needs no change."""
    if isinstance(values.dtype, np.dtype):
        plain = values.to_numpy() if values.dtype.kind == "O" else None
        changed = None if plain is None else _plain_objects(plain)
        return None if changed is plain else changed
    if hasattr(values, "sparse"):
        return np.asarray(values.sparse.to_dense())
    dtype = nw.from_native(values, series_only=True).dtype
    text = dtype == nw.String or (dtype == nw.Categorical and not hasattr(values, "cat"))
    gaps = (text or dtype == nw.Boolean or dtype.is_numeric()) and values.hasnans
    if not gaps and dtype != nw.Decimal:
        return None
    return np.asarray(values.to_numpy(dtype=object if text else np.float64, na_value=np.nan))


def _plain_objects(values: np.ndarray) -> np.ndarray:
    """Return objects with NaN for pandas.NA and str for NumPy's texts; the same without these."""
    entries, pandas = values.ravel().tolist(), dependencies.get_pandas()
    gap = None if pandas is None else type(pandas.NA)
    if {gap, np.str_}.isdisjoint(map(type, entries)):
        return values
    plain = [np.nan if type(v) is gap else str(v) if type(v) is np.str_ else v for v in entries]
    return np.fromiter(plain, dtype=object, count=len(plain)).reshape(values.shape)


def validate_fit_inputs(model: Any, X: Any) -> Any:
    """Return X to fit on, within float32; `model` learns the width and the column names."""
    X = validate_data(model, validate_rows(X), skip_check_array=True)
    check_magnitude("X", X)
    return X


def validate_inputs_and_labels(model: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X and y, of one length; `model` learns the width and the column names."""
    if y is None:
        raise ValueError(
            f"{type(model).__name__} requires y to be passed, but the target y is None"
        )
    X, y = validate_fit_inputs(model, X), validate_labels(y)
    check_consistent_length(X, y)
    check_classification_targets(y)
    return X, y


def validate_labels(y: Any) -> np.ndarray:
    """Return labels y (n,) as an array, none of them missing."""
    y = drop_mask("y", y)
    dtype = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "biu" and not y.isna().any():
        # scikit-learn makes floats of pandas' nullable whole numbers, and these end at 2**53.
        y = y.to_numpy(dtype)
    labels = np.asarray(column_or_1d(y, warn=True))
    gaps = np.flatnonzero(missing_entries(labels))
    if len(gaps):
        raise ValueError(
            f"y must hold a label for each row, but it contains NaN, None or another gap in "
            f"{len(gaps)} of {len(labels)} rows, the first at row {gaps[0]}; drop these rows of X "
            "and y"
        )
    objects = labels.tolist() if labels.dtype.kind == "O" else []
    others = [i for i, label in enumerate(objects) if not isinstance(label, str | bytes)]
    if others:
        label = objects[others[0]]
        raise ValueError(
            "Unknown label type: y must hold texts, whole numbers, truth values or numpy's "
            f"datetime64, got {type(label).__name__} {label!r} at row {others[0]}, in an array of "
            "objects: give y.astype(str), or y.astype(int) or y.astype(bool) where they are such"
        )
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    return labels


def validate_training_rows(
    model: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Return what `select_weighted_rows` gives of the rows of a fit, of two classes or more."""
    X, y = validate_inputs_and_labels(model, X, y)
    X, y, weights, groups, rows = select_weighted_rows(X, y, sample_weight, groups)
    if weights is not None and weights.max() > _WIDEST * weights.min():
        raise ValueError(
            f"sample_weight spans {weights.min():g} to {weights.max():g}: beside the large ones "
            "the small ones vanish in every sum, and folds of small ones have none. Give weights "
            f"within a factor of {_WIDEST:g}, or 0 to rows that shall not count"
        )
    check_class_counts(y)
    return X, y, weights, groups, rows


def select_weighted_rows(
    X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[Any, Any, np.ndarray | None, np.ndarray | None, np.ndarray | None]:
    """Return X, y (None without labels), weights and groups, checked, of rows of positive weight.

    Last the indices of these rows among the given ones; None if all are there.
    """
    n, weights, rows = X.shape[0], check_weights(sample_weight, X), None
    if weights is not None and (weights == 0).any():
        rows = np.flatnonzero(weights > 0)
        X, y, weights = _safe_indexing(X, rows), None if y is None else y[rows], weights[rows]
    return X, y, weights, validate_groups(groups, n, rows), rows


def validate_groups(groups: Any, n: int, rows: np.ndarray | None = None) -> np.ndarray | None:
    """Return a number for the group of each of n rows, or of some of them; None for None.

    The numbers follow the sorted names of the groups, not the order of the rows.
    """
    if groups is None:
        return None
    names = group_names(groups, n)
    distinct, numbers = np.unique(names if rows is None else names[rows], return_inverse=True)
    if not 1 < len(distinct) < len(numbers):
        what = "one group" if len(distinct) == 1 else "a group of its own for each"
        raise ValueError(
            f"groups must be shared by rows, such as those of a person, a device or a site, and "
            f"there must be two or more, got {what} of {len(numbers)} rows; leave groups out if "
            "rows do not belong together"
        )
    return np.asarray(numbers)


def group_names(groups: Any, n: int) -> np.ndarray:
    """Return the name of the group of each of n rows, shape (n,)."""
    if isinstance(groups, str):
        raise ValueError(
            f"groups must hold a group for each of the {n} rows, got the text {groups!r}; give the "
            f"column itself, such as X[{groups!r}]"
        )
    names = np.asarray(column_or_1d(groups, warn=False))
    if len(names) != n:
        raise ValueError(f"groups must hold a group for each of the {n} rows, got {len(names)}")
    gaps = np.flatnonzero(missing_entries(names))
    if len(gaps):
        raise ValueError(
            f"groups must hold a group for each row, but {len(gaps)} of {n} have none, the first "
            f"is row {gaps[0]}; give these rows a group, or drop them"
        )
    return names.astype(str) if names.dtype.kind == "O" else names


def validate_inputs(model: Any, X: Any, inputs: Inputs | None = None) -> Any:
    """Return X, checked against the inputs of the fit: width, names and types of its columns.

    This is the one check of new rows; what they are handed to takes them as they are. `inputs` are
    those of the fit, if their columns are known.
    """
    X = encode_table_rows(model, X)
    if not _has_known_width(model, X):
        X = validate_rows(X)
        if inputs is not None and len(X.shape) > 2:
            raise ValueError(
                f"X must have shape (n, {len(inputs.names)}), as in fit, got shape {X.shape}; give "
                "one row of numbers for each input, such as X.reshape(len(X), -1)"
            )
        X = validate_data(model, X, reset=False, skip_check_array=True)
    numbers = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
    if inputs is not None and (inputs.levels or not numbers):
        X = inputs.restore_gaps(X)
        inputs.refuse_other_types(X)
    return X


def validate_calibration_rows(
    model: Any, calibration: Any, classes: np.ndarray, inputs: Inputs | None = None
) -> tuple[Any, np.ndarray | None]:
    """Return held-out inputs (m, d) and labels, checked against the fitted inputs and classes.

    `inputs` as of `validate_inputs`.
    """
    if not (isinstance(calibration, tuple | list) and len(calibration) == 2):
        raise TypeError(
            f"calibration must be a pair (X, y) of held-out rows, got {type(calibration).__name__}"
        )
    try:
        X, y = validate_inputs(model, calibration[0], inputs), calibration[1]
        check_magnitude("X", X)
        y = None if y is None else validate_labels(y)
        check_consistent_length(X, y)
    except ValueError as error:
        raise ValueError(f"calibration rows: {error}") from None
    if X.shape[0] < 2:
        raise ValueError(
            "calibration rows: 1 row cannot show how scores vary; give 100 or more, or leave "
            "calibration out and the rows in fit, which then holds rows out by itself"
        )
    if y is None:
        return X, None
    _refuse_other_labels("y of the calibration rows", y, "fit", classes)
    return X, y


def encode_table_rows(model: Any, X: Any) -> Any:
    """Return rows of a user's table as inputs of a model that ``dipedl fit`` made of such a table.

    Inputs, and rows for any other model, come back as they are.
    """
    encode = getattr(model, "encode_rows_", None)
    return X if encode is None else encode(model, X)


def require_fitted(model: Any, attribute: str) -> None:
    """``check_is_fitted(model, attribute)``, at no cost where the attribute is there."""
    if not hasattr(model, attribute):
        check_is_fitted(model, attribute)


FLOATS = (np.float64, np.float32)  # features taken as they are, to be converted in parts


def validate_fit_features(
    model: Any, X: Any, *, reset: bool = True, dtype: Any = np.float64, **checks: Any
) -> np.ndarray:
    """Features X (n, p) to fit on, finite and with squares that can be summed.

    They become float64, or the first of `dtype` unless they are of one of these. With `reset` the
    model learns the width; `checks` are those of ``validate_data``.
    """
    X = drop_mask("X", X)
    X = validate_data(model, X, dtype=dtype, reset=reset, ensure_all_finite=False, **checks)
    if not within(X, LARGEST_SQUARED):
        assert_all_finite(X, input_name="X", estimator_name=type(model).__name__)
        check_magnitude("X", X, LARGEST_SQUARED)
    return np.asarray(X)


def validate_features(model: Any, X: Any, dtype: Any = np.float64) -> np.ndarray:
    """Features X (n, p), finite, checked against those that `model` was fitted with.

    They become float64, or the first of `dtype` unless of one of these. A float64 array is spared
    scikit-learn's checks: they take longer than the score of one row.
    """
    if _has_known_width(model, X) and X.dtype == np.float64 and within(X, LARGEST_SQUARED):
        return np.asarray(X)
    return np.asarray(validate_data(model, drop_mask("X", X), dtype=dtype, reset=False))


def _has_known_width(model: Any, X: Any) -> bool:
    """Return whether X is an array of the fitted width, and the fit had no names of columns."""
    table = type(X) is np.ndarray and X.ndim == 2 and len(X) > 0
    known = getattr(model, "n_features_in_", None)
    named = hasattr(model, "feature_names_in_")
    return table and X.dtype.kind in "biuf" and X.shape[1] == known and not named


def known_classes(estimator: Any, y: np.ndarray) -> np.ndarray:
    """Return the classes of a frozen classifier, which must know all of y; else those of y."""
    classes = np.unique(y)
    if not isinstance(estimator, FrozenEstimator):
        return classes
    if not hasattr(estimator, "classes_"):
        raise ValueError(
            f"the frozen estimator {estimator!r} has no classes_; fit it before it is frozen"
        )
    known = np.asarray(estimator.classes_)
    _refuse_other_labels("y", classes, "the fitted estimator", known)
    return known


def _refuse_other_labels(name: str, y: np.ndarray, owner: str, known: np.ndarray) -> None:
    """Raise ValueError if labels y (n,) are of another type than the `known` ones, or others."""
    if are_texts(y) != are_texts(known):
        raise ValueError(
            f"{name} holds labels of dtype {y.dtype}, {owner} those of dtype {known.dtype}: give "
            "both the same labels"
        )
    unknown = np.setdiff1d(y, known)
    if len(unknown):
        raise ValueError(
            f"{name} holds labels {unknown.tolist()} that {owner} does not know; it knows "
            f"{known.tolist()}: drop those rows, or fit with them"
        )


def are_texts(labels: np.ndarray) -> bool:
    """Return whether the labels are text, in an array of text or of objects."""
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


def weight_argument(estimator: Any, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return the keyword that passes weights to ``estimator.fit``, within `route_weights`."""
    prefix = ""
    while not _requests_weights(estimator):
        if isinstance(estimator, Pipeline):
            name, estimator = estimator.steps[-1]
            prefix += f"{name}__"
        elif has_fit_parameter(estimator, "sample_weight"):
            break
        # Searches and ensembles of classifiers take any keywords.
        elif all(p.kind != p.VAR_KEYWORD for p in signature(estimator.fit).parameters.values()):
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


def route_weights(estimator: Any) -> AbstractContextManager[None]:
    """Return a block for ``estimator.fit`` that routes weights only if a part requests them."""
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


@dataclass(frozen=True, eq=False)
class FittedClassifier:
    """A fitted classifier whose probabilities have a column for every class of the model.

    `estimator` may know a part of the `classes` only, as in a fold that lacks one; `template` is
    unfitted, for the folds: frozen or None if the classifier is never fitted again. `known` are the
    labels of its columns where it has learned numbers in their place, `categories` those of the
    columns of a table by `categories`.
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

    def proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), shape (n, k); zero for a class it has not seen."""
        P, none = self._estimator_proba(X)
        if none.any():
            check_simplex(_PROBA, P)
        return self._align_columns(P)

    def proba_or_none(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities (n, k), and the rows (n,) where the classifier gives none.

        Those that are no probabilities, far from its training data, are equal there.
        """
        P, none = self._estimator_proba(X)
        P[none] = 1 / P.shape[1]
        return self._align_columns(P), none

    def _estimator_proba(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return a copy of the estimator's probabilities, a column for each class it knows.

        And the rows (n,) of them that are no probability vectors.
        """
        X = with_categories(X, self.categories) if self.categories else X
        # A row whose numbers overflow is answered as unknown, without a warning.
        with np.errstate(over="ignore", invalid="ignore"):
            with add_remedies(self.estimator, X), one_thread(X):
                P = np.array(self.estimator.predict_proba(X), dtype=np.float64)
            shape = X.shape[0], len(self.labels())
            if P.shape != shape:
                raise ValueError(f"{_PROBA} must have shape {shape}, got {P.shape}")
            return P, ~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) <= TOLERANCE))

    def _align_columns(self, P: np.ndarray) -> np.ndarray:
        """Return P (n, known classes) with rows of sum one and a column for every class, (n, k)."""
        known, P = self.labels(), np.asarray(P / P.sum(axis=1, keepdims=True))
        if known is self.classes:
            return P
        aligned = np.zeros((len(P), len(self.classes)))
        aligned[:, self.indices(known)] = P
        return aligned

    def labels(self) -> np.ndarray:
        """Return the label of each column of the estimator's probabilities."""
        if self.known is not None:
            return self.known
        known = np.asarray(getattr(self.estimator, "classes_", self.classes))
        # Or it was fitted to the numbers of all classes, see `fit_classifier`.
        of_all = self.classes, np.arange(len(self.classes))
        return self.classes if any(np.array_equal(known, own) for own in of_all) else known

    def indices(self, y: np.ndarray) -> np.ndarray:
        """Return the index of each label among the columns, shape (n,)."""
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
    bare = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if isinstance(bare, type) or not (hasattr(bare, "fit") or hasattr(bare, "predict_proba")):
        raise TypeError(
            f"estimator must be a classifier object, got {bare!r}; give one that has fit and "
            "predict_proba: for a Booster its XGBClassifier or LGBMClassifier, for a network of "
            "PyTorch a TorchClassifier, or DIPModule in place of this model, for all else a class "
            "of your own"
        )
    copy = clone_with_seed(estimator, random_state)
    if isinstance(copy, FrozenEstimator):
        require_proba(copy)
    return copy


def input_tags(estimator: Any) -> InputTags:
    """Return the inputs that an estimator takes; the usual ones where scikit-learn knows it not."""
    try:
        return get_tags(estimator).input_tags
    except (AttributeError, TypeError):
        return InputTags()


def require_proba(fitted: Any) -> None:
    """Raise TypeError unless a fitted classifier gives probabilities: some have them only then."""
    if not hasattr(fitted, "predict_proba"):
        raise TypeError(
            f"estimator must have a method predict_proba, got {fitted!r}; wrap it in "
            "CalibratedClassifierCV, or set probability=True, voting='soft' or a final estimator "
            "with probabilities where the classifier has these"
        )


def fit_classifier(
    template: Any, X: Any, y: np.ndarray, keywords: dict[str, Any]
) -> tuple[Any, np.ndarray | None]:
    """Return a fitted clone of the template, and the labels that it knows by number, if it does.

    Some libraries, XGBoost among them, want labels 0..k-1 and refuse all others.
    """
    labels = None
    with route_weights(template):
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
    with add_remedies(template, X), one_thread(X):
        return clone(template).fit(X, y, **keywords)


def _add_remedy(error: Exception, template: Any, X: Any) -> Exception:
    """Return the error of a fit, with the remedy for what some classifiers refuse."""
    name = type(template).__name__
    parts = named_columns(X)
    levels = [name for name, part in parts if LEVEL in entry_kinds(part) or is_category(part)]
    empty = [name for name, part in parts if missing_entries(part).all()]
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
    if levels:
        error.add_note(
            f"X holds text or categories in the columns {levels}, which {name} may not take: give "
            "a pipeline that encodes them, as "
            "make_pipeline(ColumnTransformer(...), LogisticRegression()), or columns of dtype "
            "category to a classifier that takes these"
        )
    if empty:
        error.add_note(
            f"X holds nothing but gaps in the columns {empty}, which {name} may not take: drop them"
        )
    return error


def one_thread(X: Any, *, blas: bool = False) -> AbstractContextManager[object]:
    """Keep BLAS and OpenMP on one thread around a fit to few rows X (n, d), or their answers.

    Threads of OpenMP wait for one another by spinning: where another process has the core, a fit of
    boosted trees to some hundred rows takes a hundred times as long. A number of threads that an
    estimator was given, as ``n_jobs`` of XGBoost, is kept. With `blas` BLAS alone, around products
    of rows of few features: these take less time than to wake its threads.
    """
    small = (
        len(X) > _FEW_ROWS and X.shape[1] <= _FEW_FEATURES
        if blas
        else math.prod(X.shape) <= _FEW_ENTRIES
    )
    controller = _thread_pools(blas, len(sys.modules)) if small else None
    if controller is None or all(one.num_threads == 1 for one in controller.lib_controllers):
        return nullcontext()
    limits: AbstractContextManager[object] = controller.limit(limits=1)
    return limits


@lru_cache(maxsize=2)
def _thread_pools(blas: bool, modules: int) -> ThreadpoolController:
    # Again when more modules were imported, which may have brought libraries of their own.
    controller = ThreadpoolController()
    return controller.select(user_api="blas") if blas else controller


def compute_features(features: Any, X: Any) -> np.ndarray:
    """Features of X as a finite float64 array (n, p); an error names the first bad entry."""
    if sparse.issparse(X) and isinstance(features, StandardScaler):
        raise TypeError(
            "X is sparse, and the inputs of the fit were dense: pass X.toarray(), or give fit "
            "sparse inputs too"
        )
    Z = X if features is None else transform_rows(features, X)
    if sparse.issparse(Z):
        raise TypeError(
            "X or its features are sparse, and densities need dense rows; "
            "pass X.toarray() or features=TruncatedSVD(50)"
        )
    if np.iscomplexobj(Z):
        raise ValueError("Complex data not supported: features of X must be real numbers")
    try:
        Z = np.asarray(Z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        for name in date_columns(Z).values():
            raise ValueError(
                f"X or its features have dates in column {name!r}{NO_DATES}"
            ) from error
        raise type(error)(
            f"X or its features must be numbers: {error}; impute what is missing and encode text, "
            "in a pipeline given as estimator or by the transformer given as features"
        ) from error
    if Z.ndim != 2:
        raise ValueError(f"features of X must have shape (n, p), got {Z.shape}. Reshape your data")
    if len(Z) != X.shape[0]:
        raise ValueError(
            f"features must give a row for each of the {X.shape[0]} rows of X, got {len(Z)}: a "
            "transformer may drop none; drop rows of X and y before fit"
        )
    if len(Z) == 0 or Z.shape[1] == 0:
        raise ValueError(
            f"X must give {len(Z)} sample(s) and {Z.shape[1]} feature(s) (shape={Z.shape}) "
            "while a minimum of 1 is required; X is empty, or features, or the steps of the "
            "pipeline given as estimator, keep no column: have them keep one"
        )
    bad = ~np.isfinite(Z)
    if bad.any():
        numbers = as_numbers(X)
        if numbers is not None:
            # A finite row that overflows may be answered as unknown: others are named first.
            own = bad & ~np.isfinite(numbers).reshape(len(Z), -1).all(axis=1, keepdims=True)
            bad = own if own.any() else bad
        row, j = np.argwhere(bad)[0]
        got, remedy = ("NaN", _IMPUTE) if np.isnan(Z[row, j]) else (Z[row, j], CORRECT)
        # What is standardised column by column has the names of its columns.
        by_column = features is None or type(features) is StandardScaler
        name = repr(column_names(X)[j]) if by_column and is_frame(X) else j
        raise NotComputableError(
            f"X or its features must be finite, got {got} at row {row}, column {name}; {remedy}"
        )
    return Z


def transform_rows(features: Any, X: Any) -> Any:
    """``features.transform(X)``; of what standardises numbers without scikit-learn's checks.

    These take longer than a row's prediction.
    """
    if type(features) is StandardScaler and features.with_mean and features.with_std:
        values = X if isinstance(X, np.ndarray) or not is_frame(X) else X.to_numpy()
        plain = type(values) is np.ndarray and values.dtype == np.float64 and len(values) > 0
        if plain and values.shape[1:] == (features.n_features_in_,):
            with np.errstate(over="ignore", invalid="ignore"):
                return (values - features.mean_) / features.scale_
    quiet = np.errstate(over="ignore", invalid="ignore")
    with add_remedies(features, X, transform=True), quiet:
        return features.transform(X)


def prior_of_rows(prior: Any, classes: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return the prior concentration of a fit as a (k,) array, checked.

    `totals` (k,) are the rows of each of the `classes` (sums of their weights): "empirical" stands
    for their shares of k / 2.
    """
    if not is_empirical(prior):
        return prior_vector(prior, len(classes))
    if not (totals > 0).all():
        raise ValueError(
            f"prior={EMPIRICAL!r} needs rows of every class, and {(totals <= 0).sum()} of "
            f"{len(classes)} classes have none, or weight zero alone: give prior a number for each "
            "class"
        )
    shares = totals / totals.sum()
    if (few := totals < 1).any():
        warn_caller(
            f"prior={EMPIRICAL!r} gives class {classes[few].tolist()} probability "
            f"{shares[few].min():.1g} where nothing is known, as its rows weigh "
            f"{totals[few].min():.1g} in all. sample_weight counts rows: give each class 1 in all "
            "at least, or prior a number for each class"
        )
    return np.asarray(len(classes) * PRIOR * shares)


def is_empirical(prior: Any) -> bool:
    """Return whether a prior stands for the frequencies of the classes."""
    return isinstance(prior, str) and prior == EMPIRICAL


def prior_vector(prior: Any, k: int) -> np.ndarray:
    """Return the prior concentration, numbers, as a (k,) array, checked."""
    prior = drop_mask("prior", prior)
    if is_empirical(prior):
        raise ValueError(
            f"prior={EMPIRICAL!r} needs the rows of a fit, and none come in here: give a "
            "number for each class"
        )
    try:
        vector = np.asarray(prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"prior must be a number or one number per class, or {EMPIRICAL!r}, got {prior!r}"
        ) from error
    if vector.ndim == 0:
        vector = np.full(k, float(vector))
    if vector.shape != (k,):
        raise ValueError(
            f"prior must be a number or one number per class, shape ({k},), got {vector.shape}"
        )
    if not (np.isfinite(vector).all() and (vector > 0).all()):
        raise ValueError(f"prior must be finite and > 0, got {prior!r}")
    return vector


def class_totals(y: np.ndarray, w: np.ndarray | None, classes: np.ndarray) -> np.ndarray:
    """Return the rows of each class, or the sum of their weights, shape (k,)."""
    counts = np.ones(len(y)) if w is None else w
    return np.array([counts[y == label].sum() for label in classes], dtype=np.float64)


@contextmanager
def add_remedies(part: Any, X: Any, *, transform: bool = False) -> Iterator[None]:
    """Add a remedy to an error of a classifier, or of features that `transform` rows X (n, d)."""
    try:
        yield
    except Exception as error:
        names = getattr(part, "feature_names_in_", None)
        # Numbers out of range are what is wrong with an array; else that it has no names.
        sound = isinstance(X, np.ndarray) and (X.dtype.kind in "OUS" or within(X, LARGEST_SQUARED))
        if names is not None and sound:
            raise ValueError(
                f"X must be a table with the columns {list(names)}, as in fit, got an array: give "
                f"a DataFrame with these names. The error: {error}"
            ) from error
        if "unknown categories" in str(error):
            error.add_note(
                "features, or the steps of the pipeline given as estimator, refuse rows that they "
                "were not fitted on; let them pass, such as OneHotEncoder(handle_unknown='ignore')"
            )
        elif "category not in the training set" in str(error):
            error.add_note(
                "XGBoost refuses new categories of polars: give it pandas, with which they count "
                "as missing, and drop columns of which hardly a value comes twice"
            )
        elif transform:
            error.add_note(
                "this is an error of transform, of features or of the steps of the pipeline given "
                "as estimator: rows are held out in fit, and new ones come in prediction, so it "
                "must take any rows, of any number"
            )
        words = re.findall("[a-z]+", str(error).lower())
        known, dtype = {_OF_TORCH[w] for w in words if w in _OF_TORCH}, str(getattr(X, "dtype", ""))
        other = known - {dtype}
        # A network computes in another dtype than that of X.
        if dtype in known and len(other) == 1 and "float" in min(other):
            error.add_note(
                f"X is {dtype}: give X.astype({min(other)!r}), in fit and in predictions"
            )
        raise


def refuse_dates(error: Exception, X: Any) -> None:
    """Raise ValueError if an error of a fit to X (n, d) is about its dates or times."""
    for name in date_columns(X).values() if _ABOUT_DATES.search(str(error)) else ():
        raise ValueError(f"X has dates in column {name!r}{NO_DATES}") from error


def refuse_infinity(error: Exception, X: Any) -> None:
    """Raise ValueError with row and column if an error is about an infinite number of X (n, d)."""
    if TOO_LARGE in str(error):
        for row, column, value in places(X, np.isinf):
            raise ValueError(
                f"X must be finite, got {value} at row {row}, column {column!r}; {CORRECT}"
            ) from None
