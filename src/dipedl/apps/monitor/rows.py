"""Rows of a stream as a monitor sees them: plain numbers, from answers or from a model."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from ...maths.arrays import to_numpy

__all__ = ["Rows", "held_out_rows"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Answers to n rows: p-values, uncertainty in [0, 1], alarms (n,) and probabilities (n, k).

    `uncertainty` is the vacuity, or one minus the largest probability where there is no evidence;
    `confidence` (n,) is the largest probability of the classifier alone; `labels` (n,) are the
    answers; `weights` count reference rows, None is once each; `correct` says which reference rows
    were answered well.
    """

    p_values: np.ndarray
    uncertainty: np.ndarray
    flagged: np.ndarray
    proba: np.ndarray
    confidence: np.ndarray
    labels: np.ndarray | None = None
    weights: np.ndarray | None = None
    correct: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.p_values)


def rows_of_answers(answers: Any) -> Rows:
    """Return the rows of `dipedl.answers.Answers`."""
    p, flagged = to_numpy(answers.p_values), to_numpy(answers.flagged)
    mean, vacuity = (to_numpy(getattr(answers.dirichlet, name)) for name in ("mean", "vacuity"))
    confidence = to_numpy(answers.confidence)
    return _check_rows(Rows(p, vacuity, flagged, mean, confidence, np.asarray(answers.labels)))


def rows_of_model(model: Any, X: Any) -> Rows:
    """Answer inputs X (n, d), or what the model takes."""
    if hasattr(model, "answers"):
        return rows_of_answers(model.answers(X))
    P = to_numpy(model.predict_proba(X))
    p, flagged = to_numpy(model.p_value(X)), to_numpy(model.predict_ood(X)) == -1.0
    labels = np.asarray(model.classes_)[P.argmax(axis=1)]
    return _check_rows(Rows(p, 1 - P.max(axis=1), flagged, P, P.max(axis=1), labels))


def held_out_rows(model: Any) -> Rows:
    """Return the held-out rows of a model, each with its rank in place of its p-value."""
    held, proba = model.held_out_rows(), model.held_out_proba()
    P = to_numpy(model.answer_proba(proba, held.scores))
    if hasattr(model, "held_out_dirichlet"):
        u = to_numpy(model.held_out_dirichlet().vacuity)
        confidence = model.evidence_.held_out_classifier_proba().max(axis=1)
    else:
        u, confidence = 1 - P.max(axis=1), P.max(axis=1)
    known = held.labels is not None and held.origin != "in-sample"
    right = model.label_indices(proba, held.scores) == held.labels if known else None
    order = np.argsort(held.scores, kind="stable")
    below = np.empty(len(order))
    below[order] = np.cumsum(held.counts[order])
    # Half a step below the p-value of a new row that is just as typical: no new row can tie.
    rank = (below + 0.5) / (held.total + 1)
    flagged = 1.0 * (held.scores < model.alarm_threshold(None))
    return Rows(rank, u, flagged, P, confidence, None, held.weights, right)


def fingerprint(model: Any) -> str:
    """Return a name of a fitted model by its held-out rows and its classes."""
    try:
        held = model.held_out_rows()
    except AttributeError:
        raise TypeError(
            "model must be a fitted model with p-values (DIPClassifier, DIPModule, or a baseline "
            f"after calibrate), got {type(model).__name__}"
        ) from None
    # A DIPModule computes its probabilities anew, and their last digits differ between machines:
    # rounded means of squares do not.
    sure = [] if held.proba is None else np.round(np.square(held.proba).mean(axis=0), 5)
    numbers = [np.ascontiguousarray(part, dtype=np.float64) for part in (held.scores, sure)]
    content = b"".join(part.tobytes() for part in numbers) + str(list(model.classes_)).encode()
    return sha256(content).hexdigest()[:16]


def _check_rows(rows: Rows) -> Rows:
    """Return the rows; ValueError if a number cannot be right."""
    bad = ~((rows.p_values >= 0) & (rows.p_values <= 1) & np.isfinite(rows.uncertainty))
    bad |= ~np.isfinite(rows.proba).all(axis=1)
    if bad.any():
        i = int(bad.argmax())
        raise ValueError(
            f"answers must hold p-values in [0, 1] and finite probabilities and vacuities, got "
            f"p-value {rows.p_values[i]!r} and vacuity {rows.uncertainty[i]!r} at row {i}; nothing "
            "of this batch was counted: leave out such rows"
        )
    return rows
