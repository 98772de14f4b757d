"""Learn from a table: kinds of columns, a classifier with its density, and what to know of it."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TimeSeriesSplit
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ...classifier import DIPClassifier
from ...evidence_model import CAUTION
from ...explanation import Diagnosis, Finding, FindingWarning, UnknownRehearsal, rehearse_unknown
from ...features.encoding import FAR, scale_with_gaps_far
from ...features.scaling import FarRowsWarning
from ...inputs import EMPIRICAL, PRIOR
from ...maths.arrays import on_simplex
from ...metrics import accuracy, brier_score, ece
from ...protocols import optional
from ...writing.text import printable_name
from .check import LabelledTable, describe_columns, read_groups, read_labelled
from .columns import DATE, NUMERIC, guess, read_dates, to_numbers
from .errors import UsageError, UserError, check_columns, list_names
from .images import checksum
from .reading import IMAGES, RejectedRow, Table
from .table_model import TableModel, attach_table

T = TypeVar("T")
_TIMED, _FEW = 500, 200
#: Rows that are answered at once where there are many, and seconds that are enough to measure.
SCORED_AT_ONCE, _LONG = 20_000, 0.5
_BY_TIME = 4
#: Most rows of each fit that leaves a class out.
REHEARSED = 5_000
#: Priors: the same for each class, or the frequencies, which "auto" takes where the largest class
#: has so many times the rows of the smallest.
AUTO, UNEQUAL = "auto", 10
PRIORS = (AUTO, "even", EMPIRICAL)


@dataclass(frozen=True)
class FitRequest:
    """Settings of a fit, as the options of ``dipedl fit``."""

    target: str
    model: str = "boosting"
    drop: Sequence[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    time_column: str | None = None
    group_column: str | None = None
    rows: int | None = None
    false_alarms: float = 0.05
    caution: float = CAUTION
    prior: str = AUTO
    seed: int = 0
    verbose: bool = False
    unknown: bool = False


@dataclass(frozen=True)
class FitResult:
    """A fitted model, and what its owner should know: numbers, findings, refused rows, notes.

    `refused` are the first of `refused_rows` rows; `failed` says which files cannot be read.
    """

    model: TableModel
    numbers: dict[str, float]
    diagnosis: Diagnosis
    refused: list[RejectedRow]
    refused_rows: int
    notes: list[str]
    failed: list[str] = field(default_factory=list)


class TrainingRows(NamedTuple):
    """Rows of a table to learn from: inputs X (n, d), labels, row numbers and groups, (n,) each."""

    read: LabelledTable
    X: pd.DataFrame
    y: np.ndarray
    rows: np.ndarray
    groups: np.ndarray | None


def read_training_rows(
    table: Table, request: FitRequest, problems: list[Finding] | None = None
) -> TrainingRows:
    """Read what a fit learns from; UserError where it could learn nothing.

    `problems` as of `read_labelled`.
    """
    check_model(request.model, request.prior)
    target, time_column = request.target, request.time_column
    group_column, apart = request.group_column, [time_column, request.group_column]
    for option in ("time_column", "group_column"):
        if (name := getattr(request, option)) is not None:
            check_columns(option, [name], table.names, table.path)
    if None not in apart:
        raise UsageError(
            "`time_column` and `group_column` each say which rows are held out: give one of them"
        )
    if group_column == target:
        raise UserError(f"`group_column` names the target {target!r}; give another column")
    if target in request.drop:
        raise UserError(f"`drop` names the target {target!r}; drop other columns")
    drop = [*request.drop, *(name for name in apart if name is not None)]
    if len(table.names) > 1 and {*table.names} <= {target, *drop}:
        raise UserError(f"no column of {table.path} is left to learn from; drop fewer")
    read = read_labelled(table, target, drop, request.types, request.rows, request.seed, problems)
    X, y, rows = read.X, read.y.to_numpy(dtype=object).astype(str), read.rows
    if X.shape[1] == 0:
        kinds = list_names(f"{c.name} ({c.describe()})" for c in read.columns)
        raise UserError(
            f"{table.path} has no column to learn from: {kinds}; name a kind for one in `types`"
        )
    if not (X.nunique(dropna=False) > 1).any():
        raise UserError(f"{table.path} is equal in all rows but for {target!r}: drop fewer columns")
    if time_column is not None:
        order = _by_time(read.frame[time_column], rows, time_column)
        X, y, rows = X.iloc[order].reset_index(drop=True), y[order], rows[order]
    groups = None if group_column is None else read_groups(read, group_column)
    return TrainingRows(read, X, y, rows, groups)


def fit_table(
    table: Table, request: FitRequest, progress: Callable[[int, int], None] | None = None
) -> FitResult:
    """Fit the model that is requested on a table.

    `progress` is told how many of the classes were left out, if that is requested.
    """
    read, X, y, rows, groups = learned = read_training_rows(table, request)
    if request.unknown:
        check_left_out(learned)
    pixels = table.format.kind == IMAGES and not table.format.packed
    clf = build_classifier(request, X, Counter(y.tolist()), pixels=pixels)
    fitted, caught, seconds = fit_with_warnings(lambda: clf.fit(X, y, groups=groups))
    held_out = held_out_scores(fitted)
    if request.unknown:
        fitted.unknown_rehearsal_ = rehearse_unknown(
            fitted, X, y, groups, max_rows=REHEARSED, progress=progress
        )
    facts = fit_facts(
        request,
        table.path.name,
        format=str(table.format),
        rows=read.sample.total,
        learned=len(y),
        classes=dict(sorted(Counter(y.tolist()).items())),
        held_out=held_out,
        gaps=list(table.gaps),
    )
    if table.format.kind == IMAGES:
        network = table.format.packed
        facts |= {"images": network, "images_sha256": checksum(network)}
    if pixels:
        facts["model_title"] += f" on {components(X)} principal components"
    model = TableModel(fitted, read.columns, request.target, facts, rows)
    attach_table(model)
    notes = [*_notes(read), *notes_of_warnings(caught, rows)]
    numbers = held_out | measure_speed(fitted, X, seconds)
    return FitResult(model, numbers, fitted.diagnose(), read.refused, len(read.refused), notes)


def rehearse_table(
    table: Table, request: FitRequest, progress: Callable[[int, int], None] | None = None
) -> UnknownRehearsal:
    """Leave each class of a table out of a fit of the model that is requested."""
    # Classes of few rows, and columns that cannot be read, are for `check_table` to name.
    learned = read_training_rows(table, request, problems=[])
    check_left_out(learned)
    return rehearse_unknown(
        build_classifier(request, learned.X, Counter(learned.y.tolist())),
        learned.X,
        learned.y,
        learned.groups,
        max_rows=REHEARSED,
        progress=progress,
    )


def check_left_out(learned: TrainingRows) -> None:
    """Refuse a target of two classes."""
    known, target = sorted(set(learned.y.tolist())), learned.read.target
    if len(known) < 3:
        raise UserError(
            f"{target!r} has the classes {list_names(known)}: with one left out there is nothing "
            "to classify. Give a column of three classes or more; or see what the model makes of "
            "rows of no class, by `dipedl report --ood`"
        )


def _by_time(values: pd.Series, rows: np.ndarray, name: str) -> np.ndarray:
    """Return the order of the rows, numbers (n,), by a column of dates or numbers, (n,)."""
    found = guess(values, name)
    if found.kind == DATE:
        when = read_dates(values, found.date)
    elif found.kind == NUMERIC:
        when = pd.Series(to_numbers(values, found.decimal))
    else:
        raise UserError(f"`time_column` {name} is {found.kind}: give a column of dates or numbers")
    if when.isna().any():
        row = rows[int(np.flatnonzero(when.isna())[0])]
        raise UserError(
            f"`time_column` {name} is missing in row {row}; fill or leave out such rows"
        )
    return np.asarray(when.argsort(kind="stable"))


def choose_prior(prior: str, rows: Mapping[str, int]) -> float | str:
    """Return the `prior` of a model: the one that is asked for, or that rows of classes call for.

    `rows` is the number of rows of each class.
    """
    unequal = max(rows.values()) >= UNEQUAL * min(rows.values())
    return EMPIRICAL if prior == EMPIRICAL or (prior == AUTO and unequal) else PRIOR


def build_classifier(
    request: FitRequest,
    X: pd.DataFrame,
    rows: Mapping[str, int],
    density: Any = None,
    pixels: bool = False,
) -> DIPClassifier:
    """Return the model that is requested, for inputs X (n, d) and so many rows of each class."""
    return DIPClassifier(
        classifier(request.model, X, request.seed, pixels),
        density,
        cv="auto" if request.time_column is None else TimeSeriesSplit(_BY_TIME),
        prior=choose_prior(request.prior, rows),
        false_alarm_rate=request.false_alarms,
        caution=request.caution,
        random_state=request.seed,
        verbose=int(request.verbose),
    )


def fit_with_warnings(fit: Callable[[], T]) -> tuple[T, list[warnings.WarningMessage], float]:
    """Return the result of a fit, its warnings and its seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit()
    return found, caught, time.perf_counter() - start


def notes_of_warnings(caught: Sequence[warnings.WarningMessage], rows: np.ndarray) -> list[str]:
    """Warnings of a fit as notes, each once, with the numbers of rows in their file, (n,).

    A finding comes again, in the terms of the shell.
    """
    messages = [w.message for w in caught if issubclass(w.category, UserWarning)]
    notes = dict.fromkeys(
        str(one.rename(rows) if isinstance(one, FarRowsWarning) else one)
        for one in messages
        if not isinstance(one, FindingWarning)
    )
    return list(notes)


def held_out_scores(clf: DIPClassifier) -> dict[str, float]:
    """Accuracy, Brier score and calibration error on held-out rows."""
    held_out = clf.evidence_.held_out_
    proba, y = np.asarray(clf.held_out_dirichlet().mean), np.asarray(held_out.labels)
    return {
        "held_out_rows": float(len(y)),
        "accuracy": float(accuracy(y, proba)),
        "brier": float(brier_score(y, proba)),
        "ece": float(ece(y, proba)),
        "classifier_ece": float(ece(y, clf.evidence_.held_out_classifier_proba())),
        "share_of_largest_class": float(np.bincount(y).max() / len(y)),
    }


def measure_speed(clf: DIPClassifier, X: pd.DataFrame, fit_seconds: float) -> dict[str, float]:
    """Seconds of the fit, and rows that are answered in one, by X (n, d), repeated as needed.

    As many rows are answered at once as take a while, `SCORED_AT_ONCE` at most, as a table is:
    of a few rows most of the time is that of a call.
    """
    rows, best = min(_TIMED, SCORED_AT_ONCE), np.inf
    clf.answers(X.iloc[:1])  # the first prepares the search of neighbours
    while True:
        some = X.iloc[np.arange(rows) % len(X)].reset_index(drop=True)
        start = time.perf_counter()
        clf.answers(some)
        seconds = time.perf_counter() - start
        best = min(best, seconds / rows)
        if seconds > _LONG or rows == SCORED_AT_ONCE:
            return {"fit_seconds": fit_seconds, "rows_per_second": 1 / best}
        rows = min(4 * rows, SCORED_AT_ONCE)


def fit_facts(request: FitRequest, file: str, **found: Any) -> dict[str, Any]:
    """Return settings and results of a fit as the file of a model holds them."""
    asked = ("model", "time_column", "group_column", "prior", "seed")
    return {name: getattr(request, name) for name in asked} | {
        "file": printable_name(file),
        "model_title": title(request.model),
        "dropped": list(request.drop),
        "gaps": [],
        "images": None,
        "images_sha256": "",
        **found,
    }


def _notes(read: LabelledTable) -> list[str]:
    some, n, notes = read.sample, len(read.X), list[str]()
    if some.total > len(some.frame) + len(some.refused):
        notes.append(
            f"learned from {n:,} of {some.total:,} rows, drawn at random: rows=None takes all"
        )
    notes += [
        f"{one.text.removesuffix('.')}{'; ' * bool(one.remedy)}{one.remedy}"
        for one in describe_columns(read)
    ]
    if n < _FEW:
        notes.append(f"few rows: below {_FEW} expect rough probabilities and a rough alarm")
    return notes + _notes_of_network(read.table, read.X)


def _notes_of_network(table: Table, X: pd.DataFrame) -> list[str]:
    """Return whether a network gives probabilities of images, or their logarithms, no features."""
    if table.format.kind != IMAGES or not table.format.packed:
        return []
    outputs = X.to_numpy()
    if not any(on_simplex(P).all() for P in (outputs, np.exp(np.minimum(outputs, 1.0)))):
        return []
    return [
        f"the network {table.format.packed} ends in a softmax: its outputs are probabilities of "
        "its own classes, which say less of an image than features. Give it without its last layers"
    ]


# Classifiers by their name on the command line, each taking a table as it comes

#: A level of fewer rows shares a column with the other rare ones.
_RARE = 10
#: A principal component of pixels for so many images, and so many at most.
_ROWS_PER_COMPONENT, _MOST_COMPONENTS = 10, 64


#: Name on the command line -> what it is, and how it is made of a seed.
MODELS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "boosting": (
        "histogram gradient boosting",
        lambda seed: HistGradientBoostingClassifier(random_state=seed),
    ),
    "forest": (
        "random forest of 200 trees",
        lambda seed: RandomForestClassifier(200, n_jobs=-1, random_state=seed),
    ),
    "linear": ("logistic regression", lambda seed: LogisticRegression(max_iter=1000)),
    "mlp": (
        "network of one layer of 64 units",
        lambda seed: MLPClassifier((64,), max_iter=300, early_stopping=True, random_state=seed),
    ),
}


def check_model(name: str, prior: str = AUTO) -> None:
    """Refuse a name that is none of `MODELS` and no file of skops, and an unknown prior."""
    if prior not in PRIORS:
        raise UsageError(f"`prior` must be one of {list_names(PRIORS)}, got {prior!r}")
    if name not in MODELS and not name.endswith(".skops"):
        raise UsageError(
            f"`model` must be one of {list_names(MODELS)} or a .skops file, got {name!r}"
        )
    if name not in MODELS and not Path(name).is_file():
        raise UserError(f"{name}: there is no such file; write it by skops.io.dump")


def classifier(name: str, X: pd.DataFrame, seed: int, pixels: bool = False) -> Any:
    """Return an unfitted classifier for inputs X (n, d): of `MODELS`, or a copy of one in a file.

    Of pixels it learns from principal components, as many as `components` says.
    """
    bare = MODELS[name][1](seed) if name in MODELS else _out_of_file(Path(name))
    if pixels:
        return make_pipeline(PCA(components(X), random_state=seed), StandardScaler(), bare)
    if name not in MODELS:
        return bare
    if name != "boosting":
        return make_pipeline(_encoder(X), bare)
    # It takes gaps and levels, and the density encodes a table that has some.
    if X.isna().any(axis=None) or (X.dtypes == "category").any():
        return bare
    return make_pipeline(_gaps_far(X), bare)


def components(X: pd.DataFrame) -> int:
    """Principal components that n images of d pixels, X (n, d), are reduced to."""
    return int(max(1, min(len(X) // _ROWS_PER_COMPONENT, X.shape[1], _MOST_COMPONENTS)))


def _encoder(X: pd.DataFrame) -> ColumnTransformer:
    """Return an encoder for a classifier of numbers: gaps filled and marked, scaled, levels 0/1.

    A gap in a column of numbers that has none in X is put far out: nothing is known of it.
    """
    levels = list(X.select_dtypes("category"))
    numbers = X.columns.drop(levels)
    gaps = [c for c in numbers if X[c].isna().any()]
    filled = SimpleImputer(strategy="median", add_indicator=True)
    known = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=_RARE, sparse_output=False
    )
    parts = [
        (scale_with_gaps_far(), list(numbers.drop(gaps))),
        (make_pipeline(filled, StandardScaler()), gaps),
        (known, levels),
    ]
    return make_column_transformer(*(part for part in parts if part[1]))


def _gaps_far(X: pd.DataFrame) -> SimpleImputer:
    """Puts a gap 10 standard deviations out at least, and leaves numbers X (n, d) as they are."""
    out = X.mean() + FAR * X.std(ddof=0)
    return SimpleImputer(strategy="constant", fill_value=float(out.max()))


def title(name: str) -> str:
    """Return the model in words, for the output."""
    return MODELS[name][0] if name in MODELS else f"the estimator in {name}, fitted again"


def _out_of_file(path: Path) -> Any:
    skops = optional("skops.io", "a model out of a file")
    try:
        unknown = skops.get_untrusted_types(file=path)
    except Exception as error:  # whatever it makes of foreign bytes
        raise UserError(f"{path} is no file of skops.io.dump: {error}") from error
    if unknown:
        raise UserError(
            f"{path} holds {list_names(unknown)}, by which a crafted file could run code: "
            "save it unfitted, skops.io.dump(sklearn.clone(model), path), or fit it in Python"
        )
    found = skops.load(path)
    if not isinstance(found, BaseEstimator) or not is_classifier(found):
        raise UserError(f"{path} holds {type(found).__name__}, not a classifier")
    return clone(found)
