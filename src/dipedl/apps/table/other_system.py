"""Probabilities of any other system: the evidence beside them, from held-out rows of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, repeat
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from ...classifier import DIPClassifier
from ...explanation import FindingWarning
from ...writing.spelling import spellings, versions
from .columns import NUMERIC, ColumnSpec, as_inputs, decimal_mark, texts_of
from .errors import UserError, list_names, suggest_name
from .fit import fit_with_warnings
from .reading import RejectedRow, Table
from .sampling import sample_rows
from .score import Progress, ScoreRequest, ScoreResult, answer_frame, write_answers

_SUM, _TINY, _AT_ONCE, _FEWEST = 1e-3, 1e-6, 20_000, 20
_PERCENT = ": divide percent by 100"
_LEARNED = (
    "The held-out rows look like rows that the other system was fitted on ({error_rate:.1%} "
    "errors): make sure that it has not seen them."
)


class _GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the first columns of its inputs."""

    def __init__(self, classes: Sequence[str] = ()) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any = None) -> Self:
        """Nothing is learned."""
        self.classes_ = np.asarray(self.classes)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """The given probabilities (n, k), rows summing to one."""
        P = X.iloc[:, : len(self.classes_)].to_numpy(dtype=np.float64)
        return np.asarray(P / P.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Pair:
    """Tables of probabilities and, if there are, features: row i of both is the same input."""

    proba: Table
    features: Table | None = None


def score_other_system(
    new: Pair,
    held_out: Pair,
    target: str,
    out: Path,
    wanted: ScoreRequest,
    progress: Progress | None,
) -> ScoreResult:
    """Answer rows by their given probabilities and evidence learned from held-out rows.

    Without features the density sees the logarithms of the probabilities.
    """
    if target not in held_out.proba.names:
        near = suggest_name(target, held_out.proba.names)
        raise UserError(f"{held_out.proba.path} has no column {target!r} of true classes: {near}")
    classes = _classes(held_out.proba, target)
    X, _, y, left_out = _inputs(held_out, target, classes, None)
    labels = _checked_labels(y, classes, held_out.proba, left_out)
    _check_features(X.iloc[:, len(classes) :], held_out)
    if left_out:
        told = f"{len(left_out):,} of {len(X) + len(left_out):,} rows of {held_out.proba.path}"
        warnings.warn(f"{told} are not used{_first(left_out)}", stacklevel=2)
    X_new, rows, _, refused = _inputs(new, target, classes, list(X.columns))
    if not len(X_new):
        raise UserError(f"{new.proba.path} has no row that can be answered{_first(refused)}")
    clf = _fitted(X, labels, classes)
    return write_answers(_lines(clf, X_new, rows, wanted, refused), out, progress)


def _lines(
    clf: DIPClassifier,
    X: pd.DataFrame,
    rows: np.ndarray,
    wanted: ScoreRequest,
    refused: list[RejectedRow],
) -> Iterator[tuple[pd.DataFrame, list[RejectedRow], float]]:
    for first in range(0, len(X), _AT_ONCE):
        at = slice(first, first + _AT_ONCE)
        some = X.iloc[at][list(clf.feature_names_in_)].reset_index(drop=True)
        made = answer_frame(clf, some, rows[at], pd.DataFrame(), wanted)
        yield made, refused if first == 0 else [], min(1.0, (first + _AT_ONCE) / len(X))


def _fitted(X: pd.DataFrame, y: np.ndarray, classes: list[str]) -> DIPClassifier:
    order = np.argsort(classes)
    given = _GivenProbabilities([classes[c] for c in order]).fit(X)
    names = list(X.columns)
    arranged = [names[c] for c in order] + names[len(classes) :]
    seen = ColumnTransformer([("features", StandardScaler(), names[len(classes) :])])
    clf = DIPClassifier(FrozenEstimator(given), features=seen, random_state=0)
    fitted, caught, _ = fit_with_warnings(lambda: clf.fit(X[arranged], y))
    for one in caught:
        message = one.message
        if isinstance(message, FindingWarning) and message.args[0].code == "classifier_frozen":
            message = UserWarning(_LEARNED.format_map(message.args[0].numbers))
        warnings.warn(message, stacklevel=2)
    return fitted


def _classes(proba: Table, target: str, known: Sequence[str] | None = None) -> list[str]:
    """The classes as the columns name them; a `spelling` of one of the `known` as that."""
    names = [name for name in proba.names if name != target]
    if len(names) < 2:
        raise UserError(
            f"{proba.path} must have a column of probabilities for each of two classes or more, "
            f"got {list_names(proba.names)}"
        )
    written = [name.removeprefix("p_") for name in names]
    classes = spellings(written, versions(written) if known is None else known)
    pairs = combinations(zip(names, classes, strict=True), 2)
    for (one, of_one), (other, of_other) in pairs:
        if of_one == of_other:
            raise UserError(
                f"{proba.path} has the columns {one!r} and {other!r}, which are of one class: "
                "leave one out"
            )
    return written if known is None else classes


def _inputs(
    pair: Pair, target: str, classes: list[str], known: list[str] | None
) -> tuple[pd.DataFrame, np.ndarray, pd.Series | None, list[RejectedRow]]:
    """Probabilities and features side by side, row numbers, labels if there are, refused rows."""
    there = _classes(pair.proba, target, classes)
    if sorted(there) != sorted(classes):
        raise UserError(
            "new and held-out rows differ in the classes "
            f"{list_names(sorted({*there} ^ {*classes}))}, by the names of columns in "
            f"{pair.proba.path}: give the same columns"
        )
    P, rows, truth, mark = _read(pair.proba, target)
    names = [name for name in pair.proba.names if name != target]
    P = P.rename(columns=dict(zip(names, there, strict=True)))[classes]
    made = P.add_prefix("p_")
    if pair.features is None:
        F = np.log(P.clip(lower=_TINY))
        F = F.sub(F.mean(axis=1), axis=0).iloc[:, 1:].add_prefix("log ")
    else:
        F, *_ = _read(pair.features, "", mark)
        if len(F) != len(P):
            raise UserError(
                f"{pair.features.path} has {len(F):,} rows and {pair.proba.path} {len(P):,}: row i "
                "of both must be the same input"
            )
    both = [name for name in F if name in made]
    if both and pair.features is not None:
        raise UserError(
            f"{pair.features.path} has a column {both[0]!r}, as the probabilities of a class are "
            "called: rename it"
        )
    X = pd.concat([made, F], axis=1)
    if known is not None and sorted(known) != sorted(X.columns):
        lacking = sorted(set(known) ^ set(X.columns))
        raise UserError(
            f"new and held-out rows differ in {list_names(lacking)}: give the same columns"
        )
    k = made.shape[1]
    odd = {one.row: one for one in (*_missing_rows(X.iloc[:, k:], rows), *_odd_rows(made, rows))}
    keep = ~np.isin(rows, list(odd))
    X = X if known is None else X[known]
    labels = None if truth is None else truth[keep].reset_index(drop=True)
    return X[keep].reset_index(drop=True), rows[keep], labels, sorted(odd.values())


def _read(
    table: Table, target: str, mark: str = ""
) -> tuple[pd.DataFrame, np.ndarray, pd.Series | None, str]:
    """All rows as numbers, with gaps for what is none; row numbers, labels, decimal mark.

    Without a given `mark` it is a comma if the numbers have any.
    """
    some = sample_rows(table)
    if some.refused:
        one = some.refused[0]
        raise UserError(f"{table.path}, row {one.row}: {one.reason}; rows must stay in step")
    names = [str(name) for name in some.frame if name != target]
    # The entries that were not read as numbers tell the mark.
    texts = some.frame[names].select_dtypes(exclude="number").to_numpy().ravel()
    mark = mark or decimal_mark(pd.Series(texts).dropna().astype(str))
    columns = [ColumnSpec(name, NUMERIC, decimal=mark) for name in names]
    made, _, odd = as_inputs(columns, some.frame, some.rows)
    for one in odd[:1]:
        raise UserError(f"{table.path}, row {one.row}, column {one.column!r}: {one.reason}")
    truth = some.frame[target] if target in some.frame else None
    return made, some.rows, truth, mark


def _odd_rows(P: pd.DataFrame, rows: np.ndarray) -> list[RejectedRow]:
    """Rows that are no probabilities."""
    sums = P.sum(axis=1, skipna=False).to_numpy()
    odd = ~(np.abs(sums - 1) <= _SUM) | (P < 0).any(axis=1).to_numpy()
    return list(map(RejectedRow, rows[odd].tolist(), repeat(""), map(_told_of, sums[odd])))


def _told_of(total: float) -> str:
    if np.isnan(total):
        return "a probability is missing"
    percent = _PERCENT if 99 < total < 101 else ""
    return f"probabilities must be >= 0 and sum to one, and sum to {total:.4g}{percent}"


def _first(left_out: list[RejectedRow]) -> str:
    """Return why the first of the rows that cannot be used is left out."""
    return "".join(f"; row {one.row} is left out: {one.reason}" for one in left_out[:1])


def _missing_rows(F: pd.DataFrame, rows: np.ndarray) -> list[RejectedRow]:
    at = np.flatnonzero(F.isna().any(axis=1))
    names = F.columns
    first = F.isna().to_numpy().argmax(axis=1)
    return [RejectedRow(int(rows[i]), str(names[first[i]]), "a feature is missing") for i in at]


def _check_features(F: pd.DataFrame, held_out: Pair) -> None:
    if not (F.nunique() > 1).any():
        table = held_out.features or held_out.proba
        raise UserError(
            f"{table.path} is equal in all rows: evidence needs features that differ between rows; "
            "give `features` of both"
        )


def _checked_labels(
    y: pd.Series | None, classes: list[str], table: Table, left_out: list[RejectedRow]
) -> np.ndarray:
    y = None if y is None else texts_of(y, classes)
    if y is None or y.isna().any() or len(y) < _FEWEST:
        n = 0 if y is None else int(y.notna().sum())
        raise UserError(
            f"{table.path} must have the true class of each of {_FEWEST} rows or more, got {n:,}"
            + _first(left_out)
        )
    unknown = sorted(set(y) - set(classes))
    if unknown:
        raise UserError(
            f"{table.path} holds the classes {list_names(unknown)}, and has probabilities of "
            f"{list_names(classes)}: give a column of probabilities for each class"
        )
    return np.asarray(y, dtype=object).astype(str)
