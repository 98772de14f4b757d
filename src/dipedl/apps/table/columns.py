"""The columns of a model: the kind of each, and how new rows are brought into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from ...writing.spelling import spellings, versions
from .errors import UsageError, UserError, list_names, suggest_name
from .kinds import (
    BOOLEAN,
    CATEGORY,
    DATE,
    GAP_WORDS,
    KINDS,
    MOST_LEVELS,
    NUMERIC,
    TEXT,
    Guess,
    UnclearMark,
    gap_words,
    guess,
    has_decimal_commas,
    is_binary,
    is_signed,
    to_numbers,
    with_gaps,
)
from .reading import RejectedRow

_TRUE = {"true", "yes", "t", "y", "1"}
_FALSE = {"false", "no", "f", "n", "0"}
#: Shares of the rows at which the values of a number are kept, to notice a drift.
_SHARES = np.linspace(0, 1, 21)


@dataclass(frozen=True)
class ColumnSpec:
    """A column by its kind, with what reading it needs and what was usual in it.

    `levels` are those of a category, `cuts` quantiles of a number, which were observed; `shares` of
    the rows that had a level, or had at most a cut. A date has its quantiles too, without shares,
    in seconds since 1970.
    """

    name: str
    kind: str
    why: str = ""
    decimal: str = "."
    date: str = ""
    hours: bool = False
    levels: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    missing: float = 0.0

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
        values = with_gaps(values)
        binary = is_binary(values) if values.dtype == object else np.zeros(len(values), dtype=bool)
        if binary.any():
            values = values.mask(binary, None)
        made, odd = _READ[self.kind](self, values)
        if self.kind != CATEGORY and odd.any():
            odd = odd & ~gap_words(values).to_numpy()
        return made, odd | binary

    def wrong(self, value: object) -> str:
        """Why an entry cannot be read."""
        text = str(value)
        other = "." if self.decimal == "," else ","
        if self.kind == NUMERIC and np.isfinite(to_numbers([text], other)).all():
            needed = f"numbers of this column need {_MARKS[self.decimal]}"
            return f"{text[:40]!r} has {_MARKS[other]}: {needed}"
        if self.kind == NUMERIC and is_signed(text):
            return f"{text[:40]!r} is {_NOT[NUMERIC]}: write it without other characters"
        return f"{text[:40]!r} is {_NOT[self.kind]}"

    def date_text(self, seconds: float) -> str:
        """The text of a date as in the table of the fit, from a cut."""
        when = pd.Timestamp(seconds, unit="s")
        if self.date != "ISO8601":
            return str(when.strftime(self.date))
        return str(when) if self.hours else str(when.date())

    def describe(self) -> str:
        """Return the kind in words, for the output."""
        more = {CATEGORY: f"{len(self.levels)} levels", DATE: "month and weekday"}
        parts = [self.kind, more.get(self.kind, ""), self.why]
        parts += [f"{self.missing:.0%} gaps" if self.missing >= 0.005 else ""]
        return ", ".join(filter(None, parts))


_MARKS = {",": "a decimal comma", ".": "a decimal point"}
_NOT = {
    NUMERIC: "no finite number",
    BOOLEAN: "neither true nor false",
    DATE: "no date of the format that the model was fitted with",
    CATEGORY: "no single text",
}


def _numeric(column: ColumnSpec, values: pd.Series) -> tuple[dict[str, Any], np.ndarray]:
    if pd.api.types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif pd.api.types.infer_dtype(values) == "string":
        numbers = to_numbers(values, column.decimal)
    else:
        entries = values.astype(object).reset_index(drop=True)
        texts = entries.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
        numbers = to_numbers(entries.mask(texts)).copy()
        numbers[texts] = to_numbers(entries[texts], column.decimal)
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
    given = values if values.dtype.kind == "M" else values.astype(object)
    found = pd.to_datetime(given, format=date or "ISO8601", errors="coerce", utc=True)
    return pd.Series(found).reset_index(drop=True)


_READ = {NUMERIC: _numeric, BOOLEAN: _boolean, CATEGORY: _category, DATE: _date}


def texts_of(values: pd.Series, known: Iterable[str] | None = None) -> pd.Series:
    """Return levels or classes as texts, (n,), None for gaps: one `spelling` for each value.

    A text of blanks is a gap.
    A value that is one of the `known` texts is written as that; by default these are the `versions`
    among the values.
    """
    values = with_gaps(values)
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


def infer_columns(frame: pd.DataFrame, forced: Mapping[str, str]) -> tuple[ColumnSpec, ...]:
    """The columns of the rows to learn from, `forced` kinds by name before guessed ones."""
    check_forced(forced, frame.columns)
    return tuple(infer_column(frame, name, forced) for name in frame.columns)


def infer_column(frame: pd.DataFrame, name: Any, forced: Mapping[str, str]) -> ColumnSpec:
    """A column of the rows to learn from; a comma in it is what it is in the other columns."""
    try:
        return _column(frame[name], str(name), forced.get(str(name)))
    except UnclearMark:
        if not has_decimal_commas(frame):
            raise
        return _column(frame[name], str(name), forced.get(str(name)), comma=True)


def check_forced(forced: Mapping[str, str], names: Iterable[str]) -> None:
    """UserError for a kind of a column that is not there, or for a kind that there is not."""
    known = [str(name) for name in names]
    for name, kind in forced.items():
        if name not in known:
            near, comma = suggest_name(name, known), [one for one in known if "," in one][:1]
            entry = f"; a name with a comma is one key: types={dict.fromkeys(comma, kind)}"
            entry *= bool(comma)
            raise UserError(f"`types` names the column {name!r}, which is not there: {near}{entry}")
        if kind not in KINDS:
            raise UsageError(f"types={ {name: kind} }: a kind must be one of {list_names(KINDS)}")


def _column(values: pd.Series, name: str, forced: str | None, comma: bool = False) -> ColumnSpec:
    if forced is None:
        found = guess(values, name, comma)
        column = ColumnSpec(name, found.kind, found.why, found.decimal, found.date)
    else:
        column = _forced(values, name, forced, comma)
    gaps = with_gaps(values).isna()
    if column.kind not in (CATEGORY, TEXT) and values.dtype.kind == "O":
        gaps |= gap_words(values)
    column = replace(column, missing=float(gaps.mean()))
    return with_usual(column, values) if column.used else column


def _forced(values: pd.Series, name: str, kind: str, comma: bool) -> ColumnSpec:
    found = guess(values, name, comma) if kind in (NUMERIC, DATE) else Guess(kind)
    found = found if found.kind == kind else Guess(kind)
    column = ColumnSpec(name, kind, "as asked", found.decimal, found.date)
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


def with_usual(column: ColumnSpec, values: pd.Series) -> ColumnSpec:
    """The column with what is usual among values (n,) that it can read."""
    if column.kind == DATE:
        when = read_dates(values, column.date).dropna()
        hours = bool((when.dt.normalize() != when).any())
        return replace(column, cuts=_date_cuts(when), hours=hours)
    if column.kind == CATEGORY:
        column = replace(column, levels=tuple(sorted(set(texts_of(values).dropna()))))
    made, _ = column.read(values)
    part = made[column.name]
    if column.kind == CATEGORY:
        counts = part.value_counts(normalize=True, sort=False)
        return replace(column, shares=tuple(counts.tolist()))
    numbers = np.sort(part[np.isfinite(part)])
    cuts = np.unique(observed_quantiles(numbers, _SHARES)) if len(numbers) else numbers
    shares = np.searchsorted(numbers, cuts, side="right") / max(len(numbers), 1)
    return replace(column, cuts=tuple(cuts.tolist()), shares=tuple(shares.tolist()))


def _date_cuts(when: pd.Series) -> tuple[float, ...]:
    """Quantiles of dates, in seconds since 1970."""
    seconds = (when - pd.Timestamp(0, unit="s", tz="UTC")).dt.total_seconds().to_numpy()
    return tuple(observed_quantiles(seconds, _SHARES).tolist()) if len(seconds) else ()


def is_id(numbers: pd.Series) -> bool:
    """Return whether an input of a model (n,) is another whole number in each row, as an id is."""
    return numbers.dtype.kind == "f" and numbers.is_unique and bool((numbers % 1 == 0).all())


def observed_quantiles(numbers: np.ndarray, shares: npt.ArrayLike) -> np.ndarray:
    """For each share, the smallest of the numbers (n,) that so many of them do not exceed."""
    return np.asarray(np.quantile(numbers, np.asarray(shares), method="inverted_cdf"))


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
    """Words for a gap that are classes or levels, with the option that makes them gaps; or ""."""
    held = {target: classes, **{c.name: c.levels for c in columns if c.kind == CATEGORY}}
    found = {name: [str(one) for one in of if one in GAP_WORDS] for name, of in held.items()}
    words = list(dict.fromkeys(word for of in found.values() for word in of))
    if not words:
        return ""
    where = list_names(repr(name) for name, of in found.items() if of)
    return (
        f"{list_names(map(repr, words))} in {where} counts as a value like any other; if it stands "
        f"for a gap: gaps={words}"
    )


def check_usable(fine: np.ndarray, refused: Iterable[RejectedRow], path: object) -> None:
    """UserError if no row of `as_inputs` is left, with the reason of the first."""
    for one in list(refused)[: 0 if fine.any() else 1]:
        raise UserError(
            f"no row of {path} can be used: {one}; "
            f"mend the column, or leave it out: drop={[one.column]}"
        )


def check_known(columns: Iterable[ColumnSpec], names: Iterable[str], path: object) -> None:
    """UserError if a column that the model needs is not there."""
    there = list(names)
    lacking = [c.name for c in columns if c.used and c.name not in there]
    if lacking:
        raise UserError(
            f"{path} lacks {'the column' if len(lacking) == 1 else 'columns'} "
            f"{list_names(map(repr, lacking))} of the model: {suggest_name(lacking[0], there)}; "
            "an empty column of that name stands for gaps"
        )
