"""A table with its classes, read for a fit, and what is wrong with it before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import LabelEncoder
from sklearn.tree import DecisionTreeClassifier

from ...explanation import Diagnosis, Finding
from ...features.scaling import limits, outside_of
from .columns import (
    CATEGORY,
    DATE,
    FEWEST,
    NUMERIC,
    ONLY_GAPS,
    TEXT,
    ColumnSpec,
    as_inputs,
    check_target,
    check_usable,
    describe_gap_words,
    describe_number_marks,
    infer_column,
    mark_gaps,
    read_classes,
    split_types,
    texts_of,
    to_numbers,
)
from .errors import UserError, check_columns, list_names
from .reading import CSV, RejectedRow, Sample, Table, sample_rows

_LEAK, _LEAK_ROWS, _FOLDS, _LEAF = 0.98, 20_000, 3, 5
_GAPS, _RARE_CLASS = 0.5, 50
#: A column may name groups if it has so many values at least, with so many rows each at least,
#: that share of which repeats, and one of them at most the other share of the rows;
_GROUPS, _ROWS_OF_GROUP, _REPEATED, _LARGEST = 5, 2.0, 0.9, 0.5
#: it does if rows of one value differ by less than this share of what those of its neighbours do,
_ALIKE, _PAIRS = 0.8, 5_000


@dataclass(frozen=True)
class LabelledTable:
    """Rows of a table that have a class and can be read, by their columns.

    `frame` holds all columns as they are written, `names` are those of the inputs, `refused` the
    rows that are left out.
    """

    table: Table
    target: str
    names: list[str]
    sample: Sample
    frame: pd.DataFrame
    rows: np.ndarray
    columns: tuple[ColumnSpec, ...]
    X: pd.DataFrame
    y: pd.Series
    refused: list[RejectedRow]


def read_labelled(
    table: Table,
    target: str,
    drop: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    rows: int | None = None,
    seed: int = 0,
    problems: list[Finding] | None = None,
) -> LabelledTable:
    """Read a table, or `rows` of it drawn at random, with its classes.

    Classes and columns that no fit takes raise UserError, or are added to `problems` where given.
    """
    types = types or {}
    check_target(target, table)
    check_columns("drop", drop, table.names, table.path)
    check_columns("types", types, table.names, table.path)
    kinds, named = split_types(types, target)
    some = sample_rows(table, rows, seed)
    values = some.frame[target]
    try:
        labels, known, refused = read_classes(values, target, some.rows, named, table.gaps)
    except UserError as error:
        texts = texts_of(values)
        known = texts.notna().to_numpy()
        if problems is not None and known.any():
            problems.append(Finding("target", "warning", f"{error}."))
            labels, refused = texts[known].reset_index(drop=True), []
        else:
            why, n = str(error), len(some.refused)
            if n:
                why += f"; rows that cannot be read: {n:,}, first {some.refused[0]}"
            if some.total > n + len(some.frame):
                why += f"; these are {len(some.frame):,} of {some.total:,} rows: give more `rows`"
            raise UserError(why) from error
    names = [name for name in table.names if name not in (target, *drop)]
    frame = some.frame.loc[known].reset_index(drop=True)
    inputs, columns = frame[names], list[ColumnSpec]()
    for name in names:
        try:
            columns.append(infer_column(inputs, name, kinds))
        except UserError as error:
            if problems is None:
                raise
            problems.append(Finding("mixed_types", "warning", f"{error}."))
    X, fine, odd = as_inputs(columns, frame, some.rows[known])
    check_usable(fine, odd, table.path)
    frame, labels = frame[fine].reset_index(drop=True), labels[fine].reset_index(drop=True)
    refused = sorted([*some.refused, *refused, *odd])
    numbers = some.rows[known][fine]
    return LabelledTable(
        table, target, names, some, frame, numbers, tuple(columns), X, labels, refused
    )


def read_groups(read: LabelledTable, name: str) -> np.ndarray:
    """Return the group of each row (n,), such as its person, by a column of the table.

    Raises
    ------
    UserError
        If a row has no group, all have the same, or each has its own.
    """
    groups = texts_of(read.frame[name])
    gaps = np.flatnonzero(groups.isna())
    if len(gaps):
        raise UserError(
            f"`group_column` {name} is missing in {len(gaps):,} of {len(groups):,} rows, the first "
            f"is row {read.rows[gaps[0]]}; fill or leave out such rows"
        )
    number = groups.nunique()
    if not 1 < number < len(groups):
        why = "one value in all rows" if number == 1 else "another value in each row"
        raise UserError(
            f"`group_column` {name} has {why}: give a column that rows of one person, device or "
            "site share"
        )
    return np.asarray(groups, dtype=object).astype(str)


def check_table(
    tables: Sequence[Table],
    target: str,
    drop: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    rows: int | None = None,
) -> Diagnosis:
    """Find what is wrong with the first of the tables, worst first; the second is a test table.

    Raises
    ------
    UserError
        If there is no such target, or no class in it.
    """
    found: list[Finding] = []
    read = read_labelled(tables[0], target, drop, types, rows, problems=found)
    found += [one for look in (*_CHECKS, describe_columns) for one in look(read)]
    for test in tables[1:]:
        found.append(_overlap(read, test, rows))
    source = f"{len(read.sample.frame):,} of {read.sample.total:,} rows of {tables[0].path}"
    return Diagnosis(tuple(found), source)


def describe_columns(read: LabelledTable) -> Iterator[Finding]:
    """Describe the columns that a model does not see as they look: texts, ids, words for gaps."""
    texts = [c for c in read.columns if c.kind == TEXT and not c.why.startswith(ONLY_GAPS)]
    if texts:
        rare = any("texts" in c.why for c in texts)
        once = next((c.name for c in texts if "come once" in c.why), None)
        described = list_names(f"{c.name} ({c.why or 'as asked'})" for c in texts)
        yield Finding(
            "text_columns", "note", f"Left out as text: {described}.", {"columns": len(texts)},
            "a value that does not come again says nothing of a new row; make groups of them" * rare
            + (f", or use it as it is: types={ {once: CATEGORY} }" if once else ""),
        )  # fmt: skip
    for name, numbers in read.X.items():
        if numbers.dtype.kind == "f" and numbers.is_unique and (numbers % 1 == 0).all():
            yield Finding(
                "id_column", "warning", f"{name} is another whole number in each row, as an id is.",
                {"column": str(name)}, f"drop={[str(name)]}, unless it measures something",
            )  # fmt: skip
    words = describe_gap_words(read.target, read.y.unique(), read.columns)
    if words and read.table.format.kind == CSV:
        yield Finding("gap_words", "note", f"{words}.")


def _rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _refused_rows(read: LabelledTable) -> Iterator[Finding]:
    for one in read.sample.refused[:1]:
        n = len(read.sample.refused)
        yield Finding(
            "unreadable_rows", "warning", f"{_rows(n)} cannot be read: {one}.", {"rows": n},
            "mend these lines",
        )  # fmt: skip
    entries = [one for one in read.refused if one.column not in ("", read.target)]
    for one in entries[:1]:
        n = len(entries)
        yield Finding(
            "refused_rows", "warning", f"{_rows(n)} would be left out of a fit: {one}.",
            {"rows": n}, "mend such entries",
        )  # fmt: skip
    without = [one for one in read.refused if one.column == read.target]
    if without:
        have = "has" if len(without) == 1 else "have"
        yield Finding(
            "no_class", "note",
            f"{_rows(len(without))} {have} no class, the first is row {without[0].row}.",
            {"rows": len(without)}, "they are left out of a fit; score them with the model",
        )  # fmt: skip


def _classes(read: LabelledTable) -> Iterator[Finding]:
    counts = read.y.value_counts()
    rare = counts[(counts < _RARE_CLASS) & (counts >= FEWEST)]
    if len(rare):
        named = list_names(f"{name!r} ({n})" for name, n in rare.items())
        yield Finding(
            "rare_classes", "note", f"Classes of fewer than {_RARE_CLASS} rows: {named}.",
            {"classes": len(rare)}, "their probabilities will be rough: add rows of them",
        )  # fmt: skip
    largest, share = str(counts.index[0]), counts.iloc[0] / counts.sum()
    yield Finding(
        "classes", "ok", f"{len(counts)} classes; the largest, {largest!r}, has {share:.1%} of the "
        "rows.", {"classes": len(counts), "rows": int(counts.sum())},
    )  # fmt: skip


def _marks(read: LabelledTable) -> Iterator[Finding]:
    """Find columns of numbers that are read as texts for the characters in them."""
    for column in read.columns:
        if column.kind in (CATEGORY, TEXT):
            entries = read.frame[column.name].dropna().astype(str).unique().tolist()
            if marks := describe_number_marks(entries):
                yield Finding(
                    "number_marks", "warning", f"{column.name} is read as {column.kind}: it holds "
                    f"{marks}.", {"column": column.name},
                )  # fmt: skip


def _is_constant(values: pd.Series) -> bool:
    return bool(values.nunique(dropna=False) == 1)


def _constants(read: LabelledTable) -> Iterator[Finding]:
    same = [c for c in read.columns if c.used and _is_constant(read.frame[c.name])]
    texts = [c.name for c in same if c.kind == CATEGORY]
    numbers = [c.name for c in same if c.kind != CATEGORY]
    for names, why in (
        (texts, "another text in a new row would look unknown"),
        (numbers, "a change of it in a new row may go unseen"),
    ):
        if names:
            values = list_names(f"{name} ({str(read.frame[name].iloc[0])!r})" for name in names)
            many = "1 column has" if len(names) == 1 else f"{len(names):,} columns have"
            drop = f"drop={names[:8]}" + " and the others" * (len(names) > 8)
            yield Finding(
                "constant_column", "warning", f"{many} one value in all rows: {values}.",
                {"columns": len(names)}, f"{drop}: {why}",
            )  # fmt: skip


def _gaps_and_dates(read: LabelledTable) -> Iterator[Finding]:
    for name in (column.name for column in read.columns):
        one = name if name in read.X else f"{name}.month"
        values = read.X[one] if one in read.X else mark_gaps(read.frame[name])
        if (missing := float(values.isna().mean())) > _GAPS:
            yield Finding(
                "many_gaps", "note", f"{name} is missing in {missing:.0%} of rows.",
                {"column": name, "missing": missing}, f"drop={[name]}" if missing == 1 else "",
            )  # fmt: skip
    dates = [c.name for c in read.columns if c.kind == DATE]
    if dates:
        yield Finding(
            "dates", "note",
            f"Dates: {list_names(dates)}. A model sees month and weekday of them.",
            {"columns": len(dates)},
            f"if rows come in time, test on later ones: time_column={dates[0]!r}",
        )  # fmt: skip


def _far_values(read: LabelledTable) -> Iterator[Finding]:
    """Find columns of numbers in which a few values, or a code, lie far from the rest."""
    found, codes, rows = [], [], 0
    for name in (column.name for column in read.columns if column.kind == NUMERIC):
        numbers = read.X[name].dropna()
        if numbers.empty:
            continue
        values = numbers.to_numpy()[:, None]
        far = outside_of(*limits(values, codes=True), values)[:, 0]
        if far.any():
            rest, entries = values[~far], read.frame.loc[numbers.index[far], name].value_counts()
            entry = str(entries.index[0]).strip()
            found.append(f"{name} ({entry!r}, others from {rest.min():g} to {rest.max():g})")
            codes += [entry] if entries.iloc[0] > 1 and entry not in codes else []
            rows += int(entries.sum())
    if found:
        gaps = f"if {list_names(codes)} stands for a missing value: gaps={codes[:8]}; "
        yield Finding(
            "far_values", "note",
            f"Values far from the rest of their column: {list_names(found)}.",
            {"columns": len(found), "rows": rows},
            gaps * bool(codes) + "correct wrong ones, or take logarithms of a skewed column",
        )  # fmt: skip


def _copies(read: LabelledTable) -> Iterator[Finding]:
    """Find rows that are equal, and columns that are."""
    inputs = read.frame[read.names]
    keys = _keys(inputs, read.columns) if read.names else pd.Series(dtype=int)
    copies = int(keys.duplicated().sum())
    if copies:
        are = "is a copy" if copies == 1 else "are copies"
        yield Finding(
            "duplicates", "note", f"{_rows(copies)} {are} of an earlier one.", {"rows": copies},
            "copies in a test set make a model look better than it is",
        )  # fmt: skip
    torn = int((read.y.groupby(keys).nunique() > 1).sum()) if copies else 0
    if torn:
        come = "comes" if torn == 1 else "come"
        yield Finding(
            "conflicting_copies", "warning",
            f"{_rows(torn)} {come} with more than one class though all else is equal.",
            {"rows": torn}, "no model can tell these apart; look for a mistake in the classes",
        )  # fmt: skip
    seen: dict[int, str] = {}
    for name in (column.name for column in read.columns):
        values = inputs[name].astype(str)
        if _is_constant(values):
            continue
        first = seen.setdefault(int(pd.util.hash_pandas_object(values, index=False).sum()), name)
        if first != name and values.equals(inputs[first].astype(str)):
            yield Finding(
                "equal_columns", "note", f"{name} equals {first}.", {"column": name},
                f"drop={[name]}",
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


def _leaks(read: LabelledTable) -> Iterator[Finding]:
    """Find columns that alone give the class away, in trees on parts of the rows."""
    y = LabelEncoder().fit_transform(read.y)
    if not len(y) or np.bincount(y).min() < _FOLDS or y.max() < 1:
        return
    rows = np.linspace(0, len(y) - 1, min(len(y), _LEAK_ROWS)).astype(int)
    for name in read.X:
        if _is_constant(read.X[name]):
            continue
        share = _accuracy_of(read.X[name].iloc[rows], y[rows])
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
    tree = DecisionTreeClassifier(min_samples_leaf=_LEAF, random_state=0)
    scores: Any = cross_val_score(tree, codes[:, None], y, cv=_FOLDS, scoring="balanced_accuracy")
    return float(scores.mean())


def _groups(read: LabelledTable) -> Iterator[Finding]:
    """Find a column such as a patient's number: rows of one value are like one another.

    Of an age this is not so: rows of 41 are as much like those of 42.
    """
    rng = np.random.default_rng(0)
    others = {name: _ranks(read.X[name]) for name in read.X if not _is_constant(read.X[name])}
    found: dict[str, pd.Series] = {}
    for column in read.columns:
        if column.kind == DATE:
            continue
        name, values = column.name, texts_of(read.frame[column.name])
        counts, n = values.value_counts(), len(values)
        few = len(counts) < _GROUPS or len(counts) * _ROWS_OF_GROUP > n
        repeated, largest = counts[counts > 1].sum(), counts.max() if len(counts) else n
        if few or repeated < _REPEATED * n or largest > _LARGEST * n:
            continue
        ranks = [ranks for other, ranks in others.items() if other.partition(".")[0] != name]
        numbers = to_numbers(values, column.decimal) if column.kind == NUMERIC else None
        if numbers is not None and (numbers % 1 > 0).any():
            continue
        if ranks and _alike(values, numbers, np.column_stack(ranks), rng) < _ALIKE:
            found[name] = values
    kept: dict[str, int] = {}
    for name, values in sorted(found.items(), key=lambda one: -one[1].nunique()):
        # The age of a patient is one value in each of the patient's rows.
        if not any((values.groupby(found[finer]).nunique() <= 1).all() for finer in kept):
            kept[name] = values.nunique()
    for name, groups in kept.items():
        yield Finding(
            "group_column", "note",
            f"{name} looks like a group, such as a person, a device or a site: {groups:,} values, "
            "whose rows are like one another.", {"column": name, "groups": groups},
            f"if new rows will come from others: group_column={name!r}, by which whole groups are "
            "held out; else rates and accuracy are those of the same groups",
        )  # fmt: skip


def _ranks(values: pd.Series) -> np.ndarray:
    """Return numbers as ranks in [0, 1], and levels as a number for each, shape (n,)."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return np.asarray(values.cat.codes + 2.0)  # no two of them are nearer than the ends
    return np.asarray(values.rank(pct=True).fillna(-1.0))


def _alike(
    values: pd.Series, numbers: np.ndarray | None, ranks: np.ndarray, rng: np.random.Generator
) -> float:
    """Difference of two rows of one value, as a share of that of rows of neighbouring values.

    `ranks` (n, c) are those of the other columns. Neighbours are the next of the `numbers`, or any
    other of the texts.
    """
    groups, _ = pd.factorize(values if numbers is None else pd.Series(numbers), sort=True)
    number = rng.permutation(groups.max() + 1)[groups] if numbers is None else groups
    order = np.lexsort((rng.random(len(number)), number))
    order = order[number[order] >= 0]
    of_group = number[order]
    same = np.flatnonzero(np.diff(of_group) == 0)
    start = np.flatnonzero(np.diff(of_group, prepend=-1))
    size = np.diff(start, append=len(order))
    # A row of each group with a row of the next, as often as the smaller of both has rows.
    near = np.concatenate([
        np.column_stack([start[g] + np.arange(m), start[g + 1] + np.arange(m)])
        for g, m in enumerate(np.minimum(size[:-1], size[1:]))
    ])  # fmt: skip
    within, between = (
        np.minimum(np.abs(ranks[order[a]] - ranks[order[b]]), 1.0).mean()
        for a, b in (
            (pairs[:, 0], pairs[:, 1])
            for pairs in (np.column_stack([same, same + 1]), near)
            for pairs in (pairs[rng.permutation(len(pairs))[:_PAIRS]],)
        )
    )
    return float(within / between) if between else 1.0


def _overlap(read: LabelledTable, test: Table, rows: int | None) -> Finding:
    frame, other = read.sample.frame, sample_rows(test, rows).frame
    shared = [name for name in frame.columns if name in other.columns]
    if not shared:
        raise UserError(f"{test.path} has no column of the other table: {list_names(test.names)}")
    keys = (_keys(one[shared], read.columns) for one in (other, frame))
    both = int(np.isin(*keys).sum())
    if not both:
        return Finding("overlap", "ok", f"No row of {test.path} is among those to learn from.")
    text = f"{both:,} of {len(other):,} rows of {test.path} are among those to learn from."
    return Finding("overlap", "warning", text, {"rows": both}, "leave them out of the test")


_CHECKS: tuple[Callable[[LabelledTable], Iterator[Finding]], ...] = (
    _refused_rows,
    _classes,
    _leaks,
    _marks,
    _constants,
    _groups,
    _gaps_and_dates,
    _far_values,
    _copies,
)
