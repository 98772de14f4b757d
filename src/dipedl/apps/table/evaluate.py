"""Numbers of a report on a model and a test table, before any page is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import entr

from ...answers import Answers
from ...calibration import row_hash
from ...columns import Column, present_entries
from ...explanation import Diagnosis, reasons
from ...held_out import share_in_fit
from ...metrics import accuracy, aurc, brier_score, ece, ood_auroc
from ..monitor import DriftReport
from ..monitor.drift_monitor import FEWEST_ROWS
from ..monitor.windows import compare_counts, count_rows, learn_column
from .columns import as_inputs, check_known
from .errors import UserError, list_names
from .images import FILE
from .reading import Table, sample_rows
from .score import ScoreRequest, answer_inputs
from .table_model import TableModel
from .watch import start_monitor

_EXAMPLES, _COLUMNS, _WIDTH, _MOST_NEW = 6, 8, 40, 3
#: Of false alarms of the monitor, and of advice that chance alone gives.
RATE = 0.01
_DRAWS = 200


@dataclass(frozen=True)
class ScoredTable:
    """Answers to the rows of a table, with their numbers and the inputs as the user wrote them.

    `answers` have a prediction set for each row; `bare` (n, k) are the probabilities of the
    classifier alone.
    """

    name: str
    frame: pd.DataFrame
    X: pd.DataFrame
    rows: np.ndarray
    answers: Answers
    bare: np.ndarray
    refused: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the classifier alone in nats, shape (n,)."""
        return np.asarray(entr(self.bare).sum(axis=1))

    def flagged_by_entropy(self, limit: float) -> np.ndarray:
        """Return the rows (n,) whose entropy is above the `entropy_limit` of the test rows."""
        return self.entropy > limit

    @property
    def entropy_limit(self) -> float:
        """Entropy above which as many rows lie as the alarm flags."""
        limits = np.append(-np.inf, np.sort(self.entropy))
        return float(limits[len(self) - self.answers.flagged.sum()])


class TrustGroup(NamedTuple):
    """Rows of one kind of answer: how many, and the share of them that is right."""

    title: str
    rows: int
    share: float
    right: float | None


class ClassScore(NamedTuple):
    """A class of the test table: its rows, the share found, how often its name is right."""

    name: str
    rows: int
    found: float
    right: float | None
    in_set: float
    flagged: float


class UnknownScore(NamedTuple):
    """Rows of no class: shares flagged by the alarm, and by the entropy of the classifier alone.

    Both flag as many test rows. The AUROC rank by vacuity and by the entropy.
    """

    name: str
    rows: int
    flagged: float
    flagged_by_entropy: float
    auroc: float
    auroc_of_entropy: float


class ColumnDrift(NamedTuple):
    """An input of the model in the fit and here, with the population stability index of both.

    `new` are levels that the fit never saw.
    """

    usual: Column
    here: Column
    psi: float
    changed: bool
    new: list[str]


class ExampleRow(NamedTuple):
    """A row of the user with its answer, in the user's columns; `at` is its place in `X`."""

    at: int
    row: int
    values: tuple[str, ...]
    label: str
    truth: str
    probability: float
    vacuity: float
    p_value: float
    reason: str


@dataclass(frozen=True)
class Evaluation:
    """A model on a test table, and on others of rows that are of no class: all of a page.

    `truth` (n,) is the index of the true class, -1 where the model does not know it; None without.
    `drift` is the report of a monitor on the test rows as one window, None with too few held-out
    rows for one; `seen` the share of the rows that the fit was given too, `coverage` that of
    prediction sets.
    """

    model: TableModel
    test: ScoredTable
    others: tuple[ScoredTable, ...]
    truth: np.ndarray | None
    proba: np.ndarray
    scores: dict[str, float]
    trust: tuple[TrustGroup, ...]
    classes: tuple[ClassScore, ...]
    unknown: tuple[UnknownScore, ...]
    strange: dict[str, int]
    columns: tuple[str, ...]
    most: tuple[ExampleRow, ...]
    least: tuple[ExampleRow, ...]
    drifts: tuple[ColumnDrift, ...]
    drift: DriftReport | None
    seen: float
    coverage: float
    diagnosis: Diagnosis


def evaluate(
    model: TableModel,
    test: Table,
    others: Sequence[tuple[str, Table]] = (),
    rows: int | None = None,
    coverage: float = 0.9,
) -> Evaluation:
    """Measure a model on a test table, and on named tables of rows that are of no known class."""
    side = answer_sample(model, test, "test rows", rows, coverage)
    unknown = tuple(answer_sample(model, table, name, rows, coverage) for name, table in others)
    proba = _decide_ties(model, side)
    truth, strange = _true_classes(model, side)
    used = [FILE] if model.of_images else [c.name for c in model.columns if c.used]
    columns, answers = tuple(used[:_COLUMNS]), side.answers
    order = np.lexsort((answers.vacuity, -answers.p_values))
    drift, drifts = _drift(model, side)
    return Evaluation(
        model=model,
        test=side,
        others=unknown,
        truth=truth,
        proba=proba,
        scores={} if truth is None else _scores(truth, proba, side),
        trust=_trust_groups(truth, proba, side),
        classes=() if truth is None else _class_scores(model, truth, proba, side),
        unknown=tuple(_unknown_score(side, other) for other in unknown),
        strange=strange,
        columns=columns,
        most=_examples(model, side, order[:_EXAMPLES], columns),
        least=_examples(model, side, order[::-1][:_EXAMPLES], columns),
        drifts=drifts,
        drift=drift,
        seen=share_seen(model, side),
        coverage=coverage,
        diagnosis=model.classifier.diagnose(),
    )


def answer_sample(
    model: TableModel, table: Table, name: str, rows: int | None, coverage: float = 0.9
) -> ScoredTable:
    """Answer all rows of a table, or so many drawn at random: the same ones for any model."""
    check_known(model.columns, table.names, table.path)
    some = sample_rows(table, rows)
    X, fine, refused = as_inputs(model.columns, some.frame, some.rows)
    if not len(X):
        why = f": row {refused[0].row}: {refused[0].reason}" if refused else ""
        raise UserError(f"no row of {table.path} can be answered{why}")
    frame = some.frame[fine].reset_index(drop=True)
    answers = answer_inputs(model.classifier, X, ScoreRequest(coverage=coverage, reasons="none"))
    bare = np.asarray(model.classifier.classifier_proba(X))
    left_out = len(refused) + len(some.refused)
    return ScoredTable(name, frame, X, some.rows[fine], answers, bare, left_out)


def share_seen(model: TableModel, side: ScoredTable) -> float:
    """Return the share of the rows that the fit of the model was given too."""
    return share_in_fit(row_hash(side.X), model.classifier.evidence_.row_hashes_)


def _decide_ties(model: TableModel, side: ScoredTable) -> np.ndarray:
    """Return the probabilities (n, k), that of the answer the largest by a bit where classes tie.

    Far from the data all are the prior's, and the answer is that of the classifier.
    """
    proba = side.answers.proba.copy()
    rows, answers = np.arange(len(side)), pd.Index(model.classes).get_indexer(side.answers.labels)
    tied = proba.argmax(axis=1) != answers
    proba[rows[tied], answers[tied]] = np.nextafter(proba[tied].max(axis=1), np.inf)
    return proba


def _true_classes(model: TableModel, side: ScoredTable) -> tuple[np.ndarray | None, dict[str, int]]:
    """Return `Evaluation.truth`, and how often classes come that the model does not know."""
    labels = model.labels(side.frame)
    if labels is None:
        return None, {}
    truth = pd.Index(model.classes).get_indexer(labels)
    strange = labels[(truth < 0) & labels.notna().to_numpy()].value_counts()
    known = (truth >= 0).any()
    if len(strange) and not known:
        raise UserError(
            f"the target {model.target!r} holds {list_names(strange.index)}, and the model knows "
            f"{list_names(model.classes)}: give rows with the same names of classes"
        )
    return truth if known else None, {str(name): int(n) for name, n in strange.items()}


def _scores(truth: np.ndarray, proba: np.ndarray, side: ScoredTable) -> dict[str, float]:
    known = truth >= 0
    y, P = truth[known], proba[known]
    numbers = {
        "accuracy": accuracy(y, P),
        "brier": brier_score(y, P),
        "ece": ece(y, P),
        "ece_by_chance": _ece_by_chance(P),
        "classifier_ece": ece(y, side.bare[known]),
        "aurc": aurc(P.argmax(axis=1) == y, 1 - P.max(axis=1)),
        "confidence": P.max(axis=1).mean(),
        "flagged": side.answers.flagged.mean(),
    }
    return {name: float(value) for name, value in numbers.items()}


def _ece_by_chance(proba: np.ndarray) -> float:
    """Return the ECE that rows (n, k) exceed once in 100 if they are right as often as they say."""
    rng, answers, confidence = np.random.default_rng(0), proba.argmax(axis=1), proba.max(axis=1)
    wrong = (rng.random(len(proba)) >= confidence for _ in range(_DRAWS))
    drawn = [ece((answers + one) % proba.shape[1], proba) for one in wrong]
    return float(np.quantile(drawn, 1 - RATE))


def _trust_groups(
    truth: np.ndarray | None, proba: np.ndarray, side: ScoredTable
) -> tuple[TrustGroup, ...]:
    single, flagged = np.asarray(side.answers.sets).sum(axis=1) == 1, side.answers.flagged
    groups = {
        "not flagged, one class in the set": ~flagged & single,
        "not flagged, several classes or none": ~flagged & ~single,
        "flagged as unlike the training rows": flagged,
    }
    right = None if truth is None else proba.argmax(axis=1) == truth
    known = True if truth is None else truth >= 0
    return tuple(
        TrustGroup(title, int(group.sum()), float(group.mean()), _mean(right, group & known))
        for title, group in groups.items()
    )


def _mean(values: np.ndarray | None, where: np.ndarray) -> float | None:
    return None if values is None or not where.any() else float(values[where].mean())


def _class_scores(
    model: TableModel, truth: np.ndarray, proba: np.ndarray, side: ScoredTable
) -> tuple[ClassScore, ...]:
    predicted, sets = proba.argmax(axis=1), np.asarray(side.answers.sets)
    classes = [(c, name, truth == c) for c, name in enumerate(model.classes)]
    return tuple(
        ClassScore(
            name,
            int(own.sum()),
            float((predicted[own] == c).mean()),
            _mean(own, (predicted == c) & (truth >= 0)),
            float(sets[own, c].mean()),
            float(side.answers.flagged[own].mean()),
        )
        for c, name, own in classes
        if own.any()
    )


def _unknown_score(test: ScoredTable, other: ScoredTable) -> UnknownScore:
    return UnknownScore(
        other.name,
        len(other),
        float(other.answers.flagged.mean()),
        float(other.flagged_by_entropy(test.entropy_limit).mean()),
        float(ood_auroc(-test.answers.log_evidence, -other.answers.log_evidence)),
        float(ood_auroc(test.entropy, other.entropy)),
    )


def _drift(
    model: TableModel, side: ScoredTable
) -> tuple[DriftReport | None, tuple[ColumnDrift, ...]]:
    """Return what a monitor says of the rows, and the inputs, those that differ most first."""
    report = None
    if len(model.classifier.held_out_rows().scores) >= FEWEST_ROWS:
        monitor = start_monitor(model, None, RATE, window=1)
        report = monitor.update_answers(side.answers, side.X)
    changed = dict(report.window.changed) if report and report.window else {}
    found = []
    for name, usual in model.usual.items():
        here = learn_column(name, side.X[name])
        psi, _ = compare_counts(usual.counts, count_rows(usual, side.X[name]))
        known = usual.categories or usual.levels or []
        there = Counter(present_entries(side.X[name]) if here.levels else ()).most_common()
        new = [str(level) for level, _ in there if level not in known]
        found.append(ColumnDrift(usual, here, psi, name in changed, new[:_MOST_NEW]))
    return report, tuple(sorted(found, key=lambda drift: (-drift.psi, drift.usual.name)))


def _examples(
    model: TableModel, side: ScoredTable, rows: np.ndarray, columns: Sequence[str]
) -> tuple[ExampleRow, ...]:
    why = reasons(model.classifier, side.X.iloc[rows].reset_index(drop=True))
    truth, answers = side.frame.get(model.target), side.answers
    cut = slice(-_WIDTH, None) if model.of_images else slice(_WIDTH)  # the end of a path tells
    return tuple(
        ExampleRow(
            at=int(i),
            row=int(side.rows[i]),
            values=tuple(_text(side.frame[name].iloc[i], cut) for name in columns),
            label=str(answers.labels[i]),
            truth="" if truth is None else _text(truth.iloc[i]),
            probability=float(answers.proba[i, model.classes.index(answers.labels[i])]),
            vacuity=float(answers.vacuity[i]),
            p_value=float(answers.p_values[i]),
            reason=reason,
        )
        for i, reason in zip(rows, why, strict=True)
    )


def _text(value: Any, cut: slice = slice(_WIDTH)) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)[cut]
