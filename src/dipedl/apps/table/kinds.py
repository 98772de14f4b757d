"""The kind of a column, guessed from its entries: what it will be read as."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from .errors import UserError
from .formats import is_utf8

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
#: A number for a reader: 1,234.50 or 1 234,5 or £7.25 or 45% or (12), also with the sign U+2212.
_WITH_SIGNS = re.compile(
    r"\(?[£$€¥]?\s?[+\-\u2212\u2013]?\s?(\d{1,3}([.,'’_\s]\d{3})+|\d+)([.,]\d+)?\s?[%£$€¥]?\)?"
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_THOUSANDS_COMMA = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
#: Gaps in a column of numbers, dates or truths; in any other column, and in the target, values.
GAP_WORDS = ("NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null", "None", "<NA>")


@dataclass(frozen=True)
class Guess:
    """A kind with what reading it needs: the decimal mark, the format of dates; and why."""

    kind: str
    decimal: str = "."
    date: str = ""
    why: str = ""


def to_numbers(values: Any, decimal: str = ".") -> np.ndarray:
    """Texts as float64, NaN where one is no number."""
    texts = pd.Series(values, dtype=None if isinstance(values, pd.Series) else object)
    if decimal == ",":
        # In a file of decimal commas a point is no decimal mark.
        texts = texts.where(~texts.str.contains(".", regex=False, na=False))
        texts = texts.str.replace(",", ".", regex=False)
    try:
        numbers = pa.array(texts, pa.string(), from_pandas=True).cast(pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, ValueError, TypeError):  # some are no numbers, or no texts
        found = pd.to_numeric(texts.astype(object), errors="coerce")
        return np.asarray(found, dtype=np.float64)


def decimal_mark(levels: pd.Series) -> str:
    """The comma if one of the texts can be a number in no other way, else the point.

    1,5 and 0,125 and 1234,567 are such texts; 3,466 may be 3466 too.
    """
    texts = levels.str.strip()
    commas = texts[texts.map(lambda text: _DECIMAL_COMMA.fullmatch(text) is not None)]
    proof = ~commas.map(lambda text: _THOUSANDS_COMMA.fullmatch(text) is not None).astype(bool)
    return "," if proof.any() else "."


def has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Return whether a column holds numbers that cannot be read without a decimal comma."""
    texts = (frame[name] for name in frame.select_dtypes(["object", "string"]))
    return any(
        decimal_mark(levels) == "," and not np.isnan(to_numbers(levels, ",")).any()
        for levels in map(_levels, texts)
    )


def with_gaps(values: pd.Series) -> pd.Series:
    """Return the entries with a gap for each text that is empty but for blanks."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.remove_categories(list(filter(_is_blank, values.cat.categories)))
    if values.dtype.kind not in "OU":
        return values
    if values.dtype == object:
        blank = np.array([_is_blank(entry) for entry in values], dtype=bool)
    else:
        blank = (values.str.strip() == "").fillna(False).to_numpy(dtype=bool)
    return values.mask(blank, None) if blank.any() else values


def _is_blank(entry: object) -> bool:
    return isinstance(entry, str) and not entry.strip()


def gap_words(values: pd.Series) -> pd.Series:
    """Where an entry is one of `GAP_WORDS`, blanks around it aside."""
    return values.astype(object).map(lambda entry: str(entry).strip()).isin(GAP_WORDS)


def _levels(values: pd.Series) -> pd.Series:
    """The different entries as texts, without those that are gaps in a column of numbers."""
    levels = pd.Series(pd.unique(values.dropna()), dtype=object).astype(str)
    return levels[~gap_words(levels)].reset_index(drop=True)


def guess(values: pd.Series, name: str, comma: bool = False) -> Guess:
    """The kind of a column of a DataFrame; UserError for what no column may hold.

    `comma` says that a comma is a decimal mark elsewhere in the table.
    """
    values = with_gaps(values)
    plain = _kind_of_dtype(values)
    if plain is not None:
        return plain
    check_single(values, name)
    levels = _levels(values)
    if not len(levels):
        return Guess(TEXT, why="nothing but gaps")
    return _of_texts(values, levels, name, comma)


def check_single(values: pd.Series, name: str) -> None:
    """UserError for a column of lists or objects, or of bytes that are no text."""
    if values.dtype != object:
        return
    types = {type(value) for value in values.dropna()}
    nested = sorted(t.__name__ for t in types if issubclass(t, list | tuple | dict | np.ndarray))
    if nested:
        raise UserError(
            f"column {name!r} holds entries of type {nested[0]}, not single values: "
            f"write a column for each part, or leave it out: drop={[name]}"
        )
    binary = is_binary(values) if bytes in types else np.zeros(0, dtype=bool)
    if binary.any():
        row = int(np.flatnonzero(binary)[0]) + 1
        raise UserError(
            f"column {name!r} holds bytes that are no text, the first in row {row}: write them as "
            f"text, or leave the column out: drop={[name]}"
        )


def text_of_bytes(values: pd.Series) -> pd.Series:
    """Return the entries with bytes that are UTF-8 as texts; all others stay as they are."""
    return values.map(
        lambda one: one.decode() if isinstance(one, bytes) and is_utf8(one) else one
    ).astype(object)


def is_binary(values: pd.Series) -> np.ndarray:
    """Where an entry is bytes that are no UTF-8 text, shape (n,)."""
    return np.array([isinstance(one, bytes) and not is_utf8(one) for one in values], dtype=bool)


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


def _of_texts(values: pd.Series, levels: pd.Series, name: str, comma: bool) -> Guess:
    if set(levels.str.strip().str.lower()) in _TRUTHS:
        return Guess(BOOLEAN)
    if not levels.map(lambda text: bool(_CODE.fullmatch(text))).any():
        decimal = "," if comma else decimal_mark(levels)
        numbers = ~np.isnan(to_numbers(levels, decimal))
        if not numbers.all() and not np.isnan(to_numbers(levels, ",")).any():
            raise _unclear(levels[~numbers].iloc[0].strip(), name)
        if numbers.all():
            return Guess(NUMERIC, decimal=decimal, why="decimal commas" if decimal == "," else "")
        if numbers.mean() >= _MOSTLY_NUMBERS:
            raise _mixed(values, levels[~numbers].iloc[0], int(numbers.sum()), name)
    date = date_format(levels)
    if date:
        return Guess(DATE, date=date, why=date)
    return _level_kind(values.astype(object), values.nunique())


class UnclearMark(UserError):
    """A comma that may be a decimal mark or stand between thousands."""


def _unclear(text: str, name: str) -> UnclearMark:
    return UnclearMark(
        f"column {name!r}: {text!r} may be {text.replace(',', '')} or {text.replace(',', '.')}, "
        "and no other entry tells which: write the numbers of this column without commas"
    )


def _mixed(values: pd.Series, odd: str, numbers: int, name: str) -> UserError:
    row = int(np.flatnonzero(values.astype(str) == odd)[0]) + 1
    if is_signed(odd):
        return UserError(
            f"column {name!r} holds {numbers} different numbers, and {odd!r} in row {row}: "
            f"{_WRITE_PLAIN}"
        )
    return UserError(
        f"column {name!r} has mixed types: {numbers} different numbers, and {odd!r} in row {row}; "
        f"if that is a gap: gaps={[odd]}, if these are codes: types={ {name: CATEGORY} }"
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


_WRITE_PLAIN = "write plain numbers, such as -1234.5"


def is_signed(text: str) -> bool:
    """Return whether a text is a number that is written for a reader, which no program can read."""
    return bool(_WITH_SIGNS.fullmatch(text.strip())) and bool(np.isnan(to_numbers([text])).all())


def describe_number_marks(levels: list[str]) -> str:
    """Return the remedy for numbers that are written for a reader; "" for any other texts."""
    signed = next(filter(is_signed, levels), "")
    if not signed or not all(_WITH_SIGNS.fullmatch(text.strip()) for text in levels):
        return ""
    return f"numbers with other characters, such as {signed!r}: {_WRITE_PLAIN}"


def _level_kind(values: pd.Series, n_levels: int) -> Guess:
    counts = values.value_counts()
    once, known = int((counts == 1).sum()), int(counts.sum())
    why = describe_number_marks(
        [text for text in map(str, counts.index) if text.strip() not in GAP_WORDS]
    )
    if n_levels > MOST_LEVELS:
        return Guess(TEXT, why=why or f"{n_levels:,} different texts")
    if once > _MOSTLY_ONCE * known and once > 2:
        return Guess(TEXT, why=why or f"{once:,} of {known:,} texts come once")
    return Guess(CATEGORY, why=why)
