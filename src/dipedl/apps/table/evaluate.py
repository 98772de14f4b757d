"""A model on a test table: the numbers of a report and what they say, before any page is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import entr
from scipy.stats import binom

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
from .score import ScoreRequest, answer_inputs, start_monitor
from .table_model import TableModel

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

    @property
    def false_alarm_rate(self) -> float:
        """Share of rows like those of the fit that the model flags."""
        return float(self.model.classifier.evidence_.false_alarm_rate)


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


# In words: the first sentences, and what to do next

ERRORS = "To find likely errors, rank rows by {ranking}."
#: How errors rank, by the name in the numbers of a finding.
RANKINGS = {
    "predict_proba": "the largest p_ column, not by vacuity or p_value",
    "score": "vacuity or p_value, not by the largest p_ column",
}
#: Shares and scores from which something is said.
_MISCALIBRATED, _RARELY_FOUND, _MANY, _FEW, _SEEN = 0.05, 0.5, 2.0, 200, 0.05


def headline(found: Evaluation) -> str:
    """Return the result in a few sentences."""
    n, flagged = len(found.test), found.test.answers.flagged.mean()
    sentences = []
    if found.scores:
        safe = found.trust[0]
        sentences.append(f"{found.scores['accuracy']:.1%} of {n:,} test rows are answered rightly.")
        if safe.right is not None:
            sentences.append(
                f"Of the {safe.share:.0%} that are like the training rows and leave one class open,"
                f" {safe.right:.1%} are."
            )
    else:
        sentences.append(f"{n:,} rows were answered; without classes nothing is known of mistakes.")
    sentences.append(
        f"{flagged:.1%} are flagged as unlike the training rows, where "
        f"{found.false_alarm_rate:.0%} would be by chance."
    )
    sentences += [
        f"Of {one.rows:,} {one.name} {one.flagged:.1%} are flagged ({one.flagged_by_entropy:.1%} "
        "by the classifier's own entropy, with as many false alarms)."
        for one in found.unknown
    ]
    return " ".join(sentences)


def next_steps(found: Evaluation) -> list[str]:
    """Return what to do about the findings, in order; never empty."""
    of_model = (f"{one.text} {one.remedy}".strip() for one in found.diagnosis.warnings)
    return [
        *_advise_on_seen_rows(found),
        *_advise_on_drift(found),
        *_advise_on_mistakes(found),
        *of_model,
    ] or [
        "Nothing calls for action. Answer what is not flagged, and show flagged rows to a person."
    ]


def _advise_on_seen_rows(found: Evaluation) -> Iterator[str]:
    if found.seen > _SEEN:
        yield (
            f"The fit was given {found.seen:.0%} of these rows: the numbers say little about new "
            "ones. Give rows that it has not seen."
        )


def _advise_on_drift(found: Evaluation) -> Iterator[str]:
    changed = [d.usual.name for d in found.drifts if d.changed]
    flagged, rate = found.test.answers.flagged, found.false_alarm_rate
    many = binom.sf(flagged.sum() - 1, len(flagged), rate) < RATE
    columns = f" Look first at: {', '.join(changed[:5])}." if changed else ""
    monitor = found.drift
    differs = monitor is not None and (monitor.alarm or (monitor.window and monitor.window.differs))
    if differs or (many and flagged.mean() > _MANY * rate):
        yield (
            f"The rows differ from those of the fit: {flagged.mean():.1%} are flagged.{columns} "
            "If they are mistakes, mend their source; if the world changed, fit again with such "
            "rows."
        )
    elif changed:
        yield f"Some columns differ from those of the fit, the rows as a whole do not.{columns}"
    new = [f"{d.usual.name} ({', '.join(d.new)})" for d in found.drifts if d.new]
    if new:
        yield f"There are levels that the fit never saw: {'; '.join(new)}. They count as unknown."
    if found.test.refused:
        yield (
            f"Rows that could not be read: {found.test.refused:,}; `dipedl score` lists them, with "
            "reasons."
        )


def _advise_on_mistakes(found: Evaluation) -> Iterator[str]:
    if found.strange:
        named = ", ".join(f"{name} ({n:,})" for name, n in found.strange.items())
        yield f"Classes that the model does not know: {named}. Fit again with rows of them."
    scores = found.scores
    if scores and scores["ece"] > max(_MISCALIBRATED, scores["ece_by_chance"]):
        yield _calibration(scores)
    rare = [line.name for line in found.classes if line.found < _RARELY_FOUND]
    if rare:
        yield (
            f"Fewer than half of the rows are found of: {', '.join(rare)}. More rows of them, or a "
            "column that tells them apart, would help."
        )
    if found.scores and len(found.test) < _FEW:
        yield f"{len(found.test):,} test rows give rough numbers; use {_FEW} or more."


def _calibration(scores: Mapping[str, float]) -> str:
    """Return what to do about probabilities that are no frequencies."""
    off, bare = scores["ece"], scores["classifier_ece"]
    modest = scores["confidence"] <= scores["accuracy"]
    word = "is too modest" if modest else "claims too much"
    sentence = f"The confidence is off by {off:.3f} on average and {word}"
    again = "fit again with newer rows, or do not read probabilities as frequencies."
    if bare >= off:
        return f"{sentence}: {again}"
    why = ", because dipedl lowers it where evidence is little" if modest else ""
    sentence += f"{why}; the classifier's own probabilities are off by {bare:.3f}"
    if bare > _MISCALIBRATED:
        return f"{sentence} too: {again}"
    return f"{sentence}. For frequencies take those (in Python: classifier_proba)."


def error_ranking(diagnosis: Diagnosis) -> str:
    """Return how rows are ranked by likely errors; "" if unknown.

    Unknown with few held-out errors, and where classifier and density rank alike.
    """
    for found in diagnosis.findings:
        if "answers_ranked_by" in found.numbers:
            ranking = RANKINGS[str(found.numbers["answers_ranked_by"])]
            proba, score = (
                float(found.numbers[f"auroc_{name}"]) for name in ("predict_proba", "score")
            )
            return (
                f"{ERRORS.format(ranking=ranking)} On held-out rows of the fit the p_ columns find "
                f"errors with AUROC {proba:.2f}, vacuity and p-value with {score:.2f}."
            )
    return ""
