"""Rows of a table answered, explained or watched by a model, piece by piece.

Memory does not grow with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...answers import Answers
from ...classifier import DIPClassifier
from ...decisions import cost_matrix
from ...explanation import Card
from ...io import load
from ...writing.text import probability_names
from ..monitor import DriftMonitor, DriftReport
from .columns import as_inputs, check_known, texts_of, to_numbers
from .errors import UsageError, UserError, check_columns, list_names
from .images import FILE
from .reading import RejectedRow, Table, sample_rows
from .table_model import TableModel
from .writing import ending_of, table_writer

REASONS = ("flagged", "all", "none")
#: What an answer is made of, unless other fields are asked for, as "log_evidence".
FIELDS = ("label", "probabilities", "vacuity", "p_value", "flagged", "set", "reason")
#: Called with the rows so far and the share of the file that was read.
Progress = Callable[[int, float], None]


@dataclass
class ScoreResult:
    """Rows that came in, that were answered, flagged and refused; and those decided for a label."""

    rows: int = 0
    answered: int = 0
    flagged: int = 0
    refused: int = 0
    decided: int = 0
    by_label: dict[str, int] = field(default_factory=dict)
    first_refused: list[RejectedRow] = field(default_factory=list)

    def add(self, made: pd.DataFrame, refused: list[RejectedRow]) -> None:
        """Count answers as `answer_frame` makes them, and refused rows."""
        self.answered += len(made)
        self.refused += len(refused)
        self.rows = self.answered + self.refused
        self.first_refused = sorted([*self.first_refused, *refused])[:5]
        if len(made):
            self.flagged += int(made["flagged"].sum())
            if "decision" in made:
                self.decided += int((made["decision"] != "").sum())
            for label, n in made["label"].value_counts().items():
                self.by_label[str(label)] = self.by_label.get(str(label), 0) + int(n)


@dataclass(frozen=True)
class CostRequest:
    """Costs of an answer, as `DIPClassifier.decide` takes them; `costs` in the order of classes."""

    cost_reject: float
    cost_error: float | None = None
    costs: Sequence[Sequence[float]] | None = None
    cost_unknown: float | None = None
    unknown: float = 0.0


@dataclass(frozen=True)
class ScoreRequest:
    """Options of an answer: input columns beside it, sets, reasons, fields, costs to decide by."""

    columns: Sequence[str] = ()
    coverage: float = 0.9
    by_class: bool = False
    reasons: str = "flagged"
    fields: Sequence[str] = FIELDS
    costs: CostRequest | None = None


def answer_columns(
    answers: Answers, classes: Sequence[str], fields: Sequence[str]
) -> dict[str, np.ndarray]:
    """Return the requested fields of answers as columns of a table, by name."""
    made: dict[str, dict[str, np.ndarray]] = {
        "label": {"label": answers.labels},
        "probabilities": dict(zip(probability_names(classes), answers.proba.T, strict=True)),
        "vacuity": {"vacuity": answers.vacuity},
        "log_evidence": {"log_evidence": answers.log_evidence},
        "p_value": {"p_value": answers.p_values},
        "flagged": {"flagged": answers.flagged},
        "set": {} if answers.sets is None else {"set": _join_sets(answers.sets, classes)},
        "reason": {} if answers.reasons is None else {"reason": answers.reasons},
    }
    return {name: of for field in made if field in fields for name, of in made[field].items()}


def refused_path(out: Path) -> Path:
    """Return the file that lists refused rows: answers.refused.csv beside answers.parquet."""
    return out.with_name(f"{out.name[: -len(ending_of(out))]}.refused.csv")


def score_table(
    model: TableModel,
    table: Table,
    out: Path,
    request: ScoreRequest,
    progress: Progress | None = None,
) -> ScoreResult:
    """Write an answer for each row of a table, and the refused rows with reasons beside it."""
    check_known(model.columns, table.names, table.path)
    check_columns("columns", request.columns, table.names, table.path)
    check_copied_columns(request, model.classes)
    lines = (
        (made, [*piece.refused, *odd], piece.done)
        for piece in table.pieces()
        for made, odd in [answer_rows(model, piece.frame, piece.rows, request)]
    )
    return write_answers(lines, out, progress)


def check_copied_columns(request: ScoreRequest, classes: Sequence[str]) -> None:
    """Refuse a column to copy that comes twice, or of a name that an answer has too."""
    own = {"row", *request.fields, *probability_names(classes)} - {"probabilities"}
    own |= {"decision", "cost"} if request.costs else set()
    for name in request.columns:
        if list(request.columns).count(name) > 1:
            raise UserError(f"`columns` names {name!r} twice; name each column once")
        if name in own:
            raise UserError(f"`columns` {name}: an answer has a column of that name; rename yours")


def write_answers(
    lines: Iterator[tuple[pd.DataFrame, list[RejectedRow], float]],
    out: Path,
    progress: Progress | None,
) -> ScoreResult:
    """Write answers and refused rows as they come; both files appear once they are complete."""
    count, listed_at = ScoreResult(), refused_path(out)
    refused_rows: list[RejectedRow] = []
    with table_writer(out) as write:
        for made, refused, done in lines:
            if len(made):
                write(made)
            count.add(made, refused)
            refused_rows += refused
            if progress is not None:
                progress(count.rows, done)
        if count.answered == 0:
            why = refused_rows[0] if refused_rows else None
            first = f"; {why}" if why else ""
            raise UserError(f"no row can be answered{first}. Nothing was written")
        if refused_rows:
            with table_writer(listed_at) as write_refused:
                write_refused(pd.DataFrame(sorted(refused_rows)))
        else:
            listed_at.unlink(missing_ok=True)
    return count


def answer_rows(
    model: TableModel, frame: pd.DataFrame, rows: np.ndarray, request: ScoreRequest
) -> tuple[pd.DataFrame, list[RejectedRow]]:
    """Answer the rows of a piece with these numbers; and return those that are refused."""
    X, fine, refused = model.inputs(frame, rows)
    if not len(X):
        return pd.DataFrame(), refused
    of_images = [FILE] if model.of_images else []
    copied = [*of_images, *(name for name in request.columns if name not in of_images)]
    own = frame.loc[fine, copied].reset_index(drop=True)
    made = answer_frame(model.classifier, X, rows[fine], own, request)
    return made[[*of_images, *made.columns.drop(of_images)]], refused


def answer_frame(
    clf: DIPClassifier, X: Any, rows: np.ndarray, kept: pd.DataFrame, request: ScoreRequest
) -> pd.DataFrame:
    """Return a line per row: number, columns of the input, label, probabilities, and so on."""
    names = [str(name) for name in clf.classes_]
    made: dict[str, Any] = {"row": rows}
    made |= {name: kept[name] for name in kept}
    made |= answer_columns(answer_inputs(clf, X, request), names, request.fields)
    if request.costs is not None:
        decision = clf.decide(X, **vars(request.costs))
        labels = decision.labels.astype(str).astype(object)
        made |= {"decision": np.where(decision.accepted, labels, ""), "cost": decision.costs}
    return pd.DataFrame(made)


def read_costs(table: Table, classes: Sequence[str]) -> list[list[float]]:
    """Return a table of costs in the order of `classes`, shape (k, k).

    Its first column holds the true class of each line; the others, named by the classes, what it
    costs to answer these.
    """
    frame = sample_rows(table).frame
    truth, *answers = frame.columns
    lines = texts_of(frame[truth], classes).tolist()
    names = texts_of(pd.Series(answers, dtype=object), classes).tolist()
    for what, found in (("a line", lines), ("a column", names)):
        if sorted(map(str, found)) != sorted(classes):
            raise UserError(
                f"{table.path} must have {what} for each of the classes {list_names(classes)}, and "
                f"has {list_names(found)}: the first column names the true class, the others the "
                "answers"
            )
    numbers = frame[answers].set_axis(names, axis=1).set_axis(lines, axis=0)[list(classes)]
    costs = np.array([to_numbers(numbers.loc[name]) for name in classes])
    for i, j in np.argwhere(np.isnan(costs))[:1]:
        raise UserError(
            f"{table.path}: the cost of {classes[j]!r} where {classes[i]!r} is true is no number"
        )
    try:
        rows: list[list[float]] = cost_matrix(len(classes), costs=costs).tolist()
    except ValueError as error:
        raise UserError(f"{table.path}: {error}") from error
    return rows


def answer_inputs(clf: DIPClassifier, X: Any, request: ScoreRequest) -> Answers:
    """Answer inputs X (n, d), a table or an array, with labels as texts."""
    answers: Answers = clf.answers(
        X,
        coverage=request.coverage if "set" in request.fields else None,
        by_class=request.by_class,
        reasons=request.reasons if "reason" in request.fields else None,
    )
    return replace(answers, labels=answers.labels.astype(str).astype(object))


def _join_sets(sets: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return the classes of each set, bars between them; a bar in a name gets a backslash."""
    names = [name.replace("|", r"\|") for name in names]
    packed = np.packbits(sets, axis=1)
    codes = packed.view(f"S{packed.shape[1]}").ravel()
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    kinds = ([name for name, on in zip(names, sets[i], strict=True) if on] for i in first)
    return np.asarray(["|".join(kind) for kind in kinds], dtype=object)[which]


# Explanations


class ExplainedRow(NamedTuple):
    """The card of a row by its number; of an image by its file too."""

    row: int
    file: str
    card: Card


def explain_rows(
    model: TableModel, table: Table, most: int, top: int, row: int | None = None
) -> tuple[list[ExplainedRow], list[RejectedRow]]:
    """Explain the first `most` rows that can be read, or row `row` alone; and what was refused."""
    check_known(model.columns, table.names, table.path)
    cards: list[ExplainedRow] = []
    refused: list[RejectedRow] = []
    last, most = 0, most if row is None else 1
    for piece in table.pieces():
        at = np.arange(len(piece.frame)) if row is None else np.flatnonzero(piece.rows == row)
        at = at[: most - len(cards)]
        some = piece.frame.iloc[at].reset_index(drop=True)
        X, fine, odd = as_inputs(model.columns, some, piece.rows[at])
        refused += [one for one in [*piece.refused, *odd] if row in (None, one.row)]
        last = max([last, int(piece.rows.max(initial=0)), *(one.row for one in piece.refused)])
        if len(X):
            rows = piece.rows[at][fine].tolist()
            files = some[FILE][fine].tolist() if model.of_images else [""] * len(rows)
            cards += map(ExplainedRow, rows, files, cards_of(model, X, top))
        if len(cards) >= most:
            return cards, [one for one in refused if one.row < cards[-1].row]
    if row is not None and not refused:
        raise UserError(f"row {row}: {table.path} has rows 1 to {last:,}")
    return cards, refused


def cards_of(model: TableModel, X: Any, top: int) -> list[Card]:
    """Return cards of inputs X (n, d) that name training rows as their file does."""
    try:
        return list(model.classifier.explain(X, top=top))
    except IndexError as error:
        raise UserError(
            f"the file of the model lists {len(model.rows):,} training rows, fewer than it learned "
            "from: copy it again, or fit it again"
        ) from error


# A stream of rows


def start_monitor(
    model: TableModel, reference: Table | None, rate: float, window: int
) -> DriftMonitor:
    """Return a monitor of a model's columns, by its held-out rows or by rows it has not seen."""
    monitor = DriftMonitor(rate, window)
    if reference is None:
        return monitor.fit(model.classifier, columns=list(model.usual.values()))
    check_known(model.columns, reference.names, reference.path)
    some = sample_rows(reference, None)
    X, _, _ = as_inputs(model.columns, some.frame, some.rows)
    return monitor.fit(model.classifier, X)


def load_monitor(path: Path) -> DriftMonitor:
    """Return the monitor in a file."""
    try:
        monitor = load(path)
    except ValueError as error:
        raise UserError(f"{error}; to begin anew, name a file that is not there") from error
    if not isinstance(monitor, DriftMonitor):
        raise UsageError(
            f"{path} holds a {type(monitor).__name__}, not a monitor: name another file"
        )
    return monitor


def watch(
    monitor: DriftMonitor,
    model: TableModel,
    table: Table,
    batch: int | None = None,
    progress: Progress | None = None,
) -> tuple[DriftReport, list[RejectedRow]]:
    """Feed a monitor the rows of a table, with their classes where it has them.

    Return the report after the last row, and the rows that were left out.
    """
    check_known(model.columns, table.names, table.path)
    report, refused, rows = monitor.report(), list[RejectedRow](), 0
    for piece in table.pieces():
        refused += piece.refused
        rows += len(piece.frame)
        for first in range(0, len(piece.frame), monitor.window):
            some = slice(first, first + monitor.window)
            frame = piece.frame.iloc[some].reset_index(drop=True)
            X, fine, odd = as_inputs(model.columns, frame, piece.rows[some])
            labels = model.labels(frame)
            labels = None if labels is None else labels[fine]
            refused += odd
            report = monitor.update(model.classifier, X, labels, batch=batch)
            batch = None
        if progress is not None:
            progress(rows, piece.done)
    return report, refused
