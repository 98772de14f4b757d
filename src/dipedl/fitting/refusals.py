"""Rows that a part of a model refuses: notes on its errors, and rows that are left unanswered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from ..inputs import (
    NO_DATES,
    InputColumns,
    NoAnswer,
    date_columns,
    is_pandas,
    mixed_columns,
)
from ..maths.checks import check_no_infinity, is_missing

Answer = tuple[Any, ...]
#: What scikit-learn says of numbers that float32 or float64 cannot hold.
_TOO_LARGE = "too large for dtype"
#: What PyTorch calls a dtype of NumPy.
_OF_TORCH = {"double": "float64", "float": "float32", "half": "float16", "long": "int64"}
_ABOUT_DATES = re.compile("date|time", re.IGNORECASE)


@contextmanager
def refusals_noted(*, transform: bool = False) -> Iterator[None]:
    """Adds the remedy to an error of an encoder that meets a new level, or of any `transform`.

    Overflows are not warned of: a row that ends in no number is answered as unknown.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except Exception as error:
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
        raise


@contextmanager
def explain_dtype_error(X: Any) -> Iterator[None]:
    """Adds the remedy to an error of a network that computes in another dtype than that of X."""
    try:
        yield
    except Exception as error:
        words = re.findall("[a-z]+", str(error).lower())
        known, given = {_OF_TORCH[w] for w in words if w in _OF_TORCH}, str(getattr(X, "dtype", ""))
        other = known - {given}
        if given in known and len(other) == 1 and "float" in min(other):
            error.add_note(
                f"X is {given}: give X.astype({min(other)!r}), in fit and in predictions"
            )
        raise


@contextmanager
def columns_noted(X: Any) -> Iterator[None]:
    """Adds the columns of X (n, d) to an error about infinity, dates, or text among numbers."""
    try:
        yield
    except ValueError as error:
        refuse_infinity(error, X)
        raise
    except TypeError as error:
        refuse_dates(error, X)
        mixed = mixed_columns(X)
        if mixed:
            error.add_note(
                f"X has mixed types in the columns {mixed}: make each one type, such as "
                f"X[{mixed[0]!r}] = X[{mixed[0]!r}].astype(str)"
            )
        raise


@contextmanager
def explain_fold_error(y: np.ndarray, n: int) -> Iterator[None]:
    """Adds to an error of a fit to rows of labels y (m,) that these are a fold of n rows."""
    try:
        yield
    except Exception as error:
        classes, counts = np.unique(y, return_counts=True)
        error.add_note(
            f"this was a fit to one fold, {len(y)} of {n} rows, {counts.min()} of class "
            f"{classes[counts.argmin()].tolist()!r}: cv holds the others out. Give settings that "
            "fewer rows allow too, such as fewer folds to a classifier that cross-validates by "
            "itself; or give held-out rows as fit(X, y, calibration=(X_held, y_held)), by which "
            "nothing is fitted again"
        )
        raise


def _note_floats(error: Exception, columns: InputColumns, X: Any) -> None:
    """Add to an error the columns of X (n, d) that were of whole numbers in fit, and are floats."""
    if columns.dtypes is None or not is_pandas(X):
        return
    for name, was, now in zip(X.columns, columns.dtypes, X.dtypes, strict=True):
        if was.startswith(("int", "uint")) and now.kind == "f":
            error.add_note(
                f"X has {now} in column {name!r}, and fit had {was} there: pandas makes floats of "
                "whole numbers with a gap. If the classifier takes it as a category, fill its gaps "
                f"or drop their rows, and give X.astype({{{name!r}: {was!r}}}); a gap needs a "
                "category of its own in fit"
            )


def refuse_dates(error: Exception, X: Any) -> None:
    """Raise ValueError if an error of a fit to X (n, d) is about its dates or times."""
    dates = date_columns(X) if _ABOUT_DATES.search(str(error)) else []
    if dates:
        raise ValueError(f"X has dates in column {dates[0]!r}{NO_DATES}") from error


def refuse_infinity(error: Exception, X: Any) -> None:
    """Raise ValueError with row and column if an error is about an infinite number of X (n, d)."""
    if _TOO_LARGE in str(error):
        try:
            check_no_infinity("X", X)
        except ValueError as found:
            raise found from None


def answered(
    ask: Callable[[Any], Answer],
    X: Any,
    unknown: Callable[[], Answer],
    columns: InputColumns | None = None,
) -> Answer:
    """``ask(X)``, arrays with an entry for each row of X (n, d), or ``unknown()`` without answer.

    These are finite rows whose numbers overflow in a part of the model, and rows with a level, or
    a gap among levels, that no row of the fit had in its `columns`, if a part of the model refuses
    them. They are found by halves, so that no answer depends on another row.

    Raises
    ------
    Exception
        That of ``ask`` if it has another cause, such as a row that is not finite itself.
    """
    try:
        return ask(X)
    except (MemoryError, OSError):
        raise
    except Exception as error:
        overflow = isinstance(error, NoAnswer) or _TOO_LARGE in str(error)
        if columns is not None:
            _note_floats(error, columns, X)
        if not overflow:
            if columns is None or not columns.new(X).any():
                raise
        refusal = error
    n = X.shape[0]
    if n == 1:
        if overflow and not _finite(X, columns):
            refuse_infinity(refusal, X)
            raise refusal
        return unknown()
    try:
        halves = np.arange(n // 2), np.arange(n // 2, n)
        parts = [answered(ask, _safe_indexing(X, rows), unknown, columns) for rows in halves]
    except Exception:
        # That of all rows, so that the row number in it is right.
        refuse_infinity(refusal, X)
        raise refusal from None
    return tuple(None if a is None else np.concatenate([a, b]) for a, b in zip(*parts, strict=True))


def _finite(row: Any, columns: InputColumns | None) -> bool:
    """Whether no number of a row of an array, a table or a sparse matrix is missing or infinite."""
    plain = row.data if sparse.issparse(row) else np.asarray(row, dtype=object).ravel()
    values = plain.tolist()
    if columns is not None and columns.levels:
        texts = columns.of_text()
        values = [v for name, v in zip(columns.names, values, strict=True) if name not in texts]
    floats = [value for value in values if isinstance(value, float)]
    return not any(map(is_missing, values)) and bool(np.isfinite(floats).all())
