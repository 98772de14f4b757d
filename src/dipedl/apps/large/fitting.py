"""Fit on data larger than memory, in two passes over its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from ...classifier import DIPClassifier
from ...density.ensemble import DensityEnsemble
from ...streaming import HELD_SHARE, RowSample, Stream
from ..table.columns import (
    NUMERIC,
    ColumnSpec,
    as_inputs,
    check_known,
    check_usable,
    infer_columns,
    read_classes,
    split_types,
    with_usual,
)
from ..table.errors import UserError, list_names
from .engines import Engine, LocalEngine
from .parts import parts_of, with_checksums
from .passes import (
    RARE,
    FirstPass,
    FirstResult,
    FrameSample,
    Passes,
    Progress,
    Reading,
    Refusals,
    SecondPass,
    SecondResult,
    as_classes,
    check_schema,
    classes_named,
    mostly_numeric,
    reservoir_of,
    whole_numbers,
)
from .sums import forms_of, from_sums, parts_without_sums

#: Fewest distinct held-out rows to learn from.
_FEWEST = 20
#: Of rows that repeat, so many times the size of the sample are given to a fit.
_COPIES = 4


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
    model: DIPClassifier | Callable[[Any], DIPClassifier],
    data: Any,
    target: str = "target",
    *,
    drop: Sequence[str] = (),
    key: str | None = None,
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
    model : DIPClassifier, or function that makes one of the inputs of the reservoir
        Unfitted.
    data, partitions
        See `dipedl.apps.large.parts_of`; a frame, or Parquet or Arrow files.
    target : str, default="target"
        ColumnSpec of the labels.
    drop : sequence of str, optional
        Columns that are left out.
    key : str, optional
        The column that tells rows apart; default: all that a row holds.
    types : dict, optional
        Kinds of columns by name, "guessed" for the others; default: all columns are numbers.
    columns : tuple of ColumnSpec, optional
        Kinds that are known already, in place of `types`.
    reservoir, calibration : int
        Most rows of the two samples.
    engine : Engine, default=LocalEngine()
        Where the passes run.
    work : Path, optional
        Folder in which results of parts are kept: after a kill the same call goes on from there,
        with parts whose file holds the same and whose result is as this user has written it.
    progress : function of (rows done, rows in all), optional
        Told after each part.

    Raises
    ------
    UserError
        If the parts have no such target, differ in their columns, hold fewer than two classes, or
        too few different rows to hold some out.
    """
    engine = engine or LocalEngine()
    kinds, named = split_types(types or {}, target)
    parts = parts_of(data, partitions)
    if not isinstance(parts, list):
        raise UserError("a loader is read once, and fit reads twice: use partial_fit, or Parquet")
    if work is not None:
        parts = with_checksums(parts, engine)
    rows = sum(part.rows for part in parts)
    reading = Reading(target, tuple(drop), key)
    passes = Passes(engine, parts, work, progress)
    first = passes.run(FirstPass.of(reading, reservoir, calibration, rows))
    first = first.with_one_spelling()
    _check_first(first, target, named or (types is None and whole_numbers(first.counts)))
    drawn, more = reservoir_of(first)
    classes = classes_named(first, as_text=types is not None)
    if columns is None:
        columns = _columns(drawn, first, key, None if types is None else kinds)
    else:
        check_known(columns, first.columns, "the data")
    X, y, numbers, _ = _inputs(columns, drawn, classes)
    *held, _, odd = _inputs(columns, first.held, classes)
    clf = clone(model) if isinstance(model, DIPClassifier) else model(X)
    clf.fit(X, y, calibration=tuple(held))
    unread = frozenset(part for part, _ in first.troubles)
    added = passes.run(SecondPass.of(reading, columns, first.rule, clf, X, y, classes, unread))
    _with_all_rows(clf, added, classes, held)
    if _adds_up(clf):
        clf.stream_ = _stream(clf, first.held, columns, calibration)
    refused = first.refused + added.refused + odd
    return LargeFit(
        classifier=clf,
        columns=columns,
        rows=first.rows,
        learned=added.rows,
        held_out=first.rows - added.rows - refused.rows,
        classes=dict(sorted(first.counts.items())),
        refused=refused,
        notes=_notes(clf, more, len(drawn), added.rows),
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


def _with_all_rows(
    clf: DIPClassifier, added: SecondResult, classes: np.ndarray, held: list[Any]
) -> None:
    """Put the sums of all rows in place of those of the reservoir, and learn from `held` again."""
    evidence = copy(clf.evidence_)
    evidence.n_ = float(added.rows)
    if added.sums is not None:
        evidence.density_ = density = from_sums(evidence.density_, added.sums, classes)
        if isinstance(density, DensityEnsemble):
            width = added.high - added.low
            width = np.where(width > 0, width, 1.0)
            density.reach_ = replace(density.reach_, low=added.low, width=width)
    clf.evidence_ = evidence
    clf.calibrate(*held)


def _check_first(first: FirstResult, target: str, named: bool) -> None:
    """UserError if nothing can be learned from what the first pass has found.

    Numbers are `named` as classes, or must be few.
    """
    if not first.counts:
        why = f": {first.troubles[0][1]}" if first.troubles else ""
        raise UserError(f"there is no row with a class in {target!r}{why}")
    check_schema(first, sorted(first.columns))
    if len(first.held) < _FEWEST:
        few = first.rows < 2 * _FEWEST / HELD_SHARE
        raise UserError(
            f"only {len(first.held)} rows are held out of {first.rows:,}: "
            + ("give more rows" if few else "rows repeat; give key, a column that tells them apart")
        )
    labels = pd.Series(first.drawn.labels.astype(object))
    read_classes(labels, target, np.arange(len(labels)), named)


def _columns(
    drawn: FrameSample, first: FirstResult, key: str | None, kinds: dict[str, str] | None
) -> tuple[ColumnSpec, ...]:
    """Columns of these `kinds` and, if not named, guessed from the reservoir; None: all numbers."""
    frame = drawn.rows["frame"][[c for c in first.columns if c != key]]
    numbers = list(frame) if kinds is None else mostly_numeric(first)
    kinds = kinds or {}
    plain = {c: ColumnSpec(c, NUMERIC) for c in numbers if c not in kinds}
    guessed = infer_columns(frame[[c for c in frame if c not in plain]], kinds)
    known = {column.name: column for column in guessed}
    known |= {c: with_usual(column, frame[c]) for c, column in plain.items()}
    return tuple(known[c] for c in frame)


def _inputs(
    columns: tuple[ColumnSpec, ...], sample: RowSample, classes: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray, Refusals]:
    """Inputs, labels and numbers in their files of a sample, copies repeated; what was refused."""
    scale = min(1.0, _COPIES * max(sample.most, len(sample)) / sample.counts.sum())
    times = np.maximum(1, np.round(scale * sample.counts)).astype(int)
    frame, numbers = sample.rows["frame"], sample.rows["number"]
    X, fine, odd = as_inputs(columns, frame, numbers)
    check_usable(fine, odd, "the sample")
    at = np.arange(len(X)).repeat(times[fine])
    X = X.iloc[at].reset_index(drop=True)
    refused = Refusals(int(sample.counts[~fine].sum()), tuple(("", one) for one in odd))
    return X, as_classes(sample.labels[fine][at], classes), numbers[fine][at], refused


def _adds_up(clf: DIPClassifier) -> bool:
    density = clf.evidence_.density_
    return bool(forms_of(density)) and hasattr(density, "__add__")


def _stream(
    clf: DIPClassifier, held: FrameSample, columns: tuple[ColumnSpec, ...], most: int
) -> Stream:
    """Return the stream that a merge with another model needs."""
    evidence = clf.evidence_
    X, fine, _ = as_inputs(columns, held.rows["frame"], held.rows["number"])
    rows = {"Z": evidence.transform(X), "P": clf.fitted_classifier().proba(X)}
    labels = as_classes(held.labels[fine], clf.classes_)
    parts = (held.keys[fine], labels, held.counts[fine], rows, most)
    sample = RowSample(*parts, share=HELD_SHARE)
    return Stream(evidence.density_, evidence.features_, sample, evidence.n_, False)


def _frozen(part: Any) -> FrozenEstimator:
    return part if isinstance(part, FrozenEstimator) else FrozenEstimator(part)


def _notes(clf: DIPClassifier, more: list[str], n: int, rows: int) -> list[str]:
    """Return notes on the parts fitted on all rows, and on the n of the reservoir."""
    if rows <= n:
        return []
    what = ["the classifier", "the features", *parts_without_sums(clf.evidence_.density_)]
    notes = [
        f"learned from {n:,} rows, drawn by what they hold: {list_names(what)}; from all {rows:,}: "
        "means and covariances of the Gaussians, and the number of rows"
    ]
    why = f"their share of the sample is less than {RARE} rows: the classifier overstates them"
    return [*notes, f"rare classes: {list_names(more)}; {why}"] if more else notes
