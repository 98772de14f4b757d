"""Folds: no statistic shall come from points that the density was fitted on."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils.metadata_routing import get_routing_for_object

from ..columns import NUMBER, column, is_frame, kind_of_dtype

__all__ = ["content_folds", "fold_pairs", "row_hash", "splits"]

IN_SAMPLE = "in-sample"
AUTO = "auto"
#: Held-out rows that suffice for cv="auto"; more folds than they need are not fitted.
ENOUGH = 5000
_FOLDS = 5
#: Rows of a class that a fit without its held-out ones needs.
_LEFT = 2
#: Numbers that are hashed at once: as many as stay in the cache.
_CACHED = 1 << 16
#: Training rows and held-out rows of each fold.
Pairs = list[tuple[np.ndarray, np.ndarray]]
#: A gap is the same row whatever stands for it.
_MISSING = {"None", "nan", "<NA>", "NaT"}


def row_hash(X: Any, random_state: int = 0) -> np.ndarray:
    """A 64-bit hash of the content of each row, shape (n,): equal rows have equal hashes.

    Text is hashed by its characters; a sparse row as the dense one. The kind of table, and of its
    types of text, dates and numbers, makes no difference.
    """
    d = 1 if len(X.shape) == 1 else int(np.prod(X.shape[1:]))
    rng = np.random.default_rng(random_state)
    factors = rng.integers(0, 2**63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = (
        _sparse_sums(X, factors) if sparse.issparse(X) else _dense_sums(rows_as_numbers(X), factors)
    )
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    return np.asarray(mixed ^ (mixed >> np.uint64(33)))


def _dense_sums(values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Sum of the bits of each row's entries times the factor of the column, shape (n,)."""
    sums = np.empty(len(values), dtype=np.uint64)
    step = max(1, _CACHED // values.shape[1])
    for i in range(0, len(values), step):
        # Integer sums wrap and do not depend on the order of summation.
        sums[i : i + step] = (_bits(values[i : i + step]) * factors).sum(axis=1)
    return sums


def _sparse_sums(X: Any, factors: np.ndarray) -> np.ndarray:
    """Return what `_dense_sums` gives for the dense rows: zeros have no bits."""
    X = X.tocoo()
    X.sum_duplicates()
    sums = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(sums, X.row, _bits(X.data.astype(np.float64)) * factors[X.col])
    return sums


def _bits(values: np.ndarray) -> np.ndarray:
    # + 0.0 turns -0.0 into 0.0, and is a copy; the NaN of log(-1) has other bits than np.nan.
    values = np.ascontiguousarray(values + 0.0)
    values[np.isnan(values)] = np.nan
    bits = values.view(np.uint64)
    return np.asarray(bits ^ (bits >> np.uint64(32)))


def rows_as_numbers(X: Any) -> np.ndarray:
    """Return the inputs as float64 (n, d), with a number for each text and date.

    Their `row_hash` is that of the inputs: for hashes of several seeds they are made once.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return np.asarray(X, dtype=np.float64).reshape(X.shape[0], -1)
    known: dict[str, float] = {}
    if is_frame(X):
        parts = [_entries_as_numbers(column(X, j), known) for j in range(X.shape[1])]
        return np.column_stack(parts)
    return _entries_as_numbers(np.asarray(X).ravel(), known).reshape(X.shape[0], -1)


def _entries_as_numbers(values: Any, known: dict[str, float]) -> np.ndarray:
    """A series or an array (n,) as float64: numbers as they are, which is fast, or one by one.

    The dtype decides: a text stays one though it holds digits alone.
    """
    if kind_of_dtype(values) == NUMBER:
        with suppress(TypeError, ValueError):
            return np.asarray(values, dtype=np.float64)
    entries = np.asarray(values)
    if entries.dtype.kind in "mM":
        # Of nanoseconds NumPy would make whole numbers.
        entries = entries.astype(f"{entries.dtype.kind}8[us]")
    numbers = [_number(value, known) for value in entries.astype(object).tolist()]
    return np.array(numbers, dtype=np.float64)


def _number(value: Any, known: dict[str, float]) -> float:
    """A number as it is; else one made of the text that stands for the value."""
    if isinstance(value, str) and value in known:
        return known[value]
    if isinstance(value, Real | Decimal | np.bool_):
        return float(value)
    text = str(value)
    if text in _MISSING:
        return float("nan")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    # The same for every type of a date or a span of time.
    unit: Any = np.timedelta64 if isinstance(value, timedelta | np.timedelta64) else np.datetime64
    if isinstance(value, date | timedelta | np.datetime64 | np.timedelta64):
        text = str(unit(value, "us"))
    if text not in known:
        digest = hashlib.blake2b(text.encode(), digest_size=6).digest()
        known[text] = float(int.from_bytes(digest, "big"))
    return known[text]


def content_folds(
    X: Any, y: np.ndarray, n_folds: int, random_state: int = 0, *, together: bool = False
) -> np.ndarray:
    """Fold of each row, shape (n,), stratified by class; -1 for rows that are never held out.

    Rows are dealt out in the order of their hashes, so the folds depend on what the rows hold and
    not on where they stand. Copies of a row are spread: new inputs repeat old ones as often as the
    rows repeat one another; or kept `together`, whatever their labels, as a row with a weight is.
    A class is held out only if at least two of its rows stay in each fit.
    """
    keys, classes = row_hash(X, random_state), np.unique(y, return_inverse=True)[1]
    if not together:
        return _assign_folds(keys, classes, np.ones(len(keys), int), n_folds)
    distinct, row, copies = np.unique(keys, return_inverse=True, return_counts=True)
    lowest = np.full(len(distinct), len(keys))
    np.minimum.at(lowest, row, classes)
    return _assign_folds(distinct, lowest, copies, n_folds)[row]


def _assign_folds(
    keys: np.ndarray, classes: np.ndarray, copies: np.ndarray, n_folds: int
) -> np.ndarray:
    """Fold of each row, which counts as so many `copies`, class by class in the order of keys."""
    fold = np.full(len(keys), -1)
    dealt = 0
    for c in np.unique(classes):
        rows = np.flatnonzero(classes == c)
        if copies[rows].sum() - copies[rows].max() >= _LEFT:
            order = rows[np.argsort(keys[rows], kind="stable")]
            fold[order] = (dealt + np.arange(len(rows))) % n_folds
            dealt += len(rows)
    return fold


def splits(
    cv: Any,
    X: Any,
    y: np.ndarray,
    present: np.ndarray | None,
    random_state: int = 0,
    *,
    together: bool = False,
) -> tuple[Iterable[tuple[np.ndarray, np.ndarray]], str]:
    """(train, held-out) index pairs for `cv`, and what to call the held-out scores.

    Parameters
    ----------
    cv : int, "auto", cross-validation splitter or iterable of index pairs
        An int >= 2 gives `content_folds`; "auto" stands for 5.
    X, y : array-like (n, d) and ndarray (n,)
        Inputs and labels.
    present : integer array, shape (n,), optional
        Which rows of what the caller was given these are: the indices that pairs speak of.
    together : bool, default=False
        Keep copies of a row in one fold; of an int and "auto".
    """
    check_folds(cv, in_sample=False)
    cv = _FOLDS if isinstance(cv, str) else cv
    if isinstance(cv, int | np.integer):
        fold = content_folds(X, y, int(cv), random_state, together=together)
        if (fold < 0).all():
            raise ValueError(
                f"cv={cv} needs a class with at least {_LEFT + 1} samples to hold some out, got "
                f"n_samples = {len(y)} in {len(np.unique(y))} classes; use cv='in-sample'"
            )
        return fold_pairs(fold), f"{fold.max() + 1}-fold cross-fitting"
    pairs = splitter_pairs(cv, y, present) or []
    return pairs, source_of(cv, pairs)


def check_folds(cv: Any, *, in_sample: bool = True) -> None:
    """Raise ValueError for a text or a number that is no `cv`, TypeError for a class.

    `in_sample` says whether the rows of the fit are a choice.
    """
    if isinstance(cv, type):
        raise TypeError(
            f"cv must be a splitter, got the class {cv.__name__}: make one of it, such as "
            f"cv={cv.__name__}(...)"
        )
    if isinstance(cv, str):
        sound = cv == AUTO or (in_sample and cv == IN_SAMPLE)
    else:
        sound = not (isinstance(cv, int | np.integer) and (isinstance(cv, bool) or int(cv) < 2))
    if not sound:
        others = ", a splitter or 'in-sample'" if in_sample else " or a splitter"
        raise ValueError(f"cv must be 'auto', an int >= 2{others}, got {cv!r}")


def splitter_pairs(
    cv: Any,
    y: np.ndarray,
    present: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> Pairs | None:
    """The (train, held-out) pairs of a splitter or an iterable; None for a text or a number.

    Parameters as of `splits`. An iterator, and a splitter without a seed, give them only once. With
    `groups` (n,) a text or a number stands for folds of whole groups, and no pair may part a group.
    """
    if isinstance(cv, str | int | np.integer):
        return None if groups is None else _group_pairs(cv, y, groups)
    splitter = check_cv(cv, y, classifier=True)
    needs_groups = get_routing_for_object(splitter).consumes("split", ["groups"])
    if needs_groups and groups is None:
        name = type(splitter).__name__
        raise ValueError(
            f"cv={name} needs groups: give them to DIPClassifier.fit(X, y, groups=groups), or the "
            f"pairs that it makes, as cv=list({name}(...).split(X, y, groups))"
        )
    try:
        pairs = splitter.split(np.zeros(len(y)), y, groups if needs_groups else None)
        if present is not None and not hasattr(cv, "split"):
            pairs = [tuple(_positions(part, present) for part in pair) for pair in pairs]
        rows = np.arange(len(y))
        checked = [(rows[train], rows[held]) for train, held in pairs]
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(
            f"cv must give pairs (train, held-out) of rows 0 to {len(y) - 1}: {error}"
        ) from error
    if not checked or not all(part.ndim and part.size for pair in checked for part in pair):
        raise ValueError(
            "cv must give pairs (train, held-out) of rows, none of them empty, got "
            f"{len(checked)} pairs; use cv=5 or a splitter such as ShuffleSplit(1, test_size=0.2)"
        )
    if groups is not None and any(np.isin(groups[a], groups[b]).any() for a, b in checked):
        raise ValueError(
            "cv parts groups: rows of one group are in a fit and held out of it; leave cv at its "
            "default, or give a splitter such as GroupKFold(5)"
        )
    return checked


def _group_pairs(cv: Any, y: np.ndarray, groups: np.ndarray) -> Pairs:
    """Pairs of stratified folds of whole groups (n,), as many as an int or "auto" asks for."""
    if cv == IN_SAMPLE:
        raise ValueError("groups say which rows are held out together, and cv='in-sample' holds "
                         "none out: leave cv at its default, or groups out")  # fmt: skip
    n_folds = _FOLDS if cv == AUTO else cv
    most = min(len(np.unique(groups)), int(np.unique(y, return_counts=True)[1].max()))
    with warnings.catch_warnings():
        # A class of fewer groups than folds is held out by some of them.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = StratifiedGroupKFold(min(n_folds, most)).split(np.zeros(len(y)), y, groups)
        pairs = [pair for pair in folds if len(pair[1])]
    for i, (train, held) in enumerate(pairs):
        classes, place, counts = np.unique(y[train], return_inverse=True, return_counts=True)
        if (counts >= _LEFT).sum() < min(2, len(np.unique(y))):
            raise ValueError(
                "groups must share classes: without the groups of one fold the other rows are of "
                f"class {classes[counts.argmax()].item()!r} alone, so nothing can be fitted to "
                "them; give groups that hold several classes, or leave groups out"
            )
        pairs[i] = train[counts[place] >= _LEFT], held
    return first_folds(pairs) if cv == AUTO else pairs


def source_of(cv: Any, pairs: Pairs) -> str:
    """Return the name of the rows that are held out by the pairs of `splitter_pairs`."""
    if isinstance(cv, str | int | np.integer):
        return f"{len(pairs)}-fold cross-fitting by groups"
    return f"held-out parts of {type(check_cv(cv)).__name__}"


def first_folds(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> Pairs:
    """The first folds, as many as hold out `ENOUGH` rows."""
    taken, rows = [], 0
    for train, held in pairs:
        taken.append((train, held))
        rows += len(held)
        if rows >= ENOUGH:
            break
    return taken


def _positions(rows: Any, present: np.ndarray) -> np.ndarray:
    """Return the places of rows among those present; the others are left out."""
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    rows = rows[np.isin(rows, present)]
    return np.asarray(np.searchsorted(present, rows))


def pairs_among(cv: Any, rows: np.ndarray) -> Any:
    """Return pairs of a list as pairs of places among `rows` (m,); any other cv as it is."""
    if not isinstance(cv, list | tuple):
        return cv
    order = np.argsort(rows)
    pairs = [tuple(order[_positions(part, rows[order])] for part in pair) for pair in cv]
    return [pair for pair in pairs if all(len(part) for part in pair)]


def fold_pairs(fold: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(train, held-out) row numbers of each fold; rows of fold -1 are always trained on."""
    for j in range(fold.max() + 1):
        held = fold == j
        if held.any():
            yield np.flatnonzero(~held), np.flatnonzero(held)


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
