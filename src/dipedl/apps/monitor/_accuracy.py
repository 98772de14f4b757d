"""Accuracy of a stream: estimated from confidence, and measured where labels came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ...columns import missing_entries
from ...inputs import are_texts
from ...writing.spelling import spellings
from ._rows import Rows

_Z = float(special.ndtri(0.975))


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, from so many rows."""

    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows, which add.

    Attributes
    ----------
    confidence : ndarray, shape (3,)
        Rows; their confidence; its square.
    labelled : ndarray, shape (4,)
        Rows with a label; of them the correct ones; Brier scores; their squares.
    """

    confidence: np.ndarray
    labelled: np.ndarray

    @classmethod
    def of(cls, rows: Rows, classes: np.ndarray, labels: Any) -> Sums:
        """Of a batch; `labels` (n,) or None, with None or NaN where a label is not known."""
        c = rows.confidence
        confidence = np.array([len(c), c.sum(), (c**2).sum()])
        return cls(confidence, _labelled(rows, classes, labels))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.confidence + other.confidence, self.labelled + other.labelled)

    def estimated(self, bias: float, variance: float) -> Estimate | None:
        """Accuracy if the classifier is as well calibrated here as on the reference rows.

        The classifier's mean confidence plus `bias`, by how much it was too low there, which has a
        `variance`: the difference of confidences of D. Guillory et al., "Predicting with confidence
        on unseen distributions", ICCV 2021. The confidence with the evidence would be too low: it
        falls with vacuity on every row that is new, also where the classifier is right. The
        interval knows of sampling alone, not of a calibration that a shift broke.
        """
        n, total, squares = self.confidence.tolist()
        return _normal(n, total, squares, bias, variance) if n else None

    @property
    def accuracy(self) -> Estimate | None:
        """Share of correct labels, with Wilson's interval."""
        n, right = self.labelled[:2].tolist()
        if not n:
            return None
        middle = (right + _Z**2 / 2) / (n + _Z**2)
        half = _Z * np.sqrt(right * (n - right) / n + _Z**2 / 4) / (n + _Z**2)
        return Estimate(right / n, float(middle - half), float(middle + half), int(n))

    @property
    def brier(self) -> Estimate | None:
        """Mean Brier score of the labelled rows."""
        n, _, score, squares = self.labelled.tolist()
        return _normal(n, score, squares, high=2.0) if n else None


def confidence_bias(rows: Rows) -> tuple[float, float]:
    """By how much the confidence of reference rows is too low, and the variance of that."""
    if rows.correct is None:
        return 0.0, 0.0
    w = np.ones(len(rows)) if rows.weights is None else rows.weights
    short = rows.correct - rows.confidence
    bias = float(np.average(short, weights=w))
    n = w.sum() ** 2 / (w**2).sum()
    return bias, float(np.average((short - bias) ** 2, weights=w) / n)


def _normal(
    n: float,
    total: float,
    squares: float,
    bias: float = 0.0,
    variance: float = 0.0,
    high: float = 1.0,
) -> Estimate:
    mean = total / n
    half = _Z * np.sqrt(max(squares / n - mean**2, 0.0) / n + variance)
    value, low, top = np.clip([mean + bias, mean + bias - half, mean + bias + half], 0, high)
    return Estimate(float(value), float(low), float(top), int(n))


def _labelled(rows: Rows, classes: np.ndarray, labels: Any) -> np.ndarray:
    if labels is None:
        return np.zeros(4)
    given = np.asarray(labels, dtype=object).ravel()
    if len(given) != len(rows):
        raise ValueError(
            f"labels must have one entry per row, got {len(given)} for {len(rows)} rows; put None "
            "where a label is not known"
        )
    known = ~missing_entries(given)
    if known.any() and are_texts(given[known]) != are_texts(np.asarray(classes)):
        raise ValueError(
            f"labels have dtype {np.asarray(given[known].tolist()).dtype}, the classes of the "
            f"model {np.asarray(classes).dtype}: give labels of the type of the classes"
        )
    labels = given[known]
    if known.any() and are_texts(labels):
        labels = np.array(spellings(labels, [str(one) for one in classes]), dtype=object)
    # A label that the model does not know is never right.
    truth = labels[:, None] == np.asarray(classes, dtype=object)[None, :]
    P = rows.proba[known]
    right = np.asarray(rows.labels, dtype=object)[known] == labels
    brier = (P**2).sum(axis=1) + 1 - 2 * (P * truth).sum(axis=1)
    return np.array([known.sum(), right.sum(), brier.sum(), (brier**2).sum()], dtype=float)
