"""The column to predict: classes, each of enough rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd

from .columns import texts_of
from .errors import UsageError, UserError, list_names, suggest_name
from .kinds import CATEGORY, GAP_WORDS, NUMERIC, check_single, guess, to_numbers
from .reading import RejectedRow

#: Two in each of five folds.
FEWEST = 10
_MOST_CLASSES = 200
_MOST_NUMBERS = 20


def check_target(target: str, names: list[str], path: object) -> None:
    """UserError if there is no such column, or no other."""
    if target not in names:
        alone = len(names) == 1
        split = "; if that is all of them in one, name the `delimiter`"
        raise UserError(
            f"{path} has no column {target!r} to predict: "
            f"{suggest_name(target, names)}{split * alone}"
        )
    if len(names) == 1:
        raise UserError(
            f"{path} has only the column {target!r}: there is nothing to predict it from"
        )


def split_types(types: Mapping[str, str], target: str) -> tuple[dict[str, str], bool]:
    """Kinds of all columns but the target, and whether its numbers were said to be classes."""
    kind = types.get(target)
    if kind not in (None, CATEGORY):
        raise UsageError(
            f"types={ {target: kind} }: a target holds classes; leave it out, or say {CATEGORY} "
            "where its numbers are names of many classes"
        )
    return {name: of for name, of in types.items() if name != target}, kind is not None


def read_classes(
    values: pd.Series,
    target: str,
    rows: np.ndarray,
    named: bool = False,
    gaps: Collection[str] = (),
) -> tuple[pd.Series, np.ndarray, list[RejectedRow]]:
    """Labels of the rows that have one, which rows these are, and the others as refused.

    Numbers are classes, however many, if they were `named` so. The words `gaps` were read as gaps.
    """
    check_single(values, target)
    labels = texts_of(values)
    known = labels.notna().to_numpy()
    words = f", or one of gaps={list(gaps)}" if gaps else ""
    why = f"no class: the entry is missing{words}"
    refused = [RejectedRow(int(r), target, why) for r in rows[~known]]
    if not known.any():
        raise UserError(
            f"the target {target!r} is missing in all rows (empty{words}); give rows with a class"
        )
    labels = labels[known].reset_index(drop=True)
    if not named:
        _check_words(labels, target)
    _check_kind(values[known].reset_index(drop=True), labels, target, named)
    none = f"; {len(refused):,} rows have none (empty{words})" if refused else ""
    _check_counts(labels, target, none)
    return labels, known, refused


def _check_words(labels: pd.Series, target: str) -> None:
    """UserError for a word that may be a gap among classes that are numbers."""
    word = labels.isin(GAP_WORDS)
    if word.any() and not word.all() and np.isfinite(to_numbers(labels[~word])).all():
        words = sorted(set(labels[word]))
        raise UserError(
            f"the target {target!r} holds numbers, and {list_names(map(repr, words))} in "
            f"{int(word.sum()):,} rows; if that is a gap: gaps={words}, if it is a "
            f"class: types={ {target: CATEGORY} }"
        )


def _check_kind(values: pd.Series, labels: pd.Series, target: str, named: bool) -> None:
    n = labels.nunique()
    if n <= _MOST_NUMBERS:
        return
    found = None if named else guess(values, target)
    if found is not None and found.kind == NUMERIC:
        numbers = to_numbers(labels, found.decimal)
        broken = bool(np.any(numbers % 1 != 0))
        if broken or n > _MOST_CLASSES:
            raise UserError(
                f"the target {target!r} holds {n:,} different numbers, {numbers.min():g} to "
                f"{numbers.max():g}: that is regression, and dipedl classifies. Make classes of "
                "it, such as low, middle and high, or name another `target`"
                + f"; if these numbers are names of classes: types={ {target: CATEGORY} }"
                * (not broken)
            )
    if n > _MOST_CLASSES and n > 0.2 * len(labels):
        raise UserError(
            f"the target {target!r} has {n:,} different values in {len(labels):,} rows: an id or a "
            "text, no class. Name another `target`"
        )


def _check_counts(labels: pd.Series, target: str, without: str) -> None:
    """UserError for one class alone, and for a rare one; `without` tells of rows that have none."""
    counts = labels.value_counts()
    if len(counts) == 1:
        raise UserError(
            f"the target {target!r} is {counts.index[0]!r} in all rows"
            f"{' with a class' * bool(without)}{without}: two classes are needed. "
            "Add rows of another class; for one class there is OODDetector in Python"
        )
    rare = counts[counts < FEWEST]
    if len(rare):
        named = list_names(f"{name!r} ({n})" for name, n in rare.items())
        words = [name for name in rare.index if name in GAP_WORDS]
        raise UserError(
            f"the target {target!r} has classes of fewer than {FEWEST} rows: {named}; add rows of "
            "them, merge them with another class, or leave their rows out"
            + (f"; if {words[0]!r} is a gap: gaps={words}" if words else "")
        )
