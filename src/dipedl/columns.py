"""Columns of tables and arrays: what they hold, and what is usual in those of a fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from numbers import Number, Real
from types import NoneType
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2 import dependencies
from scipy import sparse

from .maths.arrays import is_missing
from .writing.text import number_text

#: Kinds of columns: numbers (booleans too), levels (text, categories), nothing at all.
NUMBER, LEVEL, EMPTY = "number", "level", "empty"
_DATE = "date"
_IN_WORDS: dict[str | None, str] = {NUMBER: "numbers", LEVEL: "text or categories", _DATE: "dates"}
#: What the entries are by the kind of a dtype of NumPy; of objects each entry tells.
_OF_NUMPY = dict.fromkeys("biuf", NUMBER) | dict.fromkeys("UT", LEVEL) | dict.fromkeys("mM", _DATE)
_MOST_ROWS = 10_000
#: Levels of a column of which rows are counted.
MOST_LEVELS = 50
#: Ranges of a column of numbers with about as many rows in each.
_RANGES = 10
#: What is usual in a column of numbers: all but the lowest and the highest 5 %.
_USUAL = (0.05, 0.95)
_MOST_SHOWN = 3
#: A gap or a level that fewer rows of the fit had is unusual.
_RARE = 0.05
#: A column of levels of which more than this share of the entries has one of its own.
_IDENTIFIER = 0.5
_UNKNOWN = (np.nan, np.nan)
#: Types of dates and times.
_DATES = (date, datetime, time, timedelta, np.datetime64, np.timedelta64)
#: Why a density takes none, and the remedy.
NO_DATES = (
    ", and a density cannot know which new dates are usual: turn them into numbers that come "
    "again, such as month, weekday or age in days, or drop the column"
)


def is_frame(X: Any) -> bool:
    """Return whether X is a DataFrame of pandas (or of a library like it) or of polars."""
    return not isinstance(X, np.ndarray) and (is_pandas(X) or dependencies.is_polars_dataframe(X))


def is_pandas(X: Any) -> bool:
    """Return whether X is a DataFrame of pandas, or of a library like it."""
    return dependencies.is_pandas_like_dataframe(X)


def column(X: Any, j: int) -> Any:
    """Return column j of a DataFrame as a series, of an array as an array (n,)."""
    if not is_frame(X):
        return X[:, j]
    return X.iloc[:, j] if is_pandas(X) else X.to_series(j)


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a DataFrame, the numbers of those of an array."""
    return list(X.columns) if is_frame(X) else list(range(X.shape[1]))


def column_texts(X: Any) -> list[str]:
    """Return the names of the columns as texts; x0, x1, ... for those of an array."""
    return [str(name) if is_frame(X) else f"x{name}" for name in column_names(X)]


def named_columns(X: Any) -> list[tuple[Any, Any]]:
    """Return name and values of each column of a DataFrame; of an array, number and values.

    Sparse rows, images and texts have none.
    """
    if not has_columns(X):
        return []
    return [(name, column(X, j)) for j, name in enumerate(column_names(X))]


def has_columns(X: Any) -> bool:
    """Return whether X is a DataFrame or an array (n, d): no sparse rows, images or texts."""
    return is_frame(X) or (isinstance(X, np.ndarray) and X.ndim == 2)


def missing_entries(values: Any) -> np.ndarray:
    """Return where a column is missing, shape (n,)."""
    if dependencies.is_into_series(values):
        series = nw.from_native(values, series_only=True)
        if series.dtype.is_float():  # a gap becomes NaN, and NaN is one
            return np.asarray(np.isnan(series.to_numpy()))
        return np.asarray(series.is_null().to_numpy(), dtype=bool)
    plain = np.asarray(values)
    if plain.dtype.kind in "biufUS":
        return np.asarray(
            np.isnan(plain) if plain.dtype.kind == "f" else np.zeros(len(plain), bool)
        )
    return np.array([is_missing(value) for value in plain.tolist()], dtype=bool)


def present_entries(values: Any) -> list[Any]:
    """Return the entries of a column that are not missing, as plain Python values."""
    return list(np.asarray(values)[~missing_entries(values)].tolist())


def numbers_of(values: Any) -> np.ndarray | None:
    """Return a column as float64 (n,), NaN where it is missing.

    None if an entry is neither a number nor the text of one.
    """
    present = ~missing_entries(values)
    numbers = np.full(len(present), np.nan)
    try:
        numbers[present] = np.asarray(values)[present].tolist()
    except (TypeError, ValueError):
        return None
    return numbers


def as_numbers(X: Any) -> np.ndarray | None:
    """Return rows X (n, d), a table or an array, as float64; None unless all are numbers.

    Categories, and numbers that are spelt out, are no numbers. None counts as NaN.
    """
    if sparse.issparse(X):
        return None
    if is_frame(X) and any(is_category(column(X, j)) for j in range(X.shape[1])):
        return None
    try:
        values = X.to_numpy() if is_frame(X) else np.asarray(X)
    except TypeError:
        # polars has no common type for dates and numbers.
        return None
    if values.dtype.kind == "O":
        types = {type(value) for value in values.ravel().tolist()}
        if not all(issubclass(t, Real | Decimal | np.bool_ | NoneType) for t in types):
            return None
    return values.astype(np.float64, copy=False) if values.dtype.kind in "biufO" else None


def kind_of(values: Any, name: Any) -> str:
    """Return the kind of a column; raise ValueError for dates and for mixed types."""
    if holds_dates(values):
        raise ValueError(f"X has dates in column {name!r}{NO_DATES}")
    if missing_entries(values).all():
        return EMPTY
    if (kind := kind_of_dtype(values)) is not None:
        return kind
    types = types_of(values)
    kinds = set(map(_kind_of_type, types))
    if any(issubclass(t, list | tuple | dict | np.ndarray) for t in types):
        raise ValueError(
            f"X has lists, arrays or records in column {name!r}, and a column holds one number or "
            "one text for each row: make a column of each of their parts"
        )
    if len(kinds) > 1 or None in kinds:
        own = f"X[:, {name!r}]" if isinstance(values, np.ndarray) else f"X[{name!r}]"
        raise ValueError(
            f"X has mixed types in column {name!r}: {', '.join(sorted(t.__name__ for t in types))}"
            f"; make it one type, such as {own} = {own}.astype(str)"
        )
    return LEVEL if LEVEL in kinds or is_category(values) else NUMBER


def kind_of_dtype(values: Any) -> str | None:
    """Return the kind of all entries of a column by its dtype; None if only they tell."""
    if isinstance(values.dtype, np.dtype):
        return _OF_NUMPY.get(values.dtype.kind)
    dtype = nw.from_native(values, series_only=True).dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return NUMBER
    if dtype.is_temporal():
        return _DATE
    # Categories of pandas may be numbers, those of polars are texts.
    text = dtype == nw.String or (is_category(values) and dependencies.is_polars_series(values))
    return LEVEL if text else None


def _kind_of_type(entry: type) -> str | None:
    """Return the kind of entries of a type: text, numbers or dates; None for any other."""
    if issubclass(entry, str):
        return LEVEL
    if issubclass(entry, Number | np.bool_):
        return NUMBER
    return _DATE if is_date(entry) else None


def is_date(kind: type) -> bool:
    """Return whether a type is one of dates or times."""
    pandas = dependencies.get_pandas()
    # Its Period derives from none of Python's types.
    return issubclass(kind, _DATES) or (pandas is not None and issubclass(kind, pandas.Period))


def holds_dates(values: Any) -> bool:
    """Return whether a column holds a date or a time."""
    return _DATE in entry_kinds(values)


def date_columns(X: Any) -> dict[int, Any]:
    """Return the names of the columns of X (n, d) that hold dates or times, by their numbers."""
    columns = enumerate(named_columns(X))
    return {j: name for j, (name, values) in columns if holds_dates(values)}


def entry_kinds(values: Any) -> set[str | None]:
    """Return the kinds of the entries of a column that are not missing."""
    kind = kind_of_dtype(values)
    return {kind} if kind is not None else set(map(_kind_of_type, types_of(values)))


def types_of(values: Any) -> set[type]:
    """Return the types of the entries of a column that are not missing."""
    return set(map(type, present_entries(values)))


def is_category(values: Any) -> bool:
    """Return whether a column is a series with a dtype of categories."""
    if isinstance(values.dtype, np.dtype):
        return False
    dtype = nw.from_native(values, series_only=True).dtype
    # A dictionary of Arrow in pandas has no categories to ask for.
    return isinstance(dtype, nw.Categorical | nw.Enum) and hasattr(values, "cat")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the inputs of a fit: its name, its kind and what is usual in it.

    Attributes
    ----------
    name : str
        x0, x1, ... without names.
    low, high : float
        The 5 % and 95 % quantiles of a column of numbers, in the units of the user; NaN for any
        other.
    missing : float
        Share of the rows in which it is missing.
    levels : dict or None
        Of a column of levels (text, categories, booleans) the share of the rows by level, the most
        frequent first; none where hardly a level comes twice. None for a column of numbers.
    categories : list or None
        Those of a dtype of categories, in their order.
    cuts : ndarray, shape (r + 1,)
        Of a column of numbers: the smallest number, the ends of all ranges but the last, which
        belong to these ranges, and the largest number. Empty without numbers.
    ranges : ndarray, shape (r,)
        Rows of the fit in each range: ten, or fewer of a number that comes often; of at most 10,000
        rows spread over all.
    rows : int
        Number of rows of the fit.
    """

    name: str
    low: float
    high: float
    missing: float
    levels: dict[Any, float] | None = None
    categories: list[Any] | None = None
    cuts: np.ndarray = field(default_factory=partial(np.zeros, 0))
    ranges: np.ndarray = field(default_factory=partial(np.zeros, 0))
    rows: int = 0

    @property
    def counts(self) -> np.ndarray:
        """Rows of the fit in each range, or of each of 50 levels and of others; and with a gap.

        A column without ranges and levels, as one of gaps alone, is one range.
        """
        if self.levels:
            shares = np.array(list(self.levels.values())[:MOST_LEVELS])
            others = 1 - self.missing - shares.sum()
            # Whole rows: what rounding leaves of no row would make a new level an impossible one.
            return np.asarray(np.rint(np.array([*shares, others, self.missing]) * self.rows))
        if not len(self.ranges):
            return np.array([1 - self.missing, self.missing]) * self.rows
        known = self.ranges.sum()
        return np.append(self.ranges, known / (1 - self.missing) - known)

    @property
    def kind(self) -> str | None:
        """`NUMBER` or `LEVEL`, as the entries of the fit were; None if both, or neither."""
        if self.levels is None:
            return None if np.isnan(self.low) else NUMBER
        known: Iterable[Any] = self.levels or self.categories or [""]
        kinds = {_kind_of_type(t) for t in set(map(type, known))}
        return kinds.pop() if len(kinds) == 1 else None

    def usual_range(self, unit: Callable[[float], float] = float) -> tuple[float, float]:
        """Return the usual range of a column of numbers in a `unit`."""
        low, high = sorted((unit(self.low), unit(self.high)))
        return low, high

    def describe_usual(self, unit: Callable[[float], float] = float) -> str:
        """Describe what is usual, numbers in a `unit`; "" if nothing is known."""
        if self.levels is not None:
            first = list(self.levels.items())[:_MOST_SHOWN]
            return ", ".join(f"{level!r} {share:.0%}" for level, share in first)
        if np.isnan(self.low):
            return ""
        return " to ".join(map(number_text, self.usual_range(unit)))

    def share(self, value: Any) -> float | None:
        """Return the share of the rows of the fit that had a level, or a gap for None.

        None for a number, and for a level of a column where hardly one comes twice.
        """
        if value is None:
            return self.missing
        return self.levels.get(value, 0.0) if self.levels else None

    def is_unusual(self, value: Any, unit: Callable[[float], float] = float) -> bool:
        """Return whether few rows of the fit had a value (in a `unit`) like this.

        A number outside of the usual range; a gap, or a level, of less than 5 % of the rows, and a
        level of less than half of an even share too: of 100 even levels none is unusual.
        """
        if value is None:
            return self.missing < _RARE
        if self.levels is not None:
            own = self.share(value)
            return own is not None and own < min(_RARE, 0.5 / len(self.levels))
        if np.isnan(self.low):
            return False
        low, high = self.usual_range(unit)
        return bool(value < low or value > high)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a fit: names, kinds, levels, gaps and usual values of their columns.

    New rows are checked against them. ``inputs[j]`` is the `Column` j.

    Attributes
    ----------
    names : list of str, length d
    low, high, missing : ndarray, shape (d,)
    levels : dict of int to dict
    categories : dict of int to list
    rows : int
        As of each `Column`, of all of them.
    cuts : ndarray, shape (d, 11)
    ranges : ndarray, shape (d, 10)
        Cuts may be equal, with no row in the range between; NaN where a column holds no numbers.
    """

    names: list[str]
    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    levels: dict[int, dict[Any, float]]
    categories: dict[int, list[Any]]
    rows: int
    cuts: np.ndarray
    ranges: np.ndarray

    @classmethod
    def of_numbers(cls, names: list[str], X: np.ndarray) -> Self:
        """Learn what is usual in columns of numbers X (n, d), NaN where one is missing."""
        some, missing = _some_rows(X), np.isnan(X).mean(axis=0)
        low, high = _quantiles(some)
        ranges = _cut(some, _extremes(X))
        return cls(names, low, high, missing, {}, {}, len(X), *ranges)

    @classmethod
    def learn(cls, X: Any) -> Self | None:
        """Learn what is usual in the columns of X (n, d); None for sparse rows, images, texts."""
        if not has_columns(X):
            return None
        d, names = X.shape[1], column_texts(X)
        if not is_frame(X) and X.dtype.kind in "iuf":
            return cls.of_numbers(names, X)
        parts = [column(X, j) for j in range(d)]
        levels = {j: of for j, part in enumerate(parts) if (of := _levels(part)) is not None}
        ends = np.full((d, 2), np.nan)
        some = np.full((min(X.shape[0], _MOST_ROWS), d), np.nan)
        for j, part in enumerate(parts):
            dates = np.asarray(part).dtype.kind in "mM"
            numbers = None if dates or j in levels else numbers_of(part)
            if numbers is not None:
                numbers = numbers[:, None]
                ends[j], some[:, j] = _extremes(numbers)[0], _some_rows(numbers)[:, 0]
        missing = np.array([missing_entries(part).mean() for part in parts])
        low, high = _quantiles(some)
        ranges = _cut(some, ends)
        return cls(names, low, high, missing, levels, categories(X), X.shape[0], *ranges)

    def __getitem__(self, j: int) -> Column:
        return Column(
            self.names[j],
            float(self.low[j]),
            float(self.high[j]),
            float(self.missing[j]),
            self.levels.get(j),
            self.categories.get(j),
            *self._ranges(j),
            self.rows,
        )

    def _ranges(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return cuts and rows of the ranges of a column, each cut once."""
        if np.isnan(self.cuts[j]).any():
            return np.zeros(0), np.zeros(0)
        ends, first = np.unique(self.cuts[j, 1:-1], return_index=True)
        ranges = np.add.reduceat(self.ranges[j], [*first, _RANGES - 1])
        return np.concatenate([self.cuts[j, :1], ends, self.cuts[j, -1:]]), ranges

    def text_columns(self) -> list[str]:
        """Names of the columns of levels that are no booleans."""
        booleans = {j for j, known in self.levels.items() if known and set(known) <= {True, False}}
        coded = self.levels.keys() - (booleans - self.categories.keys())
        return [self.names[j] for j in sorted(coded)]

    def describe_new(self, X: Any) -> list[list[str]]:
        """List for each row of X (n, d) what the fit never saw: new levels, first gaps, values."""
        texts = []
        for j, name in enumerate(self.names):
            known: Container[Any] = self.levels.get(j, ())
            if self.missing[j] == 0:
                texts.append(first_gaps(name, column(X, j)))
            if known or self.missing[j] == 1:
                texts.append(new_levels(name, column(X, j), known))
        return by_row(texts, X.shape[0])

    def rows_with_new(self, X: Any) -> np.ndarray:
        """Return the rows of X (n, d) with a level that the fit never saw, or with a first gap.

        A gap is one where text or categories are, in a column without gaps in the fit.
        """
        new, texts = np.zeros(X.shape[0], dtype=bool), self.text_columns()
        for j, levels in self.levels.items():
            if self.missing[j] == 0 and self.names[j] in texts:
                new |= missing_entries(column(X, j))
            known: Container[Any] = levels or self.categories.get(j, [])
            if known:
                new |= np.array(new_levels("", column(X, j), known)) != ""
        return new

    def restore_gaps(self, X: Any) -> Any:
        """Return X (n, d) with NaN for "nan" in an array of texts, unless the fit had such a level.

        NumPy makes this text of a gap beside texts.
        """
        if not (isinstance(X, np.ndarray) and X.dtype.kind == "U" and X.ndim == 2):
            return X
        gaps = X == "nan"
        gaps[:, [j for j, levels in self.levels.items() if "nan" in levels]] = False
        return np.where(gaps, np.nan, X.astype(object)) if gaps.any() else X

    def refuse_other_types(self, X: Any) -> None:
        """Raise ValueError for text in X (n, d) where the fit had numbers, or the reverse.

        No text equals a number: each would count as a new level.
        """
        if sparse.issparse(X) or X.shape[1:] != (len(self.names),):
            return
        types = list(X.dtypes) if is_frame(X) else [X.dtype] * X.shape[1]
        last = {dtype: j for j, dtype in enumerate(types)}
        kinds = {dtype: kind_of_dtype(column(X, j)) for dtype, j in last.items()}
        for j, dtype in enumerate(types):
            if kinds[dtype] == NUMBER and j not in self.levels:
                continue
            kind = self[j].kind
            if kind is None or kinds[dtype] == kind:
                continue
            other = _first_of_other_kind(column(X, j), kinds[dtype], kind)
            if other is not None:
                row, value = other
                name = column_names(X)[j] if is_frame(X) else self.names[j]
                known = next(iter(self.levels.get(j, ())), None)
                such = "" if known is None else f", such as {known!r}"
                raise ValueError(
                    f"X has {_IN_WORDS[_kind_of_type(type(value))]} in column {name!r}, and fit "
                    f"had {_IN_WORDS[kind]} there{such} (X has {value!r} at row {row}): give the "
                    "column in the type of the fit"
                )


def _first_of_other_kind(values: Any, kind: str | None, kind_in_fit: str) -> tuple[int, Any] | None:
    """Find the first entry of a column of another kind than in the fit, with its row; else None.

    Gaps do not count, nor entries that are neither text, number nor date. `kind` is that of all.
    """
    known = (None, kind_in_fit)
    if kind is None and is_category(values):
        if all(_kind_of_type(t) in known for t in set(map(type, values.cat.categories))):
            return None
    entries = np.asarray(values, dtype=object).tolist()
    others = {t for t in set(map(type, entries)) if _kind_of_type(t) not in known}
    return next(
        ((i, v) for i, v in enumerate(entries) if type(v) in others and not is_missing(v)), None
    )


def by_row(texts: Iterable[list[str]], n: int) -> list[list[str]]:
    """Join the texts about each column, one per row (n,), to a list of texts for each row."""
    return [[text for text in row if text] for row in zip([""] * n, *texts, strict=True)]


def first_gaps(name: str, values: Any) -> list[str]:
    """Name, row by row, a column that is missing; "" where it is not."""
    return [f"{name} is missing" if gap else "" for gap in missing_entries(values)]


def new_levels(name: str, values: Any, known: Container[Any]) -> list[str]:
    """Name, row by row, the level of a column unless it is `known` or missing; else ""."""
    entries = zip(np.asarray(values).tolist(), missing_entries(values), strict=True)
    return ["" if gap or v in known else f"{name} = {v!r}" for v, gap in entries]


def is_identifier(counts: Counter[Any]) -> bool:
    """Return whether most entries of a column, by their counts, have a value that no other has."""
    once = sum(count == 1 for count in counts.values())
    return once > _IDENTIFIER * counts.total()


def categories(X: Any) -> dict[int, list[Any]]:
    """Return the categories of each column of a DataFrame of pandas with such a dtype."""
    if not is_pandas(X):
        return {}
    parts = enumerate(values for _, values in named_columns(X))
    return {j: list(values.cat.categories) for j, values in parts if is_category(values)}


def with_categories(X: Any, known: Mapping[int, list[Any]]) -> Any:
    """Return a DataFrame with the categories of the fit; a new one, which has no code, is missing.

    XGBoost would take the code of another category.
    """
    if not is_pandas(X):
        return X
    changed = {
        j: column(X, j).astype("category").cat.set_categories(levels)
        for j, levels in known.items()
        if not is_category(column(X, j)) or list(column(X, j).cat.categories) != levels
    }
    return replace_columns(X, changed)


def _levels(values: Any) -> dict[Any, float] | None:
    """Return the share of rows by level, most frequent first; None for numbers, dates, nothing.

    No level where hardly one comes twice.
    """
    numeric = np.asarray(values).dtype.kind in "iufmM" and not is_category(values)
    entries = [] if numeric else present_entries(values)
    some_text = any(isinstance(entry, str) for entry in entries)
    booleans = bool(entries) and all(isinstance(entry, bool) for entry in entries)
    if not (is_category(values) or some_text or booleans):
        return None
    counts = Counter(entry for entry in entries if isinstance(entry, Hashable))
    if is_identifier(counts):
        return {}
    order = sorted(counts, key=lambda level: (-counts[level], str(level)))
    return {level: counts[level] / len(values) for level in order}


def _some_rows(X: np.ndarray) -> np.ndarray:
    """Return at most 10,000 rows of X (n, d) spread over all, as float64.

    A column without a finite number in these holds, in its first rows, those of all others.
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(int)
    some = np.array(X[rows], dtype=np.float64)
    for j in np.flatnonzero(~np.isfinite(some).any(axis=0)):
        numbers = X[np.isfinite(X[:, j]), j][:_MOST_ROWS]
        some[: len(numbers), j] = numbers
    return some


def _extremes(X: np.ndarray) -> np.ndarray:
    """Return the smallest and the largest finite number of each column, (d, 2); NaN without any."""
    ends = np.stack([X.min(axis=0), X.max(axis=0)], axis=1, dtype=np.float64)
    for j in np.flatnonzero(~np.isfinite(ends).all(axis=1)):
        numbers = X[np.isfinite(X[:, j]), j]
        ends[j] = (numbers.min(), numbers.max()) if len(numbers) else np.nan
    return ends


def _cut(X: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cuts (d, 11) of the finite numbers of each column, and rows between (d, 10).

    `ends` (d, 2) are the outermost cuts.
    """
    cuts, ranges = np.full((X.shape[1], _RANGES + 1), np.nan), np.zeros((X.shape[1], _RANGES))
    for j, values in enumerate(np.ascontiguousarray(X.T)):
        some = values[np.isfinite(values)]
        if n := len(some):
            at = np.arange(1, _RANGES) * n // _RANGES
            cuts[j] = [ends[j, 0], *np.partition(some, at)[at], ends[j, 1]]
            below = [np.count_nonzero(some <= cut) for cut in cuts[j, 1:-1]]
            ranges[j] = np.diff(below, prepend=0, append=n)
    return cuts, ranges


def _quantiles(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the usual range of each column of some rows (n, d)."""
    if np.isfinite(some).all():
        low, high = np.quantile(some, _USUAL, axis=0)
        return low, high
    ends = [np.quantile(v, _USUAL) if len(v := c[np.isfinite(c)]) else _UNKNOWN for c in some.T]
    low, high = np.array(ends).T.copy()
    return low, high


def replace_columns(X: Any, changed: Mapping[int, Any]) -> Any:
    """Replace columns of a DataFrame of pandas by their numbers."""
    if not changed:
        return X
    X = X.copy()
    for j, values in changed.items():
        X.isetitem(j, values)
    return X


def rows_in_form_of(X: Any, rows: np.ndarray) -> Any:
    """Return numbers (n, d) in the form of X: with its names, dtypes and whole numbers."""
    if sparse.issparse(X):
        return type(X)(_in_dtype(rows, X.dtype))
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return _in_dtype(rows, X.dtype)
    parts = [_column_like(column(X, j), values) for j, values in enumerate(rows.T)]
    return (
        type(X)(dict(zip(X.columns, parts, strict=True))) if is_frame(X) else np.column_stack(parts)
    )


def _column_like(part: Any, values: np.ndarray) -> Any:
    """Return numbers (n,) in the form of a column: an array of objects, or a series."""
    dtype = np.asarray(part).dtype
    values = _in_dtype(
        values, np.asarray(present_entries(part)).dtype if dtype.kind == "O" else dtype
    )
    if isinstance(part, np.ndarray):
        return values.astype(object)
    if hasattr(part, "iloc"):
        return type(part)(values).astype(part.dtype)
    return type(part)(part.name, values).cast(part.dtype)


def _in_dtype(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the values, rounded where the dtype is of whole numbers or booleans."""
    return (np.rint(values) if dtype.kind in "iub" else values).astype(dtype)
