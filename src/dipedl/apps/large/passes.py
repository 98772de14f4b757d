"""Two passes over the parts of a data set: samples of its rows, then sums over the others."""

from __future__ import annotations

import hmac
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import pandas as pd

from ...classifier import DIPClassifier
from ...density.ensemble import DensityEnsemble, find_fence
from ...features.scaling import outside_of
from ...inputs import compute_features
from ...streaming import HELD_SHARE, KEY_SEED, RowSample, in_share, row_keys
from ...writing.files import secret_key, write_file
from ...writing.spelling import spellings, versions
from ..table.columns import ColumnSpec, as_inputs, check_single, texts_of, with_gaps
from ..table.errors import UserError, list_names, suggest_name
from ..table.reading import RejectedRow, join_frames
from .engines import Engine, Tree
from .files import Unreadable
from .parts import Part
from .sums import Form, Sums, needed_forms

#: Called with the rows that are done and those there are, of both passes.
Progress = Callable[[int, int], None]
#: Bytes of a checksum.
_CHECKSUM = 32
#: Rows that are worked on at once, the fewest where workers died, and refused rows that are named.
BATCH, FEWEST, NAMED = 50_000, 500, 1000
#: Rows of each class that are drawn at least, if there are so many.
EACH = 10
#: Rows of a rare class that are learned from, though its share of the reservoir is less.
RARE = 5
#: Names of dtypes of numbers, and those of objects by what they hold.
_NUMBERS = re.compile(r"(u?int|float)\d+")
_DTYPES = {
    "boolean": "bool",
    "integer": "int64",
    "floating": "float64",
    "mixed-integer-float": "float64",
}
#: Seed of the keys by which rows are drawn.
_DRAWN = 1


class Batch(NamedTuple):
    """Rows without their target, labels as texts (n,), numbers in their file from 1, refused.

    Labels that are texts are as they are written. `dtype` is the name of that of the target.
    """

    frame: pd.DataFrame
    labels: np.ndarray
    numbers: np.ndarray
    refused: list[RejectedRow]
    dtype: str = "object"


@dataclass(frozen=True)
class Reading:
    """Reader of rows: the target, columns that are left out, the column that names a row.

    So many rows are worked on at once: `batch`.
    """

    target: str
    drop: tuple[str, ...] = ()
    key: str | None = None
    batch: int = BATCH

    def smaller(self) -> Reading | None:
        """Return a reader of smaller batches; None if they would be too small."""
        rows = self.batch // 10
        return replace(self, batch=rows) if rows >= FEWEST else None

    def batches(self, part: Part) -> Iterator[Batch]:
        """The labelled rows of a part; UserError if it has no such columns."""
        first = part.first + 1
        for frame in part.batches(self.batch):
            if not isinstance(frame, pd.DataFrame):
                raise UserError(
                    f"part {part.name} is an array without labels: write both as Parquet"
                )
            self._check(frame, part.name)
            check_single(frame[self.target], self.target)
            labels, dtype = _labels(frame[self.target])
            known = labels.notna().to_numpy()
            numbers = np.arange(first, first + len(frame))
            why = "no class: the entry is missing"
            refused = [RejectedRow(int(i), self.target, why) for i in numbers[~known]]
            gone = {self.target, *self.drop} - {self.key}
            kept = frame.loc[known].drop(columns=sorted(gone)).apply(with_gaps)
            texts = labels[known].to_numpy(dtype=object).astype(str)
            yield Batch(kept.reset_index(drop=True), texts, numbers[known], refused, dtype)
            first += len(frame)

    def keys(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Keys (n,) by which rows are drawn, and by which they are held out."""
        names = [self.key] if self.key else sorted(batch.frame.columns)
        named = batch.frame[names]
        named = _exact(named) if self.key else named
        labels = texts_of(pd.Series(batch.labels), ()).to_numpy()
        return row_keys(named, labels, _DRAWN), row_keys(named, labels, KEY_SEED)

    def _check(self, frame: pd.DataFrame, part: str) -> None:
        needed = {"target": [self.target], "drop": self.drop, "key": [self.key] if self.key else ()}
        for what, names in needed.items():
            for name in names:
                if name not in frame:
                    near = suggest_name(name, [str(c) for c in frame.columns])
                    raise UserError(f"`{what}` names {name!r}, which is not in part {part}: {near}")


class FrameSample(RowSample):
    """A sample of rows that are kept as frames."""

    @staticmethod
    def _joined(parts: list[Any]) -> Any:
        if not isinstance(parts[0], pd.DataFrame):
            return np.concatenate(parts)
        return join_frames([part for part in parts if len(part)] or parts[:1])


@dataclass(frozen=True)
class Refusals:
    """Number of refused rows, and the first of them with their parts."""

    rows: int = 0
    first: tuple[tuple[str, RejectedRow], ...] = ()

    @classmethod
    def of(cls, part: str, refused: list[RejectedRow]) -> Self:
        """Return the refusals of a part, or of some of its rows."""
        return cls(len(refused), tuple((part, one) for one in refused[:NAMED]))

    def __add__(self, other: Refusals) -> Refusals:
        return Refusals(self.rows + other.rows, tuple(sorted(self.first + other.first)[:NAMED]))


@dataclass(frozen=True, eq=False)
class FirstResult:
    """Result of the first pass over rows; ``a + b`` is that over both.

    `columns`, `numeric` and `empty` count by column the rows that have it, those of batches where
    it holds numbers, and those of batches where it holds nothing; `dtypes` rows by that of the
    target; `troubles` are parts that cannot be read, with the reason.
    """

    rows: int
    counts: Counter[str]
    dtypes: Counter[str]
    columns: Counter[str]
    numeric: Counter[str]
    empty: Counter[str]
    drawn: FrameSample
    held: FrameSample
    refused: Refusals
    troubles: tuple[tuple[str, str], ...] = ()

    def __add__(self, other: FirstResult) -> FirstResult:
        mine, theirs = vars(self), vars(other)
        return FirstResult(**{name: mine[name] + theirs[name] for name in mine})

    def with_one_spelling(self) -> FirstResult:
        """Return the same with labels of one spelling each: all parts were read by now."""
        names = dict(zip(self.counts, spellings(self.counts, versions(self.counts)), strict=True))
        counts: Counter[str] = Counter()
        for text, rows in self.counts.items():
            counts[names[text]] += rows
        drawn, held = (
            replace(s, labels=np.array([names[t] for t in s.labels.tolist()], dtype=str))
            for s in (self.drawn, self.held)
        )
        return replace(self, counts=counts, drawn=drawn.split()[0], held=held)

    @property
    def rule(self) -> HeldRule:
        """Rule by which rows are held out."""
        return HeldRule(self.held.share, self.held.keys[-1] if len(self.held) else np.uint64(0))


class HeldRule(NamedTuple):
    """Tells rows that are held out by the second of their keys: up to `last`, and in the share."""

    share: float
    last: Any

    def __call__(self, keys: np.ndarray) -> np.ndarray:
        """Return which rows with these keys (n,) are held out, shape (n,)."""
        return np.asarray(in_share(keys, self.share) & (keys <= self.last))


@dataclass(frozen=True)
class FirstPass:
    """The first pass over a part: rows of the two samples, in a share of all keys each."""

    reading: Reading
    reservoir: int
    calibration: int
    drawn: float
    held: float

    @classmethod
    def of(cls, reading: Reading, reservoir: int, calibration: int, rows: int) -> Self:
        """Make the pass over a data set of so many rows.

        Of a part only what can be in the sample is kept: four times what it needs on average.
        """
        drawn, held = (min(1.0, 4 * most / max(rows, 1)) for most in (reservoir, calibration))
        return cls(reading, reservoir, calibration, drawn, min(HELD_SHARE, held))

    def __call__(self, part: Part) -> FirstResult:
        """Return the result of a part."""
        if part.trouble:
            return self.lost(part, part.trouble)
        found = self._of(part.name, None)
        try:
            for batch in self.reading.batches(part):
                found = found + self._of(part.name, batch)
        except Unreadable as error:
            return self.lost(part, str(error))
        return found

    def smaller(self) -> FirstPass | None:
        """Return a pass that reads fewer rows at once, for `Engine.map`."""
        reading = self.reading.smaller()
        return None if reading is None else replace(self, reading=reading)

    def lost(self, part: Part, why: str) -> FirstResult:
        """Return the result of a part that no worker survives."""
        return replace(self._of(part.name, None), troubles=((part.name, why),))

    def _of(self, part: str, batch: Batch | None) -> FirstResult:
        none = np.empty(0, np.uint64)
        if batch is None:
            batch = Batch(pd.DataFrame(), np.empty(0, str), np.empty(0, int), [])
        drawn, held = self.reading.keys(batch) if len(batch.labels) else (none, none)
        frame, labels, n = batch.frame, batch.labels, len(batch.labels)
        rows = {"frame": frame, "number": batch.numbers, "held": held}
        empty = [str(c) for c in frame if with_gaps(frame[c]).isna().all()]
        typed = [str(c) for c in frame if str(c) not in empty and _is_numeric(frame[c])]
        return FirstResult(
            n + len(batch.refused),
            Counter(labels.tolist()),
            Counter({batch.dtype: n}),
            Counter({str(c): n for c in frame}),
            Counter(dict.fromkeys(typed, n)),
            Counter(dict.fromkeys(empty, n)),
            FrameSample.of(drawn, labels, rows, self.reservoir, each=EACH, share=self.drawn),
            FrameSample.of(held, labels, rows, self.calibration, share=self.held),
            Refusals.of(part, batch.refused),
        )


def check_schema(found: FirstResult, names: list[str]) -> None:
    """UserError if a column is missing in some of the parts."""
    labelled = found.rows - found.refused.rows
    partly = [c for c in names if found.columns[c] < labelled]
    if partly:
        told = list_names(f"{c!r} (in {found.columns[c]:,} rows)" for c in partly)
        raise UserError(
            f"the parts differ in their columns: of {labelled:,} rows not all have {told}; write "
            f"all parts with the same columns, or leave these out: drop={partly}"
        )


def mostly_numeric(found: FirstResult) -> list[str]:
    """Columns that are numbers in most rows and something else in others."""
    there = {c: n - found.empty[c] for c, n in found.columns.items()}
    return [c for c, n in there.items() if n / 2 < found.numeric[c] < n]


def reservoir_of(first: FirstResult) -> tuple[FrameSample, list[str]]:
    """The rows to fit on, and the classes of which they hold more than their share."""
    drawn = first.drawn
    plain = np.arange(len(drawn)) < len(replace(drawn, each=0).split()[0])
    free = ~first.rule(drawn.rows["held"])
    number = pd.Series(drawn.labels[free]).groupby(drawn.labels[free]).cumcount().to_numpy()
    kept = np.flatnonzero(free)[plain[free] | (number < RARE)]
    return drawn.take(kept), sorted({str(label) for label in drawn.labels[kept][~plain[kept]]})


def as_classes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels that are texts (n,) as the classes are written."""
    known = [str(one) for one in classes]
    texts, which = np.unique(labels.astype(str), return_inverse=True)
    at = [known.index(text) for text in spellings(texts.tolist(), known)]
    return np.asarray(classes[np.asarray(at, dtype=int)][which])


def classes_named(first: FirstResult, *, as_text: bool) -> np.ndarray:
    """The classes in their order, of the dtype that a frame of all rows has; or texts."""
    texts, names = np.array(list(first.counts)), first.dtypes
    if as_text:
        return np.unique(texts)
    if names.keys() == {"bool"}:
        return np.unique(texts == "True")
    if not all(map(_NUMBERS.fullmatch, names)):
        return np.unique(texts.astype(object))
    common = np.result_type(*names)
    if common.kind == "f" and whole_numbers(texts):
        whole = np.unique(np.array([int(text) for text in texts]))
        # To pandas a gap makes floats of whole numbers, and some of these are no float.
        if first.refused.rows or len(np.unique(whole.astype(common))) < len(whole):
            return whole
    return np.unique(texts.astype(common))


def whole_numbers(texts: Iterable[str]) -> bool:
    """Return whether all labels are whole numbers as they are written."""
    return all(text.lstrip("-").isdigit() and str(int(text)) == text for text in texts)


def _labels(values: pd.Series) -> tuple[pd.Series, str]:
    """Labels as texts, texts as they are written, None for gaps; and the name of their dtype."""
    values = with_gaps(values)
    dtype = getattr(values.dtype, "categories", values).dtype
    # Of Int64 and of numbers of Arrow: the type without gaps.
    dtype = getattr(dtype, "numpy_dtype", dtype)
    kind = pd.api.types.infer_dtype(values) if dtype.kind == "O" else str(dtype)
    name = _DTYPES.get(kind, kind)
    is_text = name != "bool" and not _NUMBERS.fullmatch(name)
    as_written = values.dropna().astype(str).str.strip().unique() if is_text else ()
    return texts_of(values, as_written), name


def _is_numeric(values: pd.Series) -> bool:
    types = pd.api.types
    return types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)


def _exact(key: pd.DataFrame) -> pd.DataFrame:
    """A column of numbers in two halves: as float64 the hash holds 53 bits of an integer."""
    values = key.iloc[:, 0]
    if getattr(values.dtype, "kind", "") not in "iuf":
        return key
    high = values // 2**32
    return pd.DataFrame({"high": high, "low": values - high * 2**32})


@dataclass(frozen=True, eq=False)
class SecondResult:
    """Sums of the second pass; ``a + b`` are those of the rows of both."""

    rows: int
    sums: Sums | None
    low: Any
    high: Any
    refused: Refusals

    def __add__(self, other: SecondResult) -> SecondResult:
        if self.sums is None or other.sums is None:
            some = self if other.sums is None else other
            rows, refused = self.rows + other.rows, self.refused + other.refused
            return replace(some, rows=rows, refused=refused)
        return SecondResult(
            self.rows + other.rows,
            self.sums + other.sums,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.refused + other.refused,
        )


@dataclass(frozen=True, eq=False)
class SecondPass:
    """The second pass over a part: moments of the features of all rows that are not held out."""

    reading: Reading
    columns: tuple[ColumnSpec, ...]
    rule: HeldRule
    features: Any
    fence: tuple[np.ndarray, np.ndarray]
    forms: tuple[Form, ...]
    classes: np.ndarray
    unread: frozenset[str]

    @classmethod
    def of(
        cls, reading: Reading, columns: tuple[ColumnSpec, ...], rule: HeldRule, clf: DIPClassifier,
        X: Any, y: np.ndarray, classes: np.ndarray, unread: frozenset[str],
    ) -> SecondPass:  # fmt: skip
        """After a fit of `clf` on X of the reservoir with labels y; leaves out parts `unread`."""
        evidence = clf.evidence_
        centre, limit = find_fence(evidence.transform(X), y, None)
        if not isinstance(evidence.density_, DensityEnsemble):
            # Only densities made of several leave far rows out.
            limit = limit + np.inf
        forms = needed_forms(evidence.density_)
        # Texts are sorted sooner than objects.
        classes = classes.astype(str) if classes.dtype.kind == "O" else classes
        fence = centre, limit
        return cls(reading, columns, rule, evidence.features_, fence, forms, classes, unread)

    def __call__(self, part: Part) -> SecondResult:
        """The sums of a part."""
        found = SecondResult(0, None, None, None, Refusals())
        for batch in () if part.name in self.unread else self.reading.batches(part):
            if not len(batch.labels):
                continue
            kept = ~self.rule(self.reading.keys(batch)[1])
            frame = batch.frame.loc[kept].reset_index(drop=True)
            X, fine, odd = as_inputs(self.columns, frame, batch.numbers[kept])
            refused = Refusals.of(part.name, odd)
            y = as_classes(batch.labels[kept][fine], self.classes)
            found = found + replace(self._of(X, y), refused=refused)
        return found

    def smaller(self) -> SecondPass | None:
        """Return a pass that reads fewer rows at once, for `Engine.map`."""
        reading = self.reading.smaller()
        return None if reading is None else replace(self, reading=reading)

    def _of(self, X: Any, y: np.ndarray) -> SecondResult:
        n = len(y)
        Z = compute_features(self.features, X) if n else np.empty((0, len(self.fence[1])))
        near = ~outside_of(*self.fence, Z).any(axis=1)
        if not near.any():
            return SecondResult(n, None, None, None, Refusals())
        Z, y = Z[near], y[near]
        sums = Sums.of(Z, y, self.classes, self.forms)
        return SecondResult(n, sums, Z.min(axis=0), Z.max(axis=0), Refusals())


class Passes:
    """Both passes over the parts: on an engine, with what was done before taken from a folder.

    What is kept there is a pickle behind a checksum that takes the key of this user to make: what
    somebody else has put there, or was damaged, is not read but done again.
    """

    def __init__(
        self, engine: Engine, parts: list[Part], work: Path | None, progress: Progress | None
    ) -> None:
        self._engine, self._parts, self._work, self._progress = engine, parts, work, progress
        self._rows, self._done = 2 * sum(part.rows for part in parts), 0

    def run(self, function: Callable[[Part], Any]) -> Any:
        """The sum of what the function gives for the parts."""
        tree: Tree[Any] = Tree(add)
        files = self._files(function)
        todo = []
        for i in range(len(self._parts)):
            try:
                self._add(tree, i, files[i].read())
            except (KeyError, ValueError):
                todo.append(i)
        for at, value in self._engine.map(function, [self._parts[i] for i in todo]):
            number = todo[at]
            if number in files:
                files[number].write(value)
            self._add(tree, number, value)
        return tree.result()

    def _files(self, function: Any) -> dict[int, _SealedFile]:
        """The file of each part, by its number; empty without a folder."""
        if self._work is None:
            return {}
        self._work.mkdir(mode=0o700, parents=True, exist_ok=True)
        question, key = joblib.hash(function), secret_key()
        names = [f"{question} {p.origin} {p.name} {p.first} {p.rows}" for p in self._parts]
        # Another content or question is another file.
        hashes = [blake2b(name.encode(), digest_size=16).hexdigest() for name in names]
        return {i: _SealedFile(self._work / f"{name}.part", key) for i, name in enumerate(hashes)}

    def _add(self, tree: Tree[Any], number: int, value: Any) -> None:
        tree.add(number, value)
        self._done += self._parts[number].rows
        if self._progress is not None and self._rows:
            self._progress(self._done, self._rows)


class _SealedFile(NamedTuple):
    """A value in a file, behind a checksum of both that nobody makes without the key."""

    path: Path
    key: bytes

    def write(self, value: Any) -> None:
        """Write the file whole or not at all."""
        data = pickle.dumps(value)
        try:
            write_file(self.path, self._checksum(data) + data)
        except OSError as error:
            raise UserError(
                f"{error.strerror}: what was read is kept in {self.path.parent}. Free space there, "
                "and call fit again with the same work"
            ) from error

    def read(self) -> Any:
        """The value; ValueError if there is none, or not as it was written."""
        content = self.path.read_bytes() if self.path.is_file() else b""
        checksum, data = content[:_CHECKSUM], content[_CHECKSUM:]
        if not hmac.compare_digest(checksum, self._checksum(data)):
            raise ValueError(f"{self.path} was not written with the key of this user")
        return pickle.loads(data)

    def _checksum(self, data: bytes) -> bytes:
        return hmac.digest(self.key, self.path.name.encode() + data, "sha256")
