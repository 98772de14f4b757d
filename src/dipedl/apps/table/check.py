"""Problems of a table before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import LabelEncoder
from sklearn.tree import DecisionTreeClassifier

from ...explanation import Diagnosis, Finding
from .columns import (
    CATEGORY,
    DATE,
    FEWEST,
    NUMERIC,
    TEXT,
    ColumnSpec,
    as_inputs,
    check_forced,
    check_target,
    check_usable,
    describe_gap_words,
    describe_number_marks,
    infer_column,
    is_id,
    read_classes,
    split_types,
    texts_of,
)
from .errors import UserError, check_columns, list_names
from .formats import CSV
from .reading import Table
from .sampling import sample_rows

_LEAK, _LEAK_ROWS, _FOLDS, _LEAF = 0.98, 20_000, 3, 5
_GAPS, _RARE_CLASS, _MANY = 0.5, 50, 0.95


@dataclass(frozen=True)
class _LabelledTable:
    """A table by its columns: what could be read of it, with the classes of the rows."""

    frame: pd.DataFrame
    columns: tuple[ColumnSpec, ...]
    X: pd.DataFrame
    y: pd.Series


def check_table(
    tables: Sequence[Table],
    target: str,
    drop: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    rows: int | None = None,
) -> Diagnosis:
    """Findings about the first of the tables, worst first; the second is a test table.

    Raises
    ------
    UserError
        If there is no such target, or no class in it.
    """
    table = tables[0]
    check_target(target, table)
    check_columns("drop", drop, table.names, table.path)
    check_forced(types or {}, table.names)
    some = sample_rows(table, rows)
    names = [name for name in table.names if name not in (target, *drop)]
    found = [
        Finding("unreadable_rows", "warning", f"{_rows(len(some.refused))} cannot be read: "
                f"{one}.", {"rows": len(some.refused)}, "mend these lines")
        for one in some.refused[:1]
    ]  # fmt: skip
    kinds, named = split_types(types or {}, target)
    labels, known, problems = _classes(some.frame[target], target, some.rows, named, table.gaps)
    frame = some.frame.loc[known, names].reset_index(drop=True)
    columns, mixed = _columns(frame, kinds)
    X, fine, odd = as_inputs(columns, frame, some.rows[known])
    check_usable(fine, odd, table.path)
    frame, labels = frame[fine].reset_index(drop=True), labels[fine].reset_index(drop=True)
    looked = _LabelledTable(frame, columns, X, labels)
    found += [*problems, *mixed, *(one for look in _CHECKS for one in look(looked))]
    words = describe_gap_words(target, labels.unique(), columns)
    if words and table.format.kind == CSV:
        found.append(Finding("gap_words", "note", f"{words}."))
    for test in tables[1:]:
        found += _overlap(some.frame, columns, test, rows)
    return Diagnosis(tuple(found), f"{len(some.frame):,} of {some.total:,} rows of {table.path}")


def _rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _classes(
    values: pd.Series, target: str, rows: np.ndarray, named: bool, gaps: Sequence[str]
) -> tuple[pd.Series, np.ndarray, list[Finding]]:
    """As `read_classes`, but what is wrong with the classes is a finding."""
    try:
        labels, known, refused = read_classes(values, target, rows, named, gaps)
    except UserError as error:
        labels = texts_of(values)
        known = labels.notna().to_numpy()
        if not known.any():
            raise
        labels = labels[known].reset_index(drop=True)
        return labels, known, [Finding("target", "warning", f"{error}.")]
    if not refused:
        return labels, known, []
    have = "has" if len(refused) == 1 else "have"
    text = f"{_rows(len(refused))} {have} no class, the first is row {refused[0].row}."
    remedy = "they are left out of a fit; score them with the model"
    return labels, known, [Finding("no_class", "note", text, {"rows": len(refused)}, remedy)]


def _columns(
    frame: pd.DataFrame, types: Mapping[str, str]
) -> tuple[tuple[ColumnSpec, ...], list[Finding]]:
    """The columns that can be read, and findings about the others."""
    columns: list[ColumnSpec] = []
    found = []
    for name in frame:
        try:
            columns.append(infer_column(frame, name, types))
        except UserError as error:
            found.append(Finding("mixed_types", "warning", f"{error}."))
    return tuple(columns), found


def _rare_classes(looked: _LabelledTable) -> Iterator[Finding]:
    counts = looked.y.value_counts()
    rare = counts[(counts < _RARE_CLASS) & (counts >= FEWEST)]
    if len(rare):
        named = list_names(f"{name!r} ({n})" for name, n in rare.items())
        yield Finding(
            "rare_classes", "note", f"Classes of fewer than {_RARE_CLASS} rows: {named}.",
            {"classes": len(rare)}, "their probabilities will be rough: add rows of them",
        )  # fmt: skip
    yield Finding(
        "classes", "ok",
        f"{len(counts)} classes; the largest, {str(counts.index[0])!r}, has "
        f"{counts.iloc[0] / counts.sum():.1%} of the rows.",
        {"classes": len(counts), "rows": int(counts.sum())},
    )  # fmt: skip


def _texts(looked: _LabelledTable) -> Iterator[Finding]:
    texts = [c for c in looked.columns if c.kind == TEXT]
    if texts:
        named = list_names(f"{c.name} ({c.why or 'as asked'})" for c in texts)
        yield Finding(
            "text_columns", "note", f"Left out as text or id: {named}.", {"columns": len(texts)},
            "a value that does not come again says nothing of a new row; make groups of them",
        )  # fmt: skip


def _marks(looked: _LabelledTable) -> Iterator[Finding]:
    """Columns of numbers that are read as texts for the characters in them."""
    for column in looked.columns:
        if column.kind not in (CATEGORY, TEXT):
            continue
        entries = looked.frame[column.name].dropna().astype(str)
        marks = describe_number_marks(entries.unique().tolist())
        if marks:
            yield Finding(
                "number_marks", "warning", f"{column.name} is read as {column.kind}: it holds "
                f"{marks}.", {"column": column.name},
            )  # fmt: skip


def _ids(looked: _LabelledTable) -> Iterator[Finding]:
    for name in looked.X:
        if is_id(looked.X[name]):
            yield Finding(
                "id_column", "warning", f"{name} is another whole number in each row, as an id is.",
                {"column": str(name)}, f"drop={[str(name)]}, unless it measures something",
            )  # fmt: skip


def _constants(looked: _LabelledTable) -> Iterator[Finding]:
    same = [c for c in looked.columns if c.used and _is_constant(looked.frame[c.name])]
    texts = [c.name for c in same if c.kind == CATEGORY]
    numbers = [c.name for c in same if c.kind != CATEGORY]
    yield from _constant(looked, texts, "another text in a new row would look unknown")
    yield from _constant(looked, numbers, "a change of it in a new row may go unseen")


def _is_constant(values: pd.Series) -> bool:
    return bool(values.nunique(dropna=False) == 1)


def _constant(looked: _LabelledTable, names: list[str], why: str) -> Iterator[Finding]:
    if names:
        told = list_names(f"{name} ({str(looked.frame[name].iloc[0])!r})" for name in names)
        many = "1 column has" if len(names) == 1 else f"{len(names):,} columns have"
        drop = f"drop={names[:8]}" + " and the others" * (len(names) > 8)
        yield Finding(
            "constant_column", "warning", f"{many} one value in all rows: {told}.",
            {"columns": len(names)}, f"{drop}: {why}",
        )  # fmt: skip


def _gaps(looked: _LabelledTable) -> Iterator[Finding]:
    for column in looked.columns:
        if column.missing > _GAPS:
            yield Finding(
                "many_gaps", "note", f"{column.name} is missing in {column.missing:.0%} of rows.",
                {"column": column.name, "missing": column.missing},
            )  # fmt: skip


def _dates(looked: _LabelledTable) -> Iterator[Finding]:
    dates = [c.name for c in looked.columns if c.kind == DATE]
    if dates:
        yield Finding(
            "dates", "note",
            f"Dates: {list_names(dates)}. A model sees month and weekday of them.",
            {"columns": len(dates)},
            f"if rows come in time, test on later ones: time_column={dates[0]!r}",
        )  # fmt: skip


def _duplicates(looked: _LabelledTable) -> Iterator[Finding]:
    if not looked.frame.shape[1]:
        return
    keys = _keys(looked.frame, looked.columns)
    copies = int(keys.duplicated().sum())
    if not copies:
        return
    pairs = pd.DataFrame({"key": keys, "y": looked.frame.index.map(dict(enumerate(looked.y)))})
    torn = int((pairs.groupby("key")["y"].nunique() > 1).sum())
    are = "is a copy" if copies == 1 else "are copies"
    yield Finding(
        "duplicates", "note", f"{_rows(copies)} {are} of an earlier one.", {"rows": copies},
        "copies in a test set make a model look better than it is",
    )  # fmt: skip
    if torn:
        come = "comes" if torn == 1 else "come"
        yield Finding(
            "conflicting_copies", "warning",
            f"{_rows(torn)} {come} with more than one class though all else is equal.",
            {"rows": torn}, "no model can tell these apart; look for a mistake in the classes",
        )  # fmt: skip


def _keys(frame: pd.DataFrame, columns: Sequence[ColumnSpec]) -> pd.Series:
    """Return a number for each row, equal where all entries are one value, however written."""
    numbers = {column.name: column for column in columns if column.kind == NUMERIC}
    parts = {
        name: numbers[name].read(frame[name])[0][name]
        if name in numbers
        else texts_of(frame[name], ()).astype(str)
        for name in frame
    }
    return pd.util.hash_pandas_object(pd.DataFrame(parts), index=False)


def _twins(looked: _LabelledTable) -> Iterator[Finding]:
    seen: dict[int, str] = {}
    for column in looked.columns:
        values = looked.frame[column.name].astype(str)
        if _is_constant(values):
            continue
        key = int(pd.util.hash_pandas_object(values, index=False).sum())
        first = seen.setdefault(key, column.name)
        if first != column.name and values.equals(looked.frame[first].astype(str)):
            yield Finding(
                "equal_columns", "note", f"{column.name} equals {first}.",
                {"column": column.name}, f"drop={[column.name]}",
            )  # fmt: skip


def _leaks(looked: _LabelledTable) -> Iterator[Finding]:
    """Columns that alone give the class away, in trees on parts of the rows."""
    y = LabelEncoder().fit_transform(looked.y)
    enough = len(y) and np.bincount(y).min() >= _FOLDS and len(np.unique(y)) > 1
    if not enough:
        return
    rows = np.linspace(0, len(y) - 1, min(len(y), _LEAK_ROWS)).astype(int)
    for name in looked.X:
        if _is_constant(looked.X[name]):
            continue
        share = _accuracy_of(looked.X[name].iloc[rows], y[rows])
        if share >= _LEAK:
            yield Finding(
                "leak", "warning",
                f"{name} alone gives the class of {share:.1%} of held-out rows (mean of classes).",
                {"column": str(name), "balanced_accuracy": share},
                f"if it is known only after the class, or made of it: drop={[str(name)]}",
            )  # fmt: skip


def _accuracy_of(values: pd.Series, y: np.ndarray) -> float:
    is_category = isinstance(values.dtype, pd.CategoricalDtype)
    codes = values.cat.codes.to_numpy(float) if is_category else values.to_numpy(float)
    if len(np.unique(codes)) > _MANY * len(codes) and is_category:
        return 0.0
    tree = DecisionTreeClassifier(min_samples_leaf=_LEAF, random_state=0)
    scores = cross_val_score(tree, codes[:, None], y, cv=_FOLDS, scoring="balanced_accuracy")
    return float(scores.mean())


def _overlap(
    frame: pd.DataFrame, columns: Sequence[ColumnSpec], test: Table, rows: int | None
) -> list[Finding]:
    other = sample_rows(test, rows).frame
    shared = [name for name in frame.columns if name in other.columns]
    if not shared:
        raise UserError(f"{test.path} has no column of the other table: {list_names(test.names)}")
    both = int(np.isin(_keys(other[shared], columns), _keys(frame[shared], columns)).sum())
    if not both:
        return [Finding("overlap", "ok", f"No row of {test.path} is among those to learn from.")]
    text = f"{both:,} of {len(other):,} rows of {test.path} are among those to learn from."
    return [Finding("overlap", "warning", text, {"rows": both}, "leave them out of the test")]


_CHECKS: tuple[Callable[[_LabelledTable], Iterator[Finding]], ...] = (
    _rare_classes,
    _leaks,
    _marks,
    _ids,
    _constants,
    _gaps,
    _texts,
    _dates,
    _duplicates,
    _twins,
)
