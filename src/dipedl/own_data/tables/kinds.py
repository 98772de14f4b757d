"""The kind of a column, guessed from its entries: what it will be read as."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .mistake import Mistake, as_typed

NUMERIC, CATEGORY, BOOLEAN, TEXT, DATE = "numeric", "category", "boolean", "text", "date"
KINDS = (NUMERIC, CATEGORY, BOOLEAN, TEXT, DATE)
#: Boosted trees keep one of 255 bins for gaps.
MOST_LEVELS = 254
_MOSTLY_ONCE, _MOSTLY_NUMBERS = 0.5, 0.8
_TRUTHS = ({"true", "false"}, {"yes", "no"}, {"t", "f"}, {"y", "n"})
DATE_FORMATS = (
    "ISO8601",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
#: 007 is a code, not a number: its zeros would be lost.
_CODE = re.compile(r"[+-]?0\d+")
_MAYBE_DATE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
#: A number for a reader: 1,234.50 or £7.25 or 45%.
_WITH_SIGNS = re.compile(r"[£$€¥]? ?[+-]?(\d{1,3}([,' ]\d{3})+|\d+)([.,]\d+)? ?[%£$€¥]?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Guess:
    """A kind with what reading it needs: the decimal mark, the format of dates; and why."""

    kind: str
    decimal: str = "."
    date: str = ""
    why: str = ""


def to_numbers(values: Any, decimal: str = ".") -> np.ndarray:
    """Texts as float64, NaN where one is no number."""
    texts = pd.Series(values, dtype=object)
    if decimal == ",":
        # In a file of decimal commas a point is no decimal mark.
        texts = texts.where(~texts.str.contains(".", regex=False, na=False))
        texts = texts.str.replace(",", ".", regex=False)
    return np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=np.float64)


def decimal_mark(levels: pd.Series) -> str:
    """The comma if it is one in any of the texts, else the point."""
    commas = levels.map(lambda text: _DECIMAL_COMMA.fullmatch(text.strip()) is not None)
    return "," if commas.any() else "."


def guess(values: pd.Series, name: str) -> Guess:
    """The kind of a column of a DataFrame; Mistake for what no column may hold."""
    plain = _kind_of_dtype(values)
    if plain is not None:
        return plain
    _check_single(values, name)
    levels = pd.Series(pd.unique(values.dropna()), dtype=object)
    if not len(levels):
        return Guess(TEXT, why="nothing but gaps")
    return _of_texts(values, levels.astype(str), name)


def _check_single(values: pd.Series, name: str) -> None:
    if values.dtype != object:
        return
    types = {type(value) for value in values.dropna()}
    nested = sorted(t.__name__ for t in types if issubclass(t, list | tuple | dict | np.ndarray))
    if nested:
        raise Mistake(
            f"column {name!r} holds entries of type {nested[0]}, not single values: "
            f"write a column for each part, or leave it out: --drop {as_typed([name])}"
        )


def _kind_of_dtype(values: pd.Series) -> Guess | None:
    kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else ""
    if kind == "b" or str(values.dtype) in ("boolean", "bool[pyarrow]"):
        return Guess(BOOLEAN)
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _level_kind(values.astype(object), values.nunique())
    if kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        return Guess(DATE, date="ISO8601")
    if pd.api.types.is_numeric_dtype(values.dtype):
        none = values.isna().all()
        return Guess(TEXT, why="nothing but gaps") if none else Guess(NUMERIC)
    return None


def _of_texts(values: pd.Series, levels: pd.Series, name: str) -> Guess:
    if set(levels.str.strip().str.lower()) in _TRUTHS:
        return Guess(BOOLEAN)
    if not levels.map(lambda text: bool(_CODE.fullmatch(text))).any():
        decimal = decimal_mark(levels)
        numbers = ~np.isnan(to_numbers(levels, decimal))
        if numbers.all():
            return Guess(NUMERIC, decimal=decimal, why="decimal commas" if decimal == "," else "")
        if numbers.mean() >= _MOSTLY_NUMBERS:
            raise _mixed(values, levels[~numbers].iloc[0], int(numbers.sum()), name)
    date = date_format(levels)
    if date:
        return Guess(DATE, date=date, why=date)
    return _level_kind(values.astype(object), len(levels))


def _mixed(values: pd.Series, odd: str, numbers: int, name: str) -> Mistake:
    row = int(np.flatnonzero(values.astype(str) == odd)[0]) + 1
    codes = as_typed([f"{name}={CATEGORY}"])
    return Mistake(
        f"column {name!r} has mixed types: {numbers} different numbers, and {odd!r} in row {row}; "
        f"if that is a gap: --gaps {as_typed([odd])}, if these are codes: --types {codes}"
    )


def date_format(levels: pd.Series) -> str:
    """The first format that reads all texts as dates; "" if none does."""
    some = levels.head(200)
    if not some.map(lambda text: bool(_MAYBE_DATE.match(text))).all():
        return ""
    fitting = (
        f for f in DATE_FORMATS if pd.to_datetime(some, format=f, errors="coerce").notna().all()
    )
    return next(fitting, "")


def _signs_told(levels: list[str]) -> str:
    """What to do with numbers that are written for a reader; "" for any other texts."""
    signed = next((text for text in levels if re.search(r"[^\d.+-]", text)), "")
    if not signed or not all(map(_WITH_SIGNS.fullmatch, levels)):
        return ""
    return f"numbers with other characters, such as {signed!r}: write 1234.5"


def _level_kind(values: pd.Series, n_levels: int) -> Guess:
    counts = values.value_counts()
    once, known = int((counts == 1).sum()), int(counts.sum())
    why = _signs_told(list(map(str, counts.index)))
    if n_levels > MOST_LEVELS:
        return Guess(TEXT, why=why or f"{n_levels:,} different texts")
    if once > _MOSTLY_ONCE * known and once > 2:
        return Guess(TEXT, why=why or f"{once:,} of {known:,} texts come once")
    return Guess(CATEGORY, why=why)
