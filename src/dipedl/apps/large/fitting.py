"""Fit on data larger than memory: samples of the rows first, then sums over all others."""

from __future__ import annotations

import hmac
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import blake2b
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ...calibration.crossfit import rows_as_numbers
from ...classifier import DIPClassifier
from ...density import GDADensity
from ...density.ensemble import DensityEnsemble, find_fence
from ...density.streaming import (
    GROUPS,
    HELD_SHARE,
    KEY_SEED,
    RowSample,
    Stream,
    group_keys,
    group_numbers,
    in_share,
    row_keys,
)
from ...features.scaling import outside_of
from ...inputs import class_totals, compute_features, prior_of_rows
from ...maths.arrays import check_integer
from ...writing.files import secret_key, write_file
from ...writing.spelling import spellings, versions
from ..table.columns import (
    NUMERIC,
    ColumnSpec,
    as_inputs,
    check_known,
    check_single,
    check_usable,
    infer_columns,
    mark_gaps,
    read_classes,
    split_types,
    texts_of,
)
from ..table.errors import UsageError, UserError, check_columns, list_names
from ..table.fit import (
    FitRequest,
    FitResult,
    build_classifier,
    check_model,
    choose_prior,
    fit_facts,
    fit_with_warnings,
    held_out_scores,
    measure_speed,
    notes_of_warnings,
)
from ..table.reading import RejectedRow, join_frames
from ..table.table_model import TableModel
from .engines import Engine, LocalEngine, Tree
from .parts import Part, Unreadable, parts_of, with_checksums
from .sums import Form, Sums, forms_of, from_sums, needed_forms, parts_without_sums

#: Called with the rows that are done and those there are, of both passes.
Progress = Callable[[int, int], None]
#: Makes a model of the inputs of the reservoir and the number of rows of each class.
ModelOfRows = Callable[[Any, Mapping[str, int]], DIPClassifier]
#: Rows that are worked on at once, and refused rows that are named.
BATCH, NAMED = 50_000, 1000
#: Rows of each class that are drawn at least, if there are so many.
EACH = 10
#: Rows of a rare class that are learned from, though its share of the reservoir is less.
_RARE = 5
#: Fewest distinct held-out rows to learn from.
_FEWEST = 20
#: Fewest groups that are held out.
_FEW_GROUPS = 2
#: Of rows that repeat, so many times the size of the sample are given to a fit.
_COPIES = 4
#: Seed of the keys by which rows are drawn.
_DRAWN = 1
#: Bytes of a checksum.
_CHECKSUM = 32
#: Names of dtypes of numbers, and those of objects by what they hold.
_NUMBERS = re.compile(r"(u?int|float)\d+")
_DTYPES = {
    "boolean": "bool",
    "integer": "int64",
    "floating": "float64",
    "mixed-integer-float": "float64",
}


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


@dataclass(frozen=True)
class LargeFit:
    """A model that was fitted in two passes, and what came of the rows.

    Attributes
    ----------
    classifier : DIPClassifier
    columns : tuple of ColumnSpec
        How its inputs are read.
    rows, learned, held_out : int
        Rows that came; those in the sums and in n; those that were held out. The others were
        refused.
    classes : dict
        Rows of each class.
    refused : Refusals
    notes, troubles : list of str
        What to know of the fit; files that could not be read.
    inputs, numbers : DataFrame, shape (m, d), and ndarray, shape (m,)
        Inputs of the rows of the reservoir, and their numbers in their files.
    drawn : int
        Different rows of the reservoir: those that the classifier and the features learned from.
    """

    classifier: DIPClassifier
    columns: tuple[ColumnSpec, ...]
    rows: int
    learned: int
    held_out: int
    classes: dict[str, int]
    refused: Refusals
    notes: list[str]
    troubles: list[str]
    inputs: pd.DataFrame
    numbers: np.ndarray
    drawn: int


def fit(
    model: DIPClassifier | ModelOfRows,
    data: Any,
    target: str = "target",
    *,
    drop: Sequence[str] = (),
    key: str | None = None,
    group_column: str | None = None,
    types: dict[str, str] | None = None,
    columns: tuple[ColumnSpec, ...] | None = None,
    reservoir: int = 100_000,
    calibration: int = 10_000,
    engine: Engine | None = None,
    partitions: int | str | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
) -> LargeFit:
    """Fit a model on data larger than memory; the same one whatever the parts and the engine.

    The first pass draws two samples by hashes of what rows hold: a reservoir, on which classifier,
    features and every density are fitted, and held-out rows for all that is learned from such. The
    second pass sums moments of all other rows: Gaussians, also those among the default's
    candidates, are those of all rows.

    Parameters
    ----------
    model : DIPClassifier, or function that makes one
        Unfitted. The function gets the inputs of the reservoir and the number of rows of each
        class.
    data, partitions
        See `dipedl.apps.large.parts_of`; a frame, or Parquet or Arrow files.
    target : str, default="target"
        Column of the labels.
    drop : sequence of str, optional
        Columns that are left out.
    key : str, optional
        The column that tells rows apart; default: all that a row holds.
    group_column : str, optional
        Persons, devices or sites: a tenth of these is held out, in place of a tenth of the rows. It
        is no input.
    types : dict, optional
        Kinds of columns by name, "guessed" for the others; default: all columns are numbers.
    columns : tuple of ColumnSpec, optional
        Kinds that are known already, in place of `types`.
    reservoir, calibration : int
        Most rows of the two samples, at least 20.
    engine : Engine, default=LocalEngine()
        Where the passes run.
    work : Path, optional
        Folder in which results of parts are kept: after a kill or an error the same call goes on
        from there, with parts whose file holds the same and whose result is as this user has
        written it.
    progress : function of (rows done, rows in all), optional
        Told after each part.

    Raises
    ------
    UserError
        If the parts have no such target, differ in their columns, hold fewer than two classes, or
        too few different rows to hold some out.
    """
    check_integer("reservoir", reservoir, _FEWEST)
    check_integer("calibration", calibration, _FEWEST)
    if isinstance(model, DIPClassifier):
        model.check_parameters()
    engine = engine or LocalEngine()
    kinds, named = split_types(types or {}, target)
    parts = parts_of(data, partitions)
    if work is not None:
        parts = with_checksums(parts, engine)
    reading = Reading(target, tuple(drop), key, group_column)
    passes = Passes(engine, parts, work, progress)
    first = passes.run(FirstPass(reading, reservoir, calibration, sum(p.rows for p in parts)))
    first = first.with_one_spelling()
    _check_first(first, target, named or (types is None and _are_whole(first.counts)))
    drawn, rare = _reservoir(first)
    classes = _classes(first, as_text=types is not None)
    if columns is None:
        apart = {key, group_column}
        columns = _columns(drawn, first, apart, None if types is None else kinds)
    else:
        check_known(columns, first.columns, "the data")
    X, y, numbers, _, _ = _inputs(columns, drawn, classes)
    *held_out, _, deciding, unreadable = _inputs(columns, first.held, classes)
    groups = None if group_column is None else np.unique(deciding, return_inverse=True)[1]
    clf = clone(model) if isinstance(model, DIPClassifier) else model(X, first.counts)
    clf.fit(X, y, calibration=tuple(held_out))
    unread = frozenset(part for part, _ in first.troubles)
    added = passes.run(SecondPass.of(reading, columns, first.rule, clf, X, y, classes, unread))
    labels, rows = np.array(list(first.counts)), np.array(list(first.counts.values()), dtype=float)
    totals = class_totals(_as_classes(labels, classes), rows, classes)
    _with_all_rows(clf, added, classes, totals, held_out, groups)
    if _adds_up(clf):
        clf.stream_ = _stream(clf, first.held, columns, calibration, totals)
    refused = first.refused + added.refused + unreadable
    return LargeFit(
        classifier=clf,
        columns=columns,
        rows=first.rows,
        learned=added.rows,
        held_out=first.rows - added.rows - refused.rows,
        classes=dict(sorted(first.counts.items())),
        refused=refused,
        notes=_notes(clf, rare, len(drawn), added.rows),
        troubles=list(dict.fromkeys(why for _, why in first.troubles)),
        inputs=X,
        numbers=numbers,
        drawn=len(drawn),
    )


def like(clf: DIPClassifier) -> DIPClassifier:
    """An unfitted model with the fitted classifier and features of `clf`: both can be merged."""
    if not _adds_up(clf):
        raise UserError(
            "the density of the model does not add up, so that nothing can be merged with it: fit "
            "it with density=GDADensity()"
        )
    features = clf.evidence_.features_
    unfitted: DIPClassifier = clone(clf)
    return unfitted.set_params(
        estimator=_frozen(clf.estimator_),
        features="passthrough" if features is None else _frozen(features),
    )


def _frozen(part: Any) -> FrozenEstimator:
    return part if isinstance(part, FrozenEstimator) else FrozenEstimator(part)


# Rows with their labels


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
    """Reader of rows: the target, columns left out, the columns that name a row and its group."""

    target: str
    drop: tuple[str, ...] = ()
    key: str | None = None
    group: str | None = None

    def batches(self, part: Part) -> Iterator[Batch]:
        """The labelled rows of a part; UserError if it has no such columns."""
        first = part.first + 1
        for frame in part.batches(BATCH):
            if not isinstance(frame, pd.DataFrame):
                raise UserError(
                    f"part {part.name} is an array without labels: write both as Parquet"
                )
            names, where = list(map(str, frame.columns)), f"part {part.name}"
            check_columns("target", [self.target], names, where)
            check_columns("drop", self.drop, names, where)
            check_columns("key", [self.key] if self.key else [], names, where)
            check_columns("group_column", [self.group] if self.group else [], names, where)
            check_single(frame[self.target], self.target)
            labels, dtype = _labels(frame[self.target])
            known = labels.notna().to_numpy()
            numbers = np.arange(first, first + len(frame))
            why = "no class: the entry is missing"
            refused = [RejectedRow(int(i), self.target, why) for i in numbers[~known]]
            if self.group is not None:
                alone = known & mark_gaps(frame[self.group]).isna().to_numpy()
                why = "no group: the entry is missing"
                refused += [RejectedRow(int(i), self.group, why) for i in numbers[alone]]
                known = known & ~alone
            gone = {self.target, *self.drop} - {self.key, self.group}
            kept = frame.loc[known].drop(columns=sorted(gone)).apply(mark_gaps)
            texts = labels[known].to_numpy(dtype=object).astype(str)
            yield Batch(kept.reset_index(drop=True), texts, numbers[known], refused, dtype)
            first += len(frame)

    def keys(self, batch: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys (n,) by which rows are drawn, held-out ones too, and that say which are held out.

        The last are those of their groups, if there are any.
        """
        named = batch.frame[[self.key] if self.key else sorted(batch.frame.columns)]
        values = named.iloc[:, 0] if self.key else None
        if values is not None and getattr(values.dtype, "kind", "") in "iuf":
            # In two halves: as float64 the hash holds 53 bits of an integer.
            high = values // 2**32
            named = pd.DataFrame({"high": high, "low": values - high * 2**32})
        names, which = np.unique(batch.labels, return_inverse=True)
        labels, rows = texts_of(pd.Series(names), ()).to_numpy()[which], rows_as_numbers(named)
        drawn, held = (row_keys(rows, labels, seed) for seed in (_DRAWN, KEY_SEED))
        if self.group is None:
            return drawn, held, held
        groups = texts_of(batch.frame[self.group], ()).to_numpy()
        return drawn, held, group_keys(groups, KEY_SEED)


def _labels(values: pd.Series) -> tuple[pd.Series, str]:
    """Labels as texts, texts as they are written, None for gaps; and the name of their dtype."""
    values = mark_gaps(values)
    dtype = getattr(values.dtype, "categories", values).dtype
    # Of Int64 and of numbers of Arrow: the type without gaps.
    dtype = getattr(dtype, "numpy_dtype", dtype)
    kind = pd.api.types.infer_dtype(values) if dtype.kind == "O" else str(dtype)
    name = _DTYPES.get(kind, kind)
    is_text = name != "bool" and not _NUMBERS.fullmatch(name)
    as_written = values.dropna().astype(str).str.strip().unique() if is_text else ()
    return texts_of(values, as_written), name


# The first pass: two samples of the rows


class FrameSample(RowSample):
    """A sample of rows that are kept as frames."""

    @staticmethod
    def concatenate(parts: list[Any]) -> Any:
        """Return parts of the rows, one below the other."""
        if not isinstance(parts[0], pd.DataFrame):
            return np.concatenate(parts)
        return join_frames([part for part in parts if len(part)] or parts[:1])


class HeldRule(NamedTuple):
    """Tells rows that are held out by the last of their keys: up to `last`, and in the share."""

    share: float
    last: Any

    def __call__(self, keys: np.ndarray) -> np.ndarray:
        """Return which rows with these keys (n,) are held out, shape (n,)."""
        return np.asarray(in_share(keys, self.share) & (keys <= self.last))


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
        return replace(self, counts=counts, drawn=drawn.sample(), held=held)

    @property
    def rule(self) -> HeldRule:
        """Rule by which rows are held out."""
        if GROUPS in self.held.rows:
            return HeldRule(HELD_SHARE, np.uint64(2**64 - 1))
        return HeldRule(self.held.share, self.held.keys[-1] if len(self.held) else np.uint64(0))


@dataclass(frozen=True)
class FirstPass:
    """The first pass over a part of a data set of so many rows: two samples.

    Of a part only what can be in a sample is kept: four times what it needs on average.
    """

    reading: Reading
    reservoir: int
    calibration: int
    rows: int

    def __call__(self, part: Part) -> FirstResult:
        """Return the result of a part."""
        try:
            batches = (self._of(part.name, batch) for batch in self.reading.batches(part))
            return reduce(add, batches, self._of(part.name))
        except Unreadable as error:
            return self.lost(part, str(error))

    def lost(self, part: Part, why: str) -> FirstResult:
        """Return the result of a part that no worker survives."""
        return replace(self._of(part.name), troubles=((part.name, why),))

    def _of(self, part: str, batch: Batch | None = None) -> FirstResult:
        drawn = held = deciding = np.empty(0, np.uint64)
        if batch is None:
            batch = Batch(pd.DataFrame(), np.empty(0, str), np.empty(0, int), [])
        elif len(batch.labels):
            drawn, held, deciding = self.reading.keys(batch)
        frame, labels, n = batch.frame, batch.labels, len(batch.labels)
        rows = {"frame": frame, "number": batch.numbers, "held": deciding}
        empty = [str(c) for c in frame if mark_gaps(frame[c]).isna().all()]
        typed = [str(c) for c in frame if str(c) not in empty and _is_numeric(frame[c])]
        share, held_share = (4 * n / max(self.rows, 1) for n in (self.reservoir, self.calibration))
        of_held = held, labels, rows, self.calibration
        if self.reading.group is None:
            sample = FrameSample.of(*of_held, share=min(HELD_SHARE, held_share))
        else:
            # A few groups may hold any share of the rows.
            rows_of_groups = rows | {GROUPS: group_numbers(deciding)}
            every = FrameSample(held, labels, np.ones(n), rows_of_groups, self.calibration)
            some = every.take(np.flatnonzero(in_share(deciding, HELD_SHARE)))
            sample = FrameSample.of(some.keys, some.labels, some.rows, self.calibration)
        return FirstResult(
            n + len(batch.refused),
            Counter(labels.tolist()),
            Counter({batch.dtype: n}),
            Counter({str(c): n for c in frame}),
            Counter(dict.fromkeys(typed, n)),
            Counter(dict.fromkeys(empty, n)),
            FrameSample.of(drawn, labels, rows, self.reservoir, each=EACH, share=min(1.0, share)),
            sample,
            Refusals.of(part, batch.refused),
        )


def _is_numeric(values: pd.Series) -> bool:
    types = pd.api.types
    return types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)


def _check_first(first: FirstResult, target: str, named: bool) -> None:
    """UserError if nothing can be learned from what the first pass has found.

    Numbers are `named` as classes, or must be few.
    """
    if not first.counts:
        why = f": {first.troubles[0][1]}" if first.troubles else ""
        raise UserError(f"there is no row with a class in {target!r}{why}")
    labelled = first.rows - first.refused.rows
    partly = [c for c in sorted(first.columns) if first.columns[c] < labelled]
    if partly:
        rows = list_names(f"{c!r} (in {first.columns[c]:,} rows)" for c in partly)
        raise UserError(
            f"the parts differ in their columns: of {labelled:,} rows not all have {rows}; write "
            f"all parts with the same columns, or leave these out: drop={partly}"
        )
    if GROUPS in first.held.rows and (n := len(np.unique(first.held.rows[GROUPS]))) < _FEW_GROUPS:
        raise UserError(
            f"`group_column` has too few groups: a tenth is held out, and of these {n}. Give rows "
            "of more groups, or fit in memory"
        )
    if len(first.held) < _FEWEST:
        few = first.rows < 2 * _FEWEST / HELD_SHARE
        raise UserError(
            f"only {len(first.held)} rows are held out of {first.rows:,}: "
            + ("give more rows" if few else "rows repeat; give key, a column that tells them apart")
        )
    labels = pd.Series(first.drawn.labels.astype(object))
    read_classes(labels, target, np.arange(len(labels)), named)


def _reservoir(first: FirstResult) -> tuple[FrameSample, list[str]]:
    """The rows to fit on, and the classes of which they hold more than their share."""
    drawn = first.drawn
    plain = np.arange(len(drawn)) < len(replace(drawn, each=0).sample())
    free = ~first.rule(drawn.rows["held"])
    number = pd.Series(drawn.labels[free]).groupby(drawn.labels[free]).cumcount().to_numpy()
    kept = np.flatnonzero(free)[plain[free] | (number < _RARE)]
    return drawn.take(kept), sorted({str(label) for label in drawn.labels[kept][~plain[kept]]})


def _columns(
    drawn: FrameSample,
    first: FirstResult,
    apart: set[str | None],
    kinds: dict[str, str] | None,
) -> tuple[ColumnSpec, ...]:
    """Columns of these `kinds` and, if not named, guessed from the reservoir; None: all numbers.

    A column that holds numbers in most rows and something else in others is one of numbers.
    """
    frame = drawn.rows["frame"][[c for c in first.columns if c not in apart]]
    there = {c: first.columns[c] - first.empty[c] for c in frame}
    mostly = [c for c, n in there.items() if n / 2 < first.numeric[c] < n]
    numbers = list(frame) if kinds is None else mostly
    kinds = kinds or {}
    plain = {c: ColumnSpec(c, NUMERIC) for c in numbers if c not in kinds}
    guessed = infer_columns(frame[[c for c in frame if c not in plain]], kinds)
    known = {column.name: column for column in guessed}
    known |= plain
    return tuple(known[c] for c in frame)


def _classes(first: FirstResult, *, as_text: bool) -> np.ndarray:
    """The classes in their order, of the dtype that a frame of all rows has; or texts."""
    texts, names = np.array(list(first.counts)), first.dtypes
    if as_text:
        return np.unique(texts)
    if names.keys() == {"bool"}:
        return np.unique(texts == "True")
    if not all(map(_NUMBERS.fullmatch, names)):
        return np.unique(texts.astype(object))
    common = np.result_type(*names)
    if common.kind == "f" and _are_whole(texts):
        whole = np.unique(np.array([int(text) for text in texts]))
        # To pandas a gap makes floats of whole numbers, and some of these are no float.
        if first.refused.rows or len(np.unique(whole.astype(common))) < len(whole):
            return whole
    return np.unique(texts.astype(common))


def _are_whole(texts: Iterable[str]) -> bool:
    """Return whether all labels are whole numbers as they are written."""
    return all(text.lstrip("-").isdigit() and str(int(text)) == text for text in texts)


def _as_classes(labels: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels that are texts (n,) as the classes are written."""
    known = [str(one) for one in classes]
    texts, which = np.unique(labels.astype(str), return_inverse=True)
    at = [known.index(text) for text in spellings(texts.tolist(), known)]
    return np.asarray(classes[np.asarray(at, dtype=int)][which])


def _inputs(
    columns: tuple[ColumnSpec, ...], sample: RowSample, classes: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, Refusals]:
    """Inputs, labels, numbers and last keys of a sample, copies repeated; what was refused."""
    scale = min(1.0, _COPIES * max(sample.most, len(sample)) / sample.counts.sum())
    times = np.maximum(1, np.round(scale * sample.counts)).astype(int)
    frame, numbers = sample.rows["frame"], sample.rows["number"]
    X, valid, unreadable = as_inputs(columns, frame, numbers)
    check_usable(valid, unreadable, "the sample")
    at = np.arange(len(X)).repeat(times[valid])
    X = X.iloc[at].reset_index(drop=True)
    refused = Refusals(int(sample.counts[~valid].sum()), tuple(("", one) for one in unreadable))
    deciding = sample.rows["held"][valid][at]
    return X, _as_classes(sample.labels[valid][at], classes), numbers[valid][at], deciding, refused


# The second pass: sums over all rows that are not held out


@dataclass(frozen=True, eq=False)
class SecondResult:
    """Rows and sums of the second pass; ``a + b`` are those of both."""

    rows: int = 0
    sums: Sums | None = None
    refused: Refusals = Refusals()

    def __add__(self, other: SecondResult) -> SecondResult:
        sums = self.sums or other.sums
        if self.sums is not None and other.sums is not None:
            sums = self.sums + other.sums
        return SecondResult(self.rows + other.rows, sums, self.refused + other.refused)


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
        batches = () if part.name in self.unread else self.reading.batches(part)
        found = (self._of(part.name, batch) for batch in batches if len(batch.labels))
        return reduce(add, found, SecondResult())

    def _of(self, part: str, batch: Batch) -> SecondResult:
        kept = ~self.rule(self.reading.keys(batch)[2])
        frame = batch.frame.loc[kept].reset_index(drop=True)
        X, valid, unreadable = as_inputs(self.columns, frame, batch.numbers[kept])
        y = _as_classes(batch.labels[kept][valid], self.classes)
        sums = None
        if len(y):
            Z = compute_features(self.features, X)
            near = ~outside_of(*self.fence, Z).any(axis=1)
            sums = Sums.of(Z[near], y[near], self.classes, self.forms) if near.any() else None
        return SecondResult(len(y), sums, Refusals.of(part, unreadable))


def _with_all_rows(
    clf: DIPClassifier,
    added: SecondResult,
    classes: np.ndarray,
    totals: np.ndarray,
    held_out: list[Any],
    groups: np.ndarray | None,
) -> None:
    """Put sums of all rows in place of those of the reservoir; learn from `held_out` again."""
    evidence = copy(clf.evidence_)
    evidence.n_ = float(added.rows)
    evidence.prior = prior_of_rows(clf.prior, classes, totals)
    if added.sums is not None:
        evidence.density_ = density = from_sums(evidence.density_, added.sums, classes)
        if isinstance(density, DensityEnsemble):
            width = added.sums.high - added.sums.low
            width = np.where(width > 0, width, 1.0)
            density.reach_ = replace(density.reach_, low=added.sums.low, width=width)
    clf.evidence_ = evidence
    clf.calibrate(*held_out, groups=groups)


def _adds_up(clf: DIPClassifier) -> bool:
    density = clf.evidence_.density_
    return bool(forms_of(density)) and hasattr(density, "__add__")


def _stream(
    clf: DIPClassifier,
    held: FrameSample,
    columns: tuple[ColumnSpec, ...],
    most: int,
    totals: np.ndarray,
) -> Stream:
    """Return the stream that a merge with another model needs."""
    evidence = clf.evidence_
    X, valid, _ = as_inputs(columns, held.rows["frame"], held.rows["number"])
    rows = {"Z": evidence.transform(X), "P": clf.fitted_classifier().proba(X)}
    labels = _as_classes(held.labels[valid], clf.classes_)
    share = HELD_SHARE
    if GROUPS in held.rows:
        share, rows[GROUPS] = 1.0, held.rows[GROUPS][valid]
    parts = (held.keys[valid], labels, held.counts[valid], rows, most)
    sample = RowSample(*parts, share=share)
    return Stream(evidence.density_, evidence.features_, sample, evidence.n_, totals, False)


def _notes(clf: DIPClassifier, rare: list[str], n: int, rows: int) -> list[str]:
    """Return notes on the parts fitted on all rows, and on the n of the reservoir."""
    if rows <= n:
        return []
    parts = ["the classifier", "the features", *parts_without_sums(clf.evidence_.density_)]
    notes = [
        f"learned from {n:,} rows, drawn by what they hold: {list_names(parts)}; from all "
        f"{rows:,}: means and covariances of the Gaussians, and the number of rows"
    ]
    why = f"their share of the sample is less than {_RARE} rows: the classifier overstates them"
    return [*notes, f"rare classes: {list_names(rare)}; {why}"] if rare else notes


# Both passes on an engine, with what an earlier run has kept


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


# Models of tables: ``dipedl fit`` of data in parts, and ``dipedl merge``

_DENSITIES: dict[str, Any] = {"default": None, "gaussians": GDADensity()}


@dataclass(frozen=True)
class OrderInParts(FitRequest):
    """Options of a fit in two passes; see ``dipedl fit --help``."""

    density: str = "default"
    key: str | None = None
    reservoir: int = 100_000
    calibration: int = 10_000
    like: TableModel | None = None


def learn_parts(data: Any, order: OrderInParts, engine: Engine, **options: Any) -> FitResult:
    """Fit the model that `order` asks for on data of any size; the order's `rows` is not read.

    `options` are partitions, work and progress of `fit`.
    """
    model = _model(order)
    columns = None if order.like is None else order.like.columns
    options |= {"drop": order.drop, "key": order.key, "types": dict(order.types)}
    options["group_column"] = order.group_column
    options |= {"reservoir": order.reservoir, "calibration": order.calibration}
    fitted, caught, seconds = fit_with_warnings(
        lambda: fit(model, data, order.target, columns=columns, engine=engine, **options)
    )
    clf = fitted.classifier
    held_out = held_out_scores(clf)
    facts = _facts(data, order, fitted, held_out)
    made = TableModel(clf, fitted.columns, order.target, facts, fitted.numbers)
    notes = [*fitted.notes, *notes_of_warnings(caught, fitted.numbers)]
    named = [
        one._replace(reason=f"{one.reason} (part {part})") if part else one
        for part, one in fitted.refused.first
    ]
    numbers = held_out | measure_speed(clf, fitted.inputs, seconds)
    refused = (named, fitted.refused.rows)
    return FitResult(made, numbers, clf.diagnose(), *refused, notes, failed=fitted.troubles)


def merge(a: TableModel, b: TableModel) -> TableModel:
    """The model that has seen the rows of both; ValueError with the reason if there is none."""
    if a.target != b.target:
        raise UserError(f"they predict different columns, {a.target!r} and {b.target!r}")
    classes = dict(Counter(a.facts["classes"]) + Counter(b.facts["classes"]))
    first = copy(a.classifier)
    first.prior = choose_prior(a.facts["prior"], classes)
    both = first + b.classifier
    facts = a.facts | {
        "file": f"{a.facts['file']} and {b.facts['file']}",
        "rows": a.facts["rows"] + b.facts["rows"],
        "learned": int(both.evidence_.n_),
        "classes": classes,
        "held_out": held_out_scores(both),
    }
    return replace(a, classifier=both, facts=facts)


def _model(order: OrderInParts) -> DIPClassifier | ModelOfRows:
    check_model(order.model, order.prior)
    if order.density not in _DENSITIES:
        raise UsageError(
            f"`density` must be one of {list_names(_DENSITIES)}, got {order.density!r}"
        )
    if order.like is not None:
        if order.target != order.like.target:
            raise UsageError(
                f"`target` {order.target!r} with `like`: that model predicts "
                f"{order.like.target!r}, and only models of one target can be merged; leave "
                "`target` out"
            )
        return like(order.like.classifier)

    def build(X: Any, rows: Mapping[str, int]) -> DIPClassifier:
        return build_classifier(order, X, rows, _DENSITIES[order.density])

    return build


def _facts(
    data: Any, order: OrderInParts, fitted: LargeFit, held_out: dict[str, float]
) -> dict[str, Any]:
    name = data if isinstance(data, str) else "rows in memory"
    named = "the default density" if order.density == "default" else f"the density {order.density}"
    facts = fit_facts(
        order,
        name.rstrip("/").rpartition("/")[2],
        format="in parts",
        rows=fitted.rows,
        learned=fitted.learned,
        classifier_rows=min(fitted.drawn, fitted.learned),
        classes=fitted.classes,
        held_out=held_out,
        held_out_how="by what they hold" if order.group_column is None else "by groups",
        density=named,
    )
    if order.like is None:
        return facts
    known = order.like.facts
    kept = {
        name: known[name]
        for name in ("model", "model_title", "density", "prior", "time_column")
        if name in known
    }
    return facts | kept | {"classifier_rows": known.get("classifier_rows", known["learned"])}
