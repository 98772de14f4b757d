"""The columns of a table: what each holds, and what was usual in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Number, Real
from types import NoneType
from typing import Any

import numpy as np
from scipy import sparse

from .._validation import ColumnTypeError
from ..maths.checks import is_missing
from ..writing.numbers import number_text

#: Kinds of columns: numbers (booleans too), levels (text, categories), nothing at all.
NUMBER, LEVEL, EMPTY = "number", "level", "empty"
_DATE = "date"
_IN_WORDS: dict[str | None, str] = {NUMBER: "numbers", LEVEL: "text or categories", _DATE: "dates"}
#: How the names of types begin, in NumPy, pandas, Arrow and polars, whose entries are of one kind.
_OF_ONE_KIND = {
    NUMBER: ("int", "uint", "float", "double", "bool", "decimal"),
    LEVEL: ("str", "large_string", "utf8", "<u", ">u", "enum", "categorical"),
    _DATE: ("date", "time", "duration", "period"),
}
_MOST_ROWS = 10_000
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


def is_table(X: Any) -> bool:
    """Whether X is a DataFrame of pandas or polars."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def column(X: Any, j: int) -> Any:
    """Column j of a table as a series, of an array as an array (n,)."""
    if not is_table(X):
        return X[:, j]
    return X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)


def missing_entries(values: Any) -> np.ndarray:
    """Where a column is missing, shape (n,)."""
    if hasattr(values, "isna"):
        return np.asarray(values.isna(), dtype=bool)
    plain = np.asarray(values)
    if plain.dtype.kind in "biufUS":
        return np.asarray(
            np.isnan(plain) if plain.dtype.kind == "f" else np.zeros(len(plain), bool)
        )
    return np.array([is_missing(value) for value in plain.tolist()], dtype=bool)


def present(values: Any) -> list[Any]:
    """The entries of a column that are not missing, as plain Python values."""
    kept = np.asarray(values)[~missing_entries(values)]
    return list(kept.tolist())


def are_numbers(values: Any) -> bool:
    """Whether the entries of a column that are not missing are numbers, or texts of numbers."""
    try:
        np.asarray(present(values), dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def numbers(X: Any) -> np.ndarray | None:
    """Rows X (n, d), a table or an array, as float64; None unless they hold numbers alone.

    Categories, and numbers that are spelt out, are no numbers. None counts as NaN.
    """
    if sparse.issparse(X):
        return None
    if is_table(X) and any(is_category(column(X, j)) for j in range(X.shape[1])):
        return None
    try:
        values = X.to_numpy() if is_table(X) else np.asarray(X)
    except TypeError:
        # polars has no common type for dates and numbers.
        return None
    if values.dtype.kind == "O":
        types = {type(value) for value in values.ravel().tolist()}
        if not all(issubclass(t, Real | Decimal | np.bool_ | NoneType) for t in types):
            return None
    return values.astype(np.float64, copy=False) if values.dtype.kind in "biufO" else None


def kind_of(values: Any, name: Any) -> str:
    """What a column holds; ValueError, with a remedy, for dates and for mixed types."""
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", "") in "biuf" and isinstance(dtype, np.dtype):
        return EMPTY if dtype.kind == "f" and np.isnan(np.asarray(values)).all() else NUMBER
    types = {type(value) for value in present(values)}
    if _of_dates(dtype, types):
        raise ValueError(f"X has dates in column {name!r}{NO_DATES}")
    if not types:
        return EMPTY
    return _kind_of_objects(types, name, is_category(values))


def _of_dates(dtype: Any, types: set[type]) -> bool:
    """Whether a column of a dtype, with entries of these types, holds dates or times."""
    return getattr(dtype, "kind", "") in ("M", "m") or any(map(is_date, types))


def is_date(kind: type) -> bool:
    """Whether a type is one of dates or times; pandas' Period derives from none of Python's."""
    return issubclass(kind, _DATES) or (kind.__name__, kind.__module__[:6]) == ("Period", "pandas")


def date_columns(X: Any) -> list[Any]:
    """Names (of an array: numbers) of the columns of X (n, d) that hold dates or times."""
    if sparse.issparse(X) or len(X.shape) != 2:
        return []
    names = list(X.columns) if is_table(X) else list(range(X.shape[1]))
    parts = [column(X, j) for j in range(len(names))]
    return [
        name for name, part in zip(names, parts, strict=True) if _of_dates(part.dtype, _types(part))
    ]


def _types(values: Any) -> set[type]:
    """Types of the entries of a column that are not missing; none of a column of numbers."""
    plain = getattr(values.dtype, "kind", "") in ("b", "i", "u", "f")
    return set() if plain else {type(value) for value in present(values)}


def _kind_of_objects(types: set[type], name: Any, category: bool) -> str:
    numbers = {t for t in types if issubclass(t, Number | np.bool_)}
    texts = {t for t in types if issubclass(t, str)}
    if types - numbers - texts or (numbers and texts):
        raise ValueError(
            f"X has mixed types in column {name!r}: {', '.join(sorted(t.__name__ for t in types))}"
            f"; make it one type, such as X[{name!r}] = X[{name!r}].astype(str)"
        )
    return LEVEL if texts or category else NUMBER


def is_category(values: Any) -> bool:
    """Whether a series has a dtype of categories."""
    kind = str(getattr(values, "dtype", "")).lower()
    return kind.startswith(("category", "categorical", "enum"))


@dataclass(frozen=True, eq=False)
class InputColumns:
    """What the inputs of the fit were like, column by column, in the units of the user.

    Attributes
    ----------
    names : list of str, length d
        Names of the columns; x0, x1, ... without names.
    low, high : ndarray, shape (d,)
        The 5 % and 95 % quantiles of a column of numbers; NaN for any other.
    missing : ndarray, shape (d,)
        Share of the rows in which the column is missing.
    levels : dict of int to dict
        For each column of levels (text, categories, booleans) the share of the rows by level, the
        most frequent first; none where hardly a level comes twice.
    categories : dict of int to list
        For each column with a dtype of categories, these in their order.
    dtypes : list of str, length d, or None
        Of a DataFrame of pandas, the names of its dtypes.
    """

    names: list[str]
    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    levels: dict[int, dict[Any, float]]
    categories: dict[int, list[Any]]
    dtypes: list[str] | None = None

    def of_text(self) -> list[str]:
        """Names of the columns of levels that are no booleans."""
        booleans = {j for j, known in self.levels.items() if known and set(known) <= {True, False}}
        coded = self.levels.keys() - (booleans - self.categories.keys())
        return [self.names[j] for j in sorted(coded)]

    def usual(self, j: int, unit: Callable[[float], float] = float) -> str:
        """What is usual in column j, in words, its numbers in a `unit`; "" if nothing is known."""
        if j in self.levels:
            shown = list(self.levels[j].items())[:_MOST_SHOWN]
            return ", ".join(f"{level!r} {share:.0%}" for level, share in shown)
        if np.isnan(self.low[j]):
            return ""
        low, high = sorted((unit(float(self.low[j])), unit(float(self.high[j]))))
        return f"{number_text(low)} to {number_text(high)}"

    def share(self, j: int, value: Any) -> float | None:
        """Share of the rows of the fit that had a level, or None for a gap, in column j.

        None for a number, and for a level of a column where hardly one comes twice.
        """
        if value is None:
            return float(self.missing[j])
        return self.levels[j].get(value, 0.0) if self.levels.get(j) else None

    def is_unusual(self, j: int, value: Any, unit: Callable[[float], float] = float) -> bool:
        """Whether few rows of the fit had a value (in a `unit`) like this in column j.

        A number outside of the usual range; a gap, or a level, of less than 5 % of the rows, and a
        level of less than half of an even share too: of 100 even levels none is unusual.
        """
        if value is None:
            return bool(self.missing[j] < _RARE)
        if j in self.levels:
            own = self.share(j, value)
            return own is not None and own < min(_RARE, 0.5 / len(self.levels[j]))
        if np.isnan(self.low[j]):
            return False
        low, high = sorted((unit(float(self.low[j])), unit(float(self.high[j]))))
        return bool(value < low or value > high)

    def news(self, X: Any) -> list[list[str]]:
        """For each row of X (n, d), what the fit never saw: new levels, first gaps and values."""
        return by_row(self._news(X), X.shape[0])

    def new(self, X: Any) -> np.ndarray:
        """Rows of X (n, d) with a level that the fit never saw, or with a first gap, shape (n,).

        A gap is one where text or categories are, in a column without gaps in the fit.
        """
        new, texts = np.zeros(X.shape[0], dtype=bool), self.of_text()
        for j, levels in self.levels.items():
            if self.missing[j] == 0 and self.names[j] in texts:
                new |= missing_entries(column(X, j))
            known: Container[Any] = levels or self.categories.get(j, [])
            if known:
                new |= np.array(new_levels("", column(X, j), known)) != ""
        return new

    def refuse_other_types(self, X: Any) -> None:
        """Raise ColumnTypeError for text in X (n, d) where the fit had numbers, or the reverse.

        No text equals a number: each would count as a new level.
        """
        if sparse.issparse(X) or X.shape[1:] != (len(self.names),):
            return
        types = list(X.dtypes) if is_table(X) else [X.dtype] * X.shape[1]
        of = {dtype: _kind_of_dtype(dtype) for dtype in set(types)}
        for j, dtype in enumerate(types):
            if of[dtype] == NUMBER and j not in self.levels:
                continue
            held = self._held(j)
            if held is None or of[dtype] == held:
                continue
            other = _first_other(column(X, j), of[dtype], held)
            if other is not None:
                self._refuse(X, j, held, *other)

    def _held(self, j: int) -> str | None:
        """What column j held, numbers or text; None if both, or something else."""
        if j not in self.levels:
            return None if np.isnan(self.low[j]) else NUMBER
        known: Iterable[Any] = self.levels[j] or self.categories.get(j, [""])
        kinds = {_kind_of_type(t) for t in set(map(type, known))}
        return kinds.pop() if len(kinds) == 1 else None

    def _refuse(self, X: Any, j: int, held: str, row: int, value: Any) -> None:
        name = list(X.columns)[j] if is_table(X) else self.names[j]
        raise ColumnTypeError(
            f"X has {_IN_WORDS[_kind_of_type(type(value))]} in column {name!r}, and fit had "
            f"{_IN_WORDS[held]} there (X has {value!r} at row {row}): give the column in the type "
            f"of the fit{self._as_in_fit(X, j, held, value)}"
        )

    def _as_in_fit(self, X: Any, j: int, held: str, value: Any) -> str:
        """How a column with a value of another type becomes one of the type of the fit, in code."""
        pandas = hasattr(X, "iloc")
        gaps = pandas and bool(missing_entries(column(X, j)).any())
        types = _conversions(held, value, self.levels.get(j, {}), gaps)
        if not types:
            return ""
        if is_table(X) and not pandas:
            casts = "".join(f".cast({name})" for name in types)
            return f", X.with_columns(pl.col({X.columns[j]!r}){casts})"
        casts = "".join(f".astype({name})" for name in types)
        if pandas:
            own = f"X[{X.columns[j]!r}]"
            return f", {own} = {own}{casts}"
        return f", such as X[:, {j}]{casts}"

    def _news(self, X: Any) -> Iterator[list[str]]:
        for j, name in enumerate(self.names):
            known: Container[Any] = self.levels.get(j, ())
            if self.missing[j] == 0:
                yield first_gaps(name, column(X, j))
            if known or self.missing[j] == 1:
                yield new_levels(name, column(X, j), known)


def _kind_of_dtype(dtype: Any) -> str | None:
    """What a column of a dtype holds; None if only its entries tell."""
    name = str(dtype).lower()
    of = (kind for kind, begins in _OF_ONE_KIND.items() if name.startswith(begins))
    return next(of, None)


def _kind_of_type(entry: type) -> str | None:
    """What entries of a type are: text, numbers or dates; None if something else."""
    if issubclass(entry, str):
        return LEVEL
    if issubclass(entry, Number | np.bool_):
        return NUMBER
    return _DATE if is_date(entry) else None


def _first_other(values: Any, kind: str | None, held: str) -> tuple[int, Any] | None:
    """Row and value of the first entry of a column that is not what the fit `held`; None if none.

    Nor is a gap, or an entry that is neither text, number nor date. `kind` is that of all entries.
    """
    if hasattr(values, "cat") and kind is None and not _others(values.cat.categories, held):
        return None
    entries = np.asarray(values, dtype=object).tolist()
    others = _others(entries, held)
    return next(
        ((i, v) for i, v in enumerate(entries) if type(v) in others and not is_missing(v)), None
    )


def _others(values: Any, held: str) -> set[type]:
    """Types among values that are not those of what the fit `held`."""
    return {t for t in set(map(type, values)) if _kind_of_type(t) not in (None, held)}


def _conversions(held: str, value: Any, known: Container[Any], gaps: bool) -> list[str]:
    """Types to which a column is converted in turn, so that a value becomes what the fit `held`.

    With `gaps` they are types of pandas that keep these.
    """
    kind = _kind_of_type(type(value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return []
    if kind == LEVEL:
        return ["float"]
    whole = number.is_integer() and str(value) not in known and str(int(number)) in known
    if gaps:
        return ["float", "'Int64'", "'string'"] if whole else ["'string'"]
    return ["int", "str"] if whole else ["str"]


def by_row(said: Iterable[list[str]], n: int) -> list[list[str]]:
    """What is said of each column, row by row (n,), as what is said of each row."""
    return [[text for text in row if text] for row in zip([""] * n, *said, strict=True)]


def first_gaps(name: str, values: Any) -> list[str]:
    """By row, that a column is missing which never was in the fit; "" where it is not."""
    return [f"{name} is missing" if gap else "" for gap in missing_entries(values)]


def new_levels(name: str, values: Any, known: Container[Any]) -> list[str]:
    """By row, the level of a column if it is not `known`; "" where it is, or is missing."""
    entries = zip(np.asarray(values).tolist(), missing_entries(values), strict=True)
    return ["" if gap or v in known else f"{name} = {v!r}" for v, gap in entries]


def hardly_twice(counts: Counter[Any]) -> bool:
    """Whether most entries of a column, by their counts, have a value that no other has."""
    once = sum(count == 1 for count in counts.values())
    return once > _IDENTIFIER * counts.total()


def mixed_columns(X: Any) -> list[Any]:
    """Names of the columns of a table X (n, d) that hold text and numbers."""
    if not is_table(X):
        return []
    kinds = {name: {type(v) for v in present(column(X, j))} for j, name in enumerate(X.columns)}
    text = {name for name, types in kinds.items() if any(issubclass(t, str) for t in types)}
    return [name for name in kinds if name in text and len(kinds[name]) > 1]


def empty_columns(X: Any) -> list[Any]:
    """Names (of an array: numbers) of the columns of X (n, d) that hold nothing but gaps."""
    if sparse.issparse(X) or len(X.shape) != 2 or not (is_table(X) or isinstance(X, np.ndarray)):
        return []
    names = list(X.columns) if is_table(X) else list(range(X.shape[1]))
    return [name for j, name in enumerate(names) if missing_entries(column(X, j)).all()]


def input_columns(X: Any) -> InputColumns | None:
    """What is usual in the columns of X (n, d); None for sparse rows, images and texts."""
    if sparse.issparse(X) or len(X.shape) != 2 or not (is_table(X) or isinstance(X, np.ndarray)):
        return None
    d = X.shape[1]
    names = [str(name) for name in X.columns] if is_table(X) else [f"x{j}" for j in range(d)]
    if not is_table(X) and X.dtype.kind in "iuf":
        low, high = _quantiles(X)
        return InputColumns(names, low, high, np.isnan(X).mean(axis=0), {}, {})
    parts = [column(X, j) for j in range(d)]
    levels = {j: found for j, part in enumerate(parts) if (found := _levels(part)) is not None}
    ends = np.array([_ends(part) if j not in levels else _UNKNOWN for j, part in enumerate(parts)])
    missing = np.array([missing_entries(part).mean() for part in parts])
    low, high = ends.reshape(d, 2).T
    dtypes = [str(dtype) for dtype in X.dtypes] if hasattr(X, "iloc") else None
    return InputColumns(names, low, high, missing, levels, categories(X), dtypes)


def categories(X: Any) -> dict[int, list[Any]]:
    """The categories of each column of a DataFrame of pandas that has such a dtype."""
    if not hasattr(X, "iloc"):
        return {}
    parts = [(j, column(X, j)) for j in range(X.shape[1])]
    return {j: list(part.cat.categories) for j, part in parts if is_category(part)}


def with_categories(X: Any, known: Mapping[int, list[Any]]) -> Any:
    """A DataFrame with the categories of the fit; a new one is missing, as no code stands for it.

    XGBoost would take the code of another category.
    """
    if not known or not hasattr(X, "iloc"):
        return X
    changed = {
        j: column(X, j).astype("category").cat.set_categories(levels)
        for j, levels in known.items()
        if not is_category(column(X, j)) or list(column(X, j).cat.categories) != levels
    }
    if not changed:
        return X
    X = X.copy()
    for j, values in changed.items():
        X.isetitem(j, values)
    return X


def _levels(values: Any) -> dict[Any, float] | None:
    """Share of the rows by level, the most frequent first; None for numbers, dates and nothing.

    No level where hardly one comes twice.
    """
    numeric = np.asarray(values).dtype.kind in "iufmM" and not is_category(values)
    entries = [] if numeric else present(values)
    if not is_category(values) and not _hold_levels(entries):
        return None
    counts = Counter(entry for entry in entries if isinstance(entry, Hashable))
    if hardly_twice(counts):
        return {}
    order = sorted(counts, key=lambda level: (-counts[level], str(level)))
    return {level: counts[level] / len(values) for level in order}


def _hold_levels(entries: list[Any]) -> bool:
    """Whether entries are text, if some, or booleans, if all are."""
    some_text = any(isinstance(entry, str) for entry in entries)
    return some_text or (bool(entries) and all(isinstance(entry, bool) for entry in entries))


def _ends(values: Any) -> tuple[float, float]:
    """The usual range of a column; NaN where it holds no numbers."""
    if np.asarray(values).dtype.kind in "mM":
        return _UNKNOWN
    try:
        entries = np.asarray(present(values), dtype=np.float64)
    except (TypeError, ValueError):
        return _UNKNOWN
    return _finite_ends(entries[np.isfinite(entries)][:_MOST_ROWS])


def _quantiles(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The usual range of each column, from at most 10,000 rows spread over all."""
    rows = np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(int)
    some = X[rows].astype(np.float64)
    if np.isfinite(some).all():
        low, high = np.quantile(some, _USUAL, axis=0)
        return low, high
    columns = [_finite_ends(values[np.isfinite(values)]) for values in some.T]
    return np.array([c[0] for c in columns]), np.array([c[1] for c in columns])


def _finite_ends(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, _USUAL) if len(values) else _UNKNOWN
    return float(low), float(high)
