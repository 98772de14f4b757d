"""The columns of a table: the kind of each, its values as inputs of a model, and the target."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from ...writing.spelling import spellings, versions
from .errors import UsageError, UserError, check_columns, list_names, suggest_name
from .reading import CSV, JsonNumber, RejectedRow, Table, is_utf8

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
_TRUE = {"true", "yes", "t", "y", "1"}
_FALSE = {"false", "no", "f", "n", "0"}
_DATES = np.linspace(0, 1, 21)
#: A share of gaps that is named, and what is said of a column of these alone.
_FEW_GAPS, ONLY_GAPS = 0.005, "nothing but gaps"
#: Two in each of five folds.
FEWEST = 10
_MOST_CLASSES = 200
_MOST_NUMBERS = 20


@dataclass(frozen=True)
class ColumnSpec:
    """A column of a table by its kind, and how it is read.

    `levels` are those of a category; `dates` of a column of dates some that were observed, in
    seconds since 1970, in order. What is usual in the inputs that are made of it stands in the
    classifier: see `TableModel.usual`.
    """

    name: str
    kind: str
    why: str = ""
    decimal: str = "."
    date: str = ""
    hours: bool = False
    levels: tuple[str, ...] = ()
    dates: tuple[float, ...] = ()

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid", "strict": True, "allow_inf_nan": False
    }  # fmt: skip

    @property
    def used(self) -> bool:
        """Return whether the model sees it: a text it does not."""
        return self.kind != TEXT

    def read(self, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
        """Return inputs of the model from a column (n,), by name, and where an entry is none, (n,).

        A text of blanks is a gap. `GAP_WORDS` are gaps but in a category, where they are levels as
        all others.
        """
        values = mark_gaps(values)
        binary = is_binary(values) if values.dtype == object else np.zeros(len(values), dtype=bool)
        if binary.any():
            values = values.mask(binary, None)
        made, odd = _READ[self.kind](self, values)
        if self.kind != CATEGORY and odd.any():
            odd = odd & ~gap_words(values).to_numpy()
        return made, odd | binary

    def wrong(self, value: object) -> str:
        """Return why an entry cannot be read."""
        text = str(value)
        other = "." if self.decimal == "," else ","
        if self.kind == NUMERIC and np.isfinite(to_numbers([text], other)).all():
            needed = f"numbers of this column need {_MARKS[self.decimal]}"
            return f"{text[:40]!r} has {_MARKS[other]}: {needed}"
        if self.kind == NUMERIC and is_signed(text):
            return f"{text[:40]!r} is {_NOT[NUMERIC]}: write it without other characters"
        example = f" such as {self.date_text(_DAY)}" if self.kind == DATE else ""
        return f"{text[:40]!r} is {_NOT[self.kind]}{example}"

    def date_text(self, seconds: float) -> str:
        """Return the text of a date as in the table of the fit."""
        when = pd.Timestamp(seconds, unit="s")
        if self.date not in ("", "ISO8601"):
            return str(when.strftime(self.date))
        return str(when) if self.hours else str(when.date())

    def describe(self) -> str:
        """Return the kind in words, for the output."""
        levels = len(self.levels)
        more = {CATEGORY: f"{levels} level{'s' * (levels != 1)}", DATE: "month and weekday"}
        return ", ".join(filter(None, [self.kind, more.get(self.kind, ""), self.why]))


_DAY = 1_425_081_600.0  # 28 February 2015: no day is a month
_MARKS = {",": "a decimal comma", ".": "a decimal point"}
_NOT = {
    NUMERIC: "no finite number",
    BOOLEAN: "neither true nor false",
    DATE: "no date",
    CATEGORY: "no single text",
}


def _numeric(column: ColumnSpec, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
    if pd.api.types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        numbers = to_numbers(values, column.decimal)
    odd = np.isnan(numbers) & values.notna().to_numpy()
    return {column.name: numbers}, odd | np.isinf(numbers)


def _boolean(column: ColumnSpec, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
    known = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
    numbers = texts_of(values, ()).str.lower().map(known).to_numpy(dtype=np.float64)
    return {column.name: numbers}, np.isnan(numbers) & values.notna().to_numpy()


def _category(column: ColumnSpec, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
    texts = texts_of(values, column.levels)
    # A new level stays, so that it is noticed: the classifier takes it as missing.
    levels = [*column.levels, *sorted(set(texts.dropna()) - set(column.levels))]
    made = pd.Series(pd.Categorical(texts, categories=pd.Index(levels, dtype=object)))
    return {column.name: made}, np.zeros(len(values), dtype=bool)


def _date(column: ColumnSpec, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
    when = read_dates(values, column.date)
    made = {f"{column.name}.month": when.dt.month, f"{column.name}.weekday": when.dt.day_of_week}
    if column.hours:
        made[f"{column.name}.hour"] = when.dt.hour
    numbers = {name: part.to_numpy(dtype=np.float64) for name, part in made.items()}
    return numbers, when.isna().to_numpy() & values.notna().to_numpy()


def read_dates(values: pd.Series, date: str) -> pd.Series:
    """Dates of a column, missing where an entry is none."""
    entries = values if values.dtype.kind == "M" else values.astype(object)
    found = pd.to_datetime(entries, format=date or "ISO8601", errors="coerce", utc=True)
    return pd.Series(found).reset_index(drop=True)


_READ = {NUMERIC: _numeric, BOOLEAN: _boolean, CATEGORY: _category, DATE: _date}


def texts_of(values: pd.Series, known: Iterable[str] | None = None) -> pd.Series:
    """Return levels or classes as texts, (n,), None for gaps: one `spelling` for each value.

    A text of blanks is a gap.
    A value that is one of the `known` texts is written as that; by default these are the `versions`
    among the values.
    """
    values = mark_gaps(values)
    there = values.notna().to_numpy()
    entries = values[there]
    # To `factorize` the object True is the object 1.
    codes, distinct = pd.factorize(entries.map(_text) if entries.dtype == object else entries)
    written = pd.Series(distinct).astype(str).str.strip().tolist()
    texts = spellings(written, versions(written) if known is None else known)
    made = np.full(len(values), None)
    made[there] = np.array(texts, dtype=object)[codes]
    return pd.Series(made, dtype=object)


def _text(value: object) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def to_numbers(values: Any, decimal: str = ".") -> np.ndarray:
    """Texts as float64, NaN where one is no number."""
    texts = pd.Series(values, dtype=None if isinstance(values, pd.Series) else object)
    if decimal == "," and texts.dtype == object:
        texts = texts.map(lambda entry: float(entry) if type(entry) is JsonNumber else entry)
    if decimal == "," and pd.api.types.infer_dtype(texts) in ("string", "mixed", "mixed-integer"):
        # In a file of decimal commas a point is no decimal mark; what is no text stays.
        points = texts.str.contains(".", regex=False, na=False)
        read = texts.where(~points).str.replace(",", ".", regex=False)
        texts = read.where(read.notna() | points, texts) if texts.dtype == object else read
    try:
        numbers = pa.array(texts, pa.string(), from_pandas=True).cast(pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    except (pa.ArrowException, ValueError, TypeError):  # some are no numbers, or no texts
        found = pd.to_numeric(texts.astype(object), errors="coerce")
        return np.asarray(found, dtype=np.float64)


def decimal_mark(levels: pd.Series) -> str:
    """Return the comma if one of the texts can be a number in no other way, else the point.

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


def mark_gaps(values: pd.Series) -> pd.Series:
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
    """Return where an entry is one of `GAP_WORDS`, blanks around it aside."""
    return values.astype(object).map(lambda entry: str(entry).strip()).isin(GAP_WORDS)


def _levels(values: pd.Series) -> pd.Series:
    """Return the different entries as texts, without those that are gaps in a column of numbers."""
    levels = pd.Series(pd.unique(values.dropna()), dtype=object).astype(str)
    return levels[~gap_words(levels)].reset_index(drop=True)


def guess(values: pd.Series, name: str, frame: pd.DataFrame | None = None) -> ColumnSpec:
    """Return a column by its kind; UserError for what no column may hold.

    A comma that may be a decimal mark is one if it is elsewhere in the `frame`.
    """
    values = mark_gaps(values)
    plain = _kind_of_dtype(values, name)
    if plain is not None:
        return plain
    check_single(values, name)
    levels = _levels(values)
    if not len(levels):
        return ColumnSpec(name, TEXT, why=ONLY_GAPS)
    return _guess_of_texts(values, levels, name, frame)


def check_single(values: pd.Series, name: str) -> None:
    """Refuse a column of lists or objects, or of bytes that are no text."""
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


def is_binary(values: pd.Series) -> np.ndarray:
    """Return where an entry is bytes that are no UTF-8 text, shape (n,)."""
    return np.array([isinstance(one, bytes) and not is_utf8(one) for one in values], dtype=bool)


def _kind_of_dtype(values: pd.Series, name: str) -> ColumnSpec | None:
    kind = values.dtype.kind if isinstance(values.dtype, np.dtype) else ""
    if kind == "b" or str(values.dtype) in ("boolean", "bool[pyarrow]"):
        return ColumnSpec(name, BOOLEAN)
    if isinstance(values.dtype, pd.CategoricalDtype):
        return _level_kind(values.astype(object), name)
    if kind == "M" or isinstance(values.dtype, pd.DatetimeTZDtype):
        return ColumnSpec(name, DATE, date="ISO8601")
    if pd.api.types.is_numeric_dtype(values.dtype):
        none = values.isna().all()
        return ColumnSpec(name, TEXT, why=ONLY_GAPS) if none else ColumnSpec(name, NUMERIC)
    return None


def _guess_of_texts(
    values: pd.Series, levels: pd.Series, name: str, frame: pd.DataFrame | None
) -> ColumnSpec:
    if set(levels.str.strip().str.lower()) in _TRUTHS:
        return ColumnSpec(name, BOOLEAN)
    if not levels.map(lambda text: bool(_CODE.fullmatch(text))).any():
        decimal = decimal_mark(levels)
        numbers = ~np.isnan(to_numbers(levels, decimal))
        if not numbers.all() and not np.isnan(to_numbers(levels, ",")).any():
            if frame is None or not has_decimal_commas(frame):
                text = levels[~numbers].iloc[0].strip()
                raise UserError(
                    f"column {name!r}: {text!r} may be {text.replace(',', '')} or "
                    f"{text.replace(',', '.')}, and no other entry tells which: write the numbers "
                    "of this column without commas"
                )
            decimal, numbers = ",", np.ones(len(levels), dtype=bool)
        if numbers.all():
            return ColumnSpec(
                name, NUMERIC, decimal=decimal, why="decimal commas" if decimal == "," else ""
            )
        if numbers.mean() >= _MOSTLY_NUMBERS:
            raise _mixed_types(values, levels[~numbers].iloc[0], int(numbers.sum()), name)
    date = date_format(levels)
    if date:
        return ColumnSpec(name, DATE, date=date, why=date)
    return _level_kind(values.astype(object), name)


def _mixed_types(values: pd.Series, odd: str, numbers: int, name: str) -> UserError:
    row = int(np.flatnonzero(values.astype(str) == odd)[0]) + 1
    remedy = f"; if that is a gap: gaps={[odd]}, if these are codes: types={ {name: CATEGORY} }"
    return UserError(
        f"column {name!r} has mixed types: {numbers} different numbers, and {odd!r} in row {row}"
        + (f": {_WRITE_PLAIN}" if is_signed(odd) else remedy)
    )


def date_format(levels: pd.Series) -> str:
    """Return the first format that reads all texts as dates; "" if none does."""
    some = levels.head(200)
    if not some.map(lambda text: bool(_MAYBE_DATE.match(text))).all():
        return ""
    return next((f for f in DATE_FORMATS if read_dates(some, f).notna().all()), "")


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


def _level_kind(values: pd.Series, name: str) -> ColumnSpec:
    counts = values.value_counts()
    once, known = int((counts == 1).sum()), int(counts.sum())
    why = describe_number_marks(
        [text for text in map(str, counts.index) if text.strip() not in GAP_WORDS]
    )
    if len(counts) > MOST_LEVELS:
        return ColumnSpec(name, TEXT, why=why or f"{len(counts):,} different texts")
    if once > _MOSTLY_ONCE * known and once > 2:
        return ColumnSpec(name, TEXT, why=why or f"{once:,} of {known:,} texts come once")
    return ColumnSpec(name, CATEGORY, why=why)


def infer_columns(frame: pd.DataFrame, forced: Mapping[str, str]) -> tuple[ColumnSpec, ...]:
    """Return the columns of the rows to learn from, `forced` kinds by name before guessed ones."""
    check_columns("types", forced, map(str, frame.columns), "the data")
    return tuple(infer_column(frame, name, forced) for name in frame.columns)


def infer_column(frame: pd.DataFrame, name: Any, forced: Mapping[str, str]) -> ColumnSpec:
    """Return a column of the rows to learn from; its commas are those of the other columns."""
    values = frame[name]
    column = _infer_or_force(values, str(name), forced.get(str(name)), frame)
    gaps = mark_gaps(values).isna()
    if column.kind not in (CATEGORY, TEXT) and values.dtype.kind == "O":
        gaps |= gap_words(values)
    if _FEW_GAPS <= gaps.mean() < 1:
        why = ", ".join(filter(None, [column.why, f"{gaps.mean():.0%} gaps"]))
        column = replace(column, why=why)
    return add_values(column, values)


def _infer_or_force(
    values: pd.Series, name: str, kind: str | None, frame: pd.DataFrame
) -> ColumnSpec:
    if kind is None:
        return guess(values, name, frame)
    column = guess(values, name, frame) if kind in (NUMERIC, DATE) else ColumnSpec(name, kind)
    column = replace(column if column.kind == kind else ColumnSpec(name, kind), why="as asked")
    levels = texts_of(values).nunique() if kind == CATEGORY else 0
    if levels > MOST_LEVELS:
        raise UserError(
            f"types={ {name: kind} }: it has {levels:,} levels, and {MOST_LEVELS} is the most; "
            "leave it text, or make groups of them"
        )
    if column.used:
        _, odd = column.read(values)
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise UserError(
                f"types={ {name: kind} }: row {row + 1} of the rows to learn from: "
                f"{column.wrong(values.iloc[row])}"
            )
    return column


def add_values(column: ColumnSpec, values: pd.Series) -> ColumnSpec:
    """Return the column with the levels, or some dates, among values (n,)."""
    if column.kind == CATEGORY:
        return replace(column, levels=tuple(sorted(set(texts_of(values).dropna()))))
    if column.kind != DATE:
        return column
    when = read_dates(values, column.date).dropna()
    hours = bool((when.dt.normalize() != when).any())
    seconds = (when - pd.Timestamp(0, unit="s", tz="UTC")).dt.total_seconds().to_numpy()
    dates = np.quantile(seconds, _DATES, method="inverted_cdf") if len(seconds) else seconds
    return replace(column, dates=tuple(dates.tolist()), hours=hours)


def as_inputs(
    columns: Iterable[ColumnSpec], frame: pd.DataFrame, rows: np.ndarray
) -> tuple[pd.DataFrame, np.ndarray, list[RejectedRow]]:
    """Return the inputs of a model from a piece, which rows they are of, and refused rows.

    Columns come by name, in any order; those that the model does not know are not looked at.
    """
    made: dict[str, Any] = {}
    reasons: dict[int, RejectedRow] = {}
    for column in columns:
        if column.used:
            parts, odd = column.read(frame[column.name])
            made |= parts
            for i in np.flatnonzero(odd).tolist():
                wrong = column.wrong(frame[column.name].iloc[i])
                reasons.setdefault(i, RejectedRow(int(rows[i]), column.name, wrong))
    fine = np.ones(len(frame), dtype=bool)
    fine[list(reasons)] = False
    X = pd.DataFrame(made, index=range(len(frame)))
    return X[fine].reset_index(drop=True), fine, [reasons[i] for i in sorted(reasons)]


def describe_gap_words(target: str, classes: Iterable[str], columns: Iterable[ColumnSpec]) -> str:
    """Return words for a gap that are classes or levels, with the remedy; "" without any."""
    levels = {target: classes, **{c.name: c.levels for c in columns if c.kind == CATEGORY}}
    found = {name: [str(one) for one in of if one in GAP_WORDS] for name, of in levels.items()}
    words = list(dict.fromkeys(word for of in found.values() for word in of))
    if not words:
        return ""
    where = list_names(repr(name) for name, of in found.items() if of)
    return (
        f"{list_names(map(repr, words))} in {where} counts as a value like any other; if it stands "
        f"for a gap: gaps={words}"
    )


def check_usable(fine: np.ndarray, refused: Iterable[RejectedRow], path: object) -> None:
    """Raise UserError if no row of `as_inputs` is left, with the reason of the first."""
    for one in list(refused)[: 0 if fine.any() else 1]:
        raise UserError(
            f"no row of {path} can be used: {one}; "
            f"mend the column, or leave it out: drop={[one.column]}"
        )


def check_known(columns: Iterable[ColumnSpec], names: Iterable[str], path: object) -> None:
    """Raise UserError if a column that the model needs is not there."""
    there = list(names)
    lacking = [c.name for c in columns if c.used and c.name not in there]
    if lacking:
        near = suggest_name(lacking[0], there)
        gaps = "; an empty column of that name stands for gaps"
        raise UserError(
            f"{path} lacks {'the column' if len(lacking) == 1 else 'columns'} "
            f"{list_names(map(repr, lacking))} of the model: {near}"
            + gaps
            * (not near.startswith("did you mean"))
        )


def check_target(target: str, table: Table) -> None:
    """Raise UserError if there is no such column, or no other."""
    alone = len(table.names) == 1
    if target not in table.names:
        split = "; if that is all of them in one, name the `delimiter`, or leave out a wrong one"
        raise UserError(
            f"{table.path} has no column {target!r} to predict: "
            f"{suggest_name(target, table.names)}{split * (alone and table.format.kind == CSV)}"
        )
    if alone:
        raise UserError(
            f"{table.path} has only the column {target!r}: there is nothing to predict it from"
        )


def split_types(types: Mapping[str, str], target: str) -> tuple[dict[str, str], bool]:
    """Kinds of all columns but the target, and whether its numbers were said to be classes."""
    for name, of in types.items():
        if of not in KINDS:
            raise UsageError(f"types={ {name: of} }: a kind must be one of {list_names(KINDS)}")
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
    """Refuse a word that may be a gap among classes that are numbers."""
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
    """Refuse one class alone, and a rare one; `without` says how many rows have none."""
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
