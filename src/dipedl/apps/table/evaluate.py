"""Numbers of a report on a model and a test table, before any page is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...answers import Answers
from ...calibration import row_hash
from ...explanation import Diagnosis, reasons
from ...held_out import share_in_fit
from ...metrics import accuracy, aurc, brier_score, ece, ood_auroc
from .columns import as_inputs, check_known
from .drift import ColumnDrift, PValueDrift, column_drifts, p_value_drift
from .errors import UserError, list_names
from .images import FILE
from .reading import Table
from .sampling import sample_rows
from .score import ScoreRequest, answer_inputs
from .table_model import TableModel

_SHOWN, _COLUMNS, _WIDTH = 6, 8, 40
_UNKNOWN = -1


@dataclass(frozen=True)
class ScoredTable:
    """Answers to the rows of one table, with their numbers and the inputs as the user wrote them.

    `sets` (n, k) holds True for the classes of the prediction set of a row.
    """

    name: str
    frame: pd.DataFrame
    X: pd.DataFrame
    rows: np.ndarray
    answers: Answers
    sets: np.ndarray
    refused: int
    total: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def flagged(self) -> np.ndarray:
        """Return where the alarm goes off, shape (n,)."""
        return self.answers.flagged

    @property
    def vacuity(self) -> np.ndarray:
        """Share of the prior, shape (n,)."""
        return self.answers.vacuity


@dataclass(frozen=True)
class TrustGroup:
    """Rows of one kind of answer: how many, and how many of them are right."""

    title: str
    rows: int
    share: float
    right: float | None


@dataclass(frozen=True)
class ClassScore:
    """A class of the test table: its rows, how many are found, how often its name is right."""

    name: str
    rows: int
    found: float
    right: float | None
    in_set: float
    flagged: float


@dataclass(frozen=True)
class ExampleRow:
    """A row of the user with its answer, in the user's columns."""

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
    """A model on a test table: everything a page shows."""

    model: TableModel
    test: ScoredTable
    ood: ScoredTable | None
    #: Index of the true class of each row with one that the model knows, else -1; None without.
    truth: np.ndarray | None
    proba: np.ndarray
    bare: np.ndarray
    scores: dict[str, float]
    trust: tuple[TrustGroup, ...]
    classes: tuple[ClassScore, ...]
    strange: dict[str, int]
    columns: tuple[str, ...]
    most: tuple[ExampleRow, ...]
    least: tuple[ExampleRow, ...]
    drifts: tuple[ColumnDrift, ...]
    p_values: PValueDrift
    auroc: float | None
    #: Share of the rows that the fit was given too.
    seen: float
    #: What prediction sets promise.
    coverage: float
    diagnosis: Diagnosis


def evaluate(
    model: TableModel, test: Table, ood: Table | None, rows: int | None, coverage: float = 0.9
) -> Evaluation:
    """Measure a model on a test table, and on rows that are of no known class."""
    side = _side(model, test, "test rows", rows, coverage)
    other = None if ood is None else _side(model, ood, "other rows", rows, coverage)
    proba = _ties_decided(model, side)
    bare = np.asarray(model.classifier.classifier_proba(side.X))
    truth, strange = _truth(model, side)
    used = [FILE] if model.of_images else [c.name for c in model.columns if c.used]
    columns = tuple(used[:_COLUMNS])
    order = np.lexsort((side.vacuity, -side.answers.p_values))
    return Evaluation(
        model=model,
        test=side,
        ood=other,
        truth=truth,
        proba=proba,
        bare=bare,
        scores={} if truth is None else _scores(truth, proba, bare, side),
        trust=_trust(truth, proba, side),
        classes=() if truth is None else _classes(model, truth, proba, side),
        strange=strange,
        columns=columns,
        most=_shown(model, side, order[:_SHOWN], columns),
        least=_shown(model, side, order[::-1][:_SHOWN], columns),
        drifts=column_drifts(model.columns, side.frame, int(model.facts["learned"])),
        p_values=p_value_drift(side.answers.p_values, model.classifier),
        auroc=None if other is None else float(ood_auroc(side.vacuity, other.vacuity)),
        seen=share_in_fit(row_hash(side.X), model.classifier.evidence_.row_hashes_),
        coverage=coverage,
        diagnosis=model.classifier.diagnose(),
    )


def _side(
    model: TableModel, table: Table, name: str, rows: int | None, coverage: float
) -> ScoredTable:
    check_known(model.columns, table.names, table.path)
    some = sample_rows(table, rows)
    X, fine, refused = as_inputs(model.columns, some.frame, some.rows)
    if not len(X):
        why = f": row {refused[0].row}: {refused[0].reason}" if refused else ""
        raise UserError(f"no row of {table.path} can be answered{why}")
    frame = some.frame[fine].reset_index(drop=True)
    answers = answer_inputs(model.classifier, X, ScoreRequest(coverage=coverage, reasons="none"))
    left_out = len(refused) + len(some.refused)
    sets = np.asarray(answers.sets)
    return ScoredTable(name, frame, X, some.rows[fine], answers, sets, left_out, some.total)


def _ties_decided(model: TableModel, side: ScoredTable) -> np.ndarray:
    """Return the probabilities (n, k), that of the answer the largest by a bit where classes tie.

    Far from the data all are the prior's, and the answer is that of the classifier.
    """
    proba = side.answers.proba.copy()
    rows, answers = np.arange(len(side)), pd.Index(model.classes).get_indexer(side.answers.labels)
    tied = proba.argmax(axis=1) != answers
    proba[rows[tied], answers[tied]] = np.nextafter(proba[tied].max(axis=1), np.inf)
    return proba


def _truth(model: TableModel, side: ScoredTable) -> tuple[np.ndarray | None, dict[str, int]]:
    """`Measured.truth`, and how often classes come that the model has not."""
    labels = model.labels(side.frame)
    if labels is None:
        return None, {}
    at = {name: c for c, name in enumerate(model.classes)}
    truth = labels.map(at).fillna(_UNKNOWN).to_numpy(dtype=int)
    strange = labels[(truth == _UNKNOWN) & labels.notna().to_numpy()].value_counts()
    known = (truth >= 0).any()
    if len(strange) and not known:
        raise UserError(
            f"the target {model.target!r} holds {list_names(strange.index)}, and the model knows "
            f"{list_names(model.classes)}: give rows with the same names of classes"
        )
    return truth if known else None, {str(name): int(n) for name, n in strange.items()}


def _scores(
    truth: np.ndarray, proba: np.ndarray, bare: np.ndarray, side: ScoredTable
) -> dict[str, float]:
    known = truth >= 0
    y, P = truth[known], proba[known]
    right = P.argmax(axis=1) == y
    return {
        "accuracy": float(accuracy(y, P)),
        "brier": float(brier_score(y, P)),
        "ece": float(ece(y, P)),
        "classifier_ece": float(ece(y, bare[known])),
        "aurc": float(aurc(right, 1 - P.max(axis=1))),
        "confidence": float(P.max(axis=1).mean()),
        "flagged": float(side.flagged.mean()),
    }


def _trust(
    truth: np.ndarray | None, proba: np.ndarray, side: ScoredTable
) -> tuple[TrustGroup, ...]:
    single = side.sets.sum(axis=1) == 1
    groups = {
        "not flagged, one class in the set": ~side.flagged & single,
        "not flagged, several classes or none": ~side.flagged & ~single,
        "flagged as unlike the training rows": side.flagged,
    }
    right = None if truth is None else proba.argmax(axis=1) == truth
    known = np.ones(len(side), bool) if truth is None else truth >= 0
    return tuple(
        TrustGroup(title, int(group.sum()), float(group.mean()), _mean(right, group & known))
        for title, group in groups.items()
    )


def _mean(values: np.ndarray | None, where: np.ndarray) -> float | None:
    return None if values is None or not where.any() else float(values[where].mean())


def _classes(
    model: TableModel, truth: np.ndarray, proba: np.ndarray, side: ScoredTable
) -> tuple[ClassScore, ...]:
    said = proba.argmax(axis=1)
    lines = []
    for c, name in enumerate(model.classes):
        own = truth == c
        if own.any():
            lines.append(
                ClassScore(
                    name,
                    int(own.sum()),
                    float((said == c)[own].mean()),
                    _mean(own, (said == c) & (truth >= 0)),
                    float(side.sets[own, c].mean()),
                    float(side.flagged[own].mean()),
                )
            )
    return tuple(lines)


def _shown(
    model: TableModel, side: ScoredTable, rows: np.ndarray, columns: Sequence[str]
) -> tuple[ExampleRow, ...]:
    why = reasons(model.classifier, side.X.iloc[rows].reset_index(drop=True))
    truth, answers = side.frame.get(model.target), side.answers
    cut = slice(-_WIDTH, None) if model.of_images else slice(_WIDTH)  # the end of a path tells
    return tuple(
        ExampleRow(
            row=int(side.rows[i]),
            values=tuple(_text(side.frame[name].iloc[i], cut) for name in columns),
            label=str(answers.labels[i]),
            truth="" if truth is None else _text(truth.iloc[i]),
            probability=float(answers.proba[i, model.classes.index(answers.labels[i])]),
            vacuity=float(answers.vacuity[i]),
            p_value=float(answers.p_values[i]),
            reason=said,
        )
        for i, said in zip(rows, why, strict=True)
    )


def _text(value: Any, cut: slice = slice(_WIDTH)) -> str:
    if pd.isna(value):
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)[cut]
