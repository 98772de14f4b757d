"""Probabilities of any other system: the evidence beside them, from held-out rows of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
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
from ...features.scaling import FarRowsWarning
from ...writing.spelling import spellings, versions
from .columns import NUMERIC, ColumnSpec, as_inputs, decimal_mark, texts_of
from .errors import UserError, list_names, suggest_name
from .fit import fit_with_warnings
from .reading import RejectedRow, Sample, Table, sample_rows
from .score import Progress, ScoreRequest, ScoreResult, answer_frame, write_answers

_SUM, _TINY, _AT_ONCE, _FEWEST = 1e-3, 1e-6, 20_000, 20
_LEARNED = (
    "The held-out rows look like rows that the other system was fitted on ({error_rate:.1%} "
    "errors): make sure that it has not seen them."
)


class _GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the first columns of its inputs."""

    def __init__(self, classes: Sequence[str] = ()) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn nothing."""
        self.classes_ = np.asarray(self.classes)
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the given probabilities (n, k), rows summing to one."""
        P = X.iloc[:, : len(self.classes_)].to_numpy(dtype=np.float64)
        return np.asarray(P / P.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Pair:
    """Tables of probabilities and, if there are, features: row i of both is the same input."""

    proba: Table
    features: Table | None = None


@dataclass(frozen=True)
class _PairRows:
    """Rows of a `Pair` that can be used: probabilities and features side by side, their numbers.

    `labels` is the column of true classes, if there is one; `refused` are the other rows.
    """

    X: pd.DataFrame
    rows: np.ndarray
    labels: pd.Series | None
    refused: list[RejectedRow]

    @property
    def first_refused(self) -> str:
        return "".join(f"; row {r.row} is left out: {r.reason}" for r in self.refused[:1])


def score_other_system(
    new: Pair,
    held_out: Pair,
    target: str,
    out: Path,
    request: ScoreRequest,
    progress: Progress | None,
) -> ScoreResult:
    """Answer rows by their given probabilities and evidence learned from held-out rows.

    Without features the density sees the logarithms of the probabilities.
    """
    proba = held_out.proba
    if target not in proba.names:
        near = suggest_name(target, proba.names)
        raise UserError(f"{proba.path} has no column {target!r} of true classes: {near}")
    classes = _classes(proba, target)
    known = _read_pair(held_out, target, classes)
    labels, n = _true_labels(known, classes, proba), len(known.refused)
    if not (known.X.iloc[:, len(classes) :].nunique() > 1).any():
        raise UserError(
            f"{(held_out.features or proba).path} is equal in all rows: evidence needs features "
            "that differ between rows; give `features` of both"
        )
    if n:
        unused = f"{n:,} of {len(known.X) + n:,} rows of {proba.path} are not used"
        warnings.warn(unused + known.first_refused, stacklevel=2)
    found = _read_pair(new, target, classes, list(known.X.columns))
    if not len(found.X):
        raise UserError(f"{new.proba.path} has no row that can be answered{found.first_refused}")
    clf = _fit_evidence(known, labels, classes)
    return write_answers(_answer(clf, found, request), out, progress)


def _answer(
    clf: DIPClassifier, found: _PairRows, request: ScoreRequest
) -> Iterator[tuple[pd.DataFrame, list[RejectedRow], float]]:
    for first in range(0, len(found.X), _AT_ONCE):
        at = slice(first, first + _AT_ONCE)
        some = found.X.iloc[at][list(clf.feature_names_in_)].reset_index(drop=True)
        made = answer_frame(clf, some, found.rows[at], pd.DataFrame(), request)
        done = min(1.0, (first + _AT_ONCE) / len(found.X))
        yield made, found.refused if first == 0 else [], done


def _fit_evidence(known: _PairRows, y: np.ndarray, classes: list[str]) -> DIPClassifier:
    X, order, names = known.X, np.argsort(classes), list(known.X.columns)
    classifier = _GivenProbabilities([classes[c] for c in order]).fit(X)
    features = ColumnTransformer([("features", StandardScaler(), names[len(classes) :])])
    clf = DIPClassifier(FrozenEstimator(classifier), features=features, random_state=0)
    arranged = X[[names[c] for c in order] + names[len(classes) :]]
    fitted, caught, _ = fit_with_warnings(lambda: clf.fit(arranged, y))
    for message in (one.message for one in caught):
        if isinstance(message, FindingWarning) and message.args[0].code == "classifier_frozen":
            message = UserWarning(_LEARNED.format_map(message.args[0].numbers))
        elif isinstance(message, FarRowsWarning):
            message = message.rename(known.rows)
        warnings.warn(message, stacklevel=2)
    return fitted


def _classes(proba: Table, target: str, known: Sequence[str] | None = None) -> list[str]:
    """Return the classes as the columns name them; a `spelling` of one of the `known` as that."""
    names = [name for name in proba.names if name != target]
    if len(names) < 2:
        raise UserError(
            f"{proba.path} must have a column of probabilities for each of two classes or more, "
            f"got {list_names(proba.names)}"
        )
    written = [name.removeprefix("p_") for name in names]
    classes = spellings(written, versions(written) if known is None else known)
    for (one, of_one), (other, of_other) in combinations(zip(names, classes, strict=True), 2):
        if of_one == of_other:
            raise UserError(
                f"{proba.path} has the columns {one!r} and {other!r}, which are of one class: "
                "leave one out"
            )
    return written if known is None else classes


def _read_pair(
    pair: Pair, target: str, classes: list[str], known: list[str] | None = None
) -> _PairRows:
    """Read the rows of a pair, with the columns `known` of the held-out rows where given."""
    own, path = _classes(pair.proba, target, classes), pair.proba.path
    if sorted(own) != sorted(classes):
        raise UserError(
            "new and held-out rows differ in the classes "
            f"{list_names(sorted({*own} ^ {*classes}))}, by the names of columns in {path}: give "
            "the same columns"
        )
    some = _whole(pair.proba)
    P, mark = _numbers(pair.proba, some, target)
    P = P.set_axis(own, axis=1)[classes]
    made, rows = P.add_prefix("p_"), some.rows
    if pair.features is None:
        F = np.log(P.clip(lower=_TINY))
        F = F.sub(F.mean(axis=1), axis=0).iloc[:, 1:].add_prefix("log ")
    else:
        F, _ = _numbers(pair.features, _whole(pair.features), "", mark)
        if len(F) != len(P):
            raise UserError(
                f"{pair.features.path} has {len(F):,} rows and {path} {len(P):,}: row i of both "
                "must be the same input"
            )
        for name in made.columns.intersection(F.columns)[:1]:
            raise UserError(
                f"{pair.features.path} has a column {name!r}, as the probabilities of a class are "
                "called: rename it"
            )
    X = pd.concat([made, F], axis=1)
    if known is not None and sorted(known) != sorted(X.columns):
        lacking = list_names(sorted({*known} ^ {*X.columns}))
        raise UserError(f"new and held-out rows differ in {lacking}: give the same columns")
    reasons = _feature_gaps(F, rows) | _wrong_proba(made, rows)
    keep = ~np.isin(rows, list(reasons))
    X = (X if known is None else X[known])[keep].reset_index(drop=True)
    truth = some.frame.get(target)
    labels = None if truth is None else truth[keep].reset_index(drop=True)
    return _PairRows(X, rows[keep], labels, sorted(reasons.values()))


def _whole(table: Table) -> Sample:
    some = sample_rows(table)
    for one in some.refused[:1]:
        raise UserError(f"{table.path}, row {one.row}: {one.reason}; rows must stay in step")
    return some


def _numbers(table: Table, some: Sample, target: str, mark: str = "") -> tuple[pd.DataFrame, str]:
    """Return all columns but the target as numbers, and the decimal mark.

    Without a given `mark` it is a comma if the numbers have any.
    """
    names = [str(name) for name in some.frame if name != target]
    # The entries that were not read as numbers tell the mark.
    texts = some.frame[names].select_dtypes(exclude="number").to_numpy().ravel()
    mark = mark or decimal_mark(pd.Series(texts).dropna().astype(str))
    columns = [ColumnSpec(name, NUMERIC, decimal=mark) for name in names]
    made, _, odd = as_inputs(columns, some.frame, some.rows)
    for one in odd[:1]:
        raise UserError(f"{table.path}, row {one.row}, column {one.column!r}: {one.reason}")
    return made, mark


def _wrong_proba(P: pd.DataFrame, rows: np.ndarray) -> dict[int, RejectedRow]:
    sums = P.sum(axis=1, skipna=False).to_numpy()
    wrong = ~(np.abs(sums - 1) <= _SUM) | (P < 0).any(axis=1).to_numpy()
    reasons = {}
    for row, total in zip(rows[wrong].tolist(), sums[wrong], strict=True):
        percent = ": divide percent by 100" if 99 < total < 101 else ""
        reason = f"probabilities must be >= 0 and sum to one, and sum to {total:.4g}{percent}"
        missing = "a probability is missing"
        reasons[row] = RejectedRow(row, "", missing if np.isnan(total) else reason)
    return reasons


def _feature_gaps(F: pd.DataFrame, rows: np.ndarray) -> dict[int, RejectedRow]:
    gaps = F.isna().to_numpy()
    return {
        int(rows[i]): RejectedRow(int(rows[i]), str(F.columns[j]), "a feature is missing")
        for i, j in zip(
            np.flatnonzero(gaps.any(axis=1)), gaps.argmax(axis=1)[gaps.any(axis=1)], strict=True
        )
    }


def _true_labels(known: _PairRows, classes: list[str], proba: Table) -> np.ndarray:
    y = texts_of(pd.Series(dtype=object) if known.labels is None else known.labels, classes)
    if y.isna().any() or len(y) < _FEWEST:
        raise UserError(
            f"{proba.path} must have the true class of each of {_FEWEST} rows or more, got "
            f"{int(y.notna().sum()):,}{known.first_refused}"
        )
    unknown = sorted(set(y) - set(classes))
    if unknown:
        raise UserError(
            f"{proba.path} holds the classes {list_names(unknown)}, and has probabilities of "
            f"{list_names(classes)}: give a column of probabilities for each class"
        )
    return np.asarray(y, dtype=object).astype(str)
