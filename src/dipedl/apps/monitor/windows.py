"""Rows of a stream as a monitor sees them, their counts, which add, and tests of a window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.isotonic import IsotonicRegression

from ...columns import (
    MOST_LEVELS,
    Column,
    Inputs,
    column_texts,
    has_columns,
    is_category,
    missing_entries,
    named_columns,
    numbers_of,
)
from ...inputs import are_texts, from_arrow
from ...maths.arrays import to_numpy
from ...maths.scores import Z95, wilson
from ...writing.spelling import spellings, versions
from .bets import ReferenceRanks

__all__ = ["Rows", "held_out_rows"]

#: Ranges with fewer rows expected are tested together.
_FEWEST = 5.0


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


# Counts of rows, which add


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval, from so many rows."""

    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """Share of right answers by a confidence, as on the reference rows.

    It never falls with the confidence, and is straight between its knots; a confidence of 1/k is
    right by chance, one of 1 for certain, if no row says otherwise.

    Attributes
    ----------
    confidence, right : ndarray, shape (m,)
        Knots.
    variance : float
        Of its mean over the reference rows.

    References
    ----------
    B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates", KDD 2002.
    """

    confidence: np.ndarray
    right: np.ndarray
    variance: float

    @classmethod
    def of(cls, confidence: np.ndarray, rows: Rows) -> Calibration:
        """Learn it from a confidence (n,) of reference rows; they are right by it if unknown."""
        if rows.correct is None:
            return cls(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 0.0)
        w = np.ones(len(rows)) if rows.weights is None else rows.weights
        ends = [1 / rows.proba.shape[1], 1.0]
        isotonic = IsotonicRegression().fit(
            np.append(confidence, ends), np.append(rows.correct, ends), np.append(w, [1.0, 1.0])
        )
        made = cls(isotonic.X_thresholds_, isotonic.y_thresholds_, 0.0)
        spread = np.average((rows.correct - made(confidence)) ** 2, weights=w)
        return replace(made, variance=float(spread * (w**2).sum() / w.sum() ** 2))

    def __call__(self, confidence: np.ndarray) -> np.ndarray:
        """Return the share of right answers at each confidence (n,)."""
        return np.asarray(np.interp(confidence, self.confidence, self.right))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over rows, which add.

    Attributes
    ----------
    confidence : ndarray, shape (2, 3)
        Rows, their calibrated confidence and its square: of the classifier alone, with evidence.
    labelled : ndarray, shape (4,)
        Rows with a label; of them the correct ones; Brier scores; their squares.
    """

    confidence: np.ndarray
    labelled: np.ndarray

    @classmethod
    def empty(cls) -> Sums:
        """Return the sums over no row."""
        return cls(np.zeros((2, 3)), np.zeros(4))

    @classmethod
    def of(
        cls, rows: Rows, classes: np.ndarray, labels: Any, calibrations: Sequence[Calibration]
    ) -> Sums:
        """Sum a batch; `labels` (n,) or None, with None or NaN where a label is not known."""
        pairs = zip(calibrations, confidences(rows), strict=True)
        shares = [calibrate(confidence) for calibrate, confidence in pairs]
        confidence = np.array([[len(c), c.sum(), (c**2).sum()] for c in shares])
        return cls(confidence, _count_labels(rows, classes, labels))

    def __add__(self, other: Sums) -> Sums:
        return Sums(self.confidence + other.confidence, self.labelled + other.labelled)

    def estimate(self, calibrations: Sequence[Calibration]) -> Estimate | None:
        """Accuracy if the classifier is as well calibrated here as on the reference rows.

        A classifier may guess on rows that are new: so the interval reaches from there to the share
        by the confidence with the evidence, and sampling beyond both.
        """
        if not self.confidence[0, 0]:
            return None
        alone, evidence = (
            _normal(sums[0], sums[1], sums[2], one.variance)
            for sums, one in zip(self.confidence, calibrations, strict=True)
        )
        low, high = min(alone.low, evidence.low), max(alone.high, evidence.high)
        return Estimate(alone.value, low, high, alone.rows)

    @property
    def accuracy(self) -> Estimate | None:
        """Share of correct labels, with Wilson's interval."""
        n, right = self.labelled[:2].tolist()
        if not n:
            return None
        low, high = wilson(right / n, n).tolist()
        return Estimate(right / n, low, high, int(n))

    @property
    def brier(self) -> Estimate | None:
        """Mean Brier score of the labelled rows."""
        n, _, score, squares = self.labelled.tolist()
        return _normal(n, score, squares, high=2.0) if n else None


def calibrations_of(rows: Rows) -> tuple[Calibration, ...]:
    """Learn the calibration of both `confidences` from reference rows."""
    return tuple(Calibration.of(confidence, rows) for confidence in confidences(rows))


def confidences(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest probabilities (n,) of the classifier alone, and with the evidence."""
    return rows.confidence, rows.proba.max(axis=1)


def _normal(
    n: float, total: float, squares: float, variance: float = 0.0, high: float = 1.0
) -> Estimate:
    mean = total / n
    half = Z95 * np.sqrt(max(squares / n - mean**2, 0.0) / n + variance)
    value, low, top = np.clip([mean, mean - half, mean + half], 0, high)
    return Estimate(float(value), float(low), float(top), int(n))


def _count_labels(rows: Rows, classes: np.ndarray, labels: Any) -> np.ndarray:
    if labels is None:
        return np.zeros(4)
    entries = np.asarray(labels, dtype=object).ravel()
    if len(entries) != len(rows):
        raise ValueError(
            f"labels must have one entry per row, got {len(entries)} for {len(rows)} rows; put "
            "None where a label is not known"
        )
    known = ~missing_entries(entries)
    if known.any() and are_texts(entries[known]) != are_texts(np.asarray(classes)):
        raise ValueError(
            f"labels have dtype {np.asarray(entries[known].tolist()).dtype}, the classes of the "
            f"model {np.asarray(classes).dtype}: give labels of the type of the classes"
        )
    labels = entries[known]
    if known.any() and are_texts(labels):
        labels = np.array(spellings(labels, [str(one) for one in classes]), dtype=object)
    # A label that the model does not know is never right.
    truth = labels[:, None] == np.asarray(classes, dtype=object)[None, :]
    P = rows.proba[known]
    right = np.asarray(rows.labels, dtype=object)[known] == labels
    brier = (P**2).sum(axis=1) + 1 - 2 * (P * truth).sum(axis=1)
    return np.array([known.sum(), right.sum(), brier.sum(), (brier**2).sum()], dtype=float)


# Columns: how many rows are in each range or level, and whether that changed


def learn_column(name: str, values: Any) -> Column:
    """Return what is usual in a column: ranges of numbers, else its commonest levels as texts."""
    numbers = _numbers(values)
    if numbers is not None:
        return Inputs.of_numbers([name], numbers[:, None])[0]
    texts, n = _texts(values), len(values)
    known = Counter(spellings(texts, versions(texts)))
    order = sorted(known, key=lambda level: (-known[level], level))[:MOST_LEVELS]
    levels = {level: known[level] / n for level in order} if known else None
    return Column(name, np.nan, np.nan, 1 - len(texts) / n, levels, rows=n)


def count_rows(column: Column, values: Any) -> np.ndarray:
    """Return the rows in each range or level, of other levels, with a gap: as `Column.counts`."""
    if column.levels:
        levels = [*map(str, column.levels)][:MOST_LEVELS]
        places = {level: i for i, level in enumerate(levels)}
        texts = spellings(_texts(values), places)
        found = [places.get(text, len(levels)) for text in texts]
        size, gaps = len(levels) + 1, len(values) - len(texts)
    elif len(column.cuts):
        numbers = _numbers(np.asarray(values, dtype=object) if is_category(values) else values)
        if numbers is None:
            raise ValueError(
                f"column {column.name!r} must hold numbers, as in the reference rows, got "
                f"{np.asarray(values).ravel()[0]!r}; leave out or correct such rows"
            )
        known = numbers[~np.isnan(numbers)]
        found = np.searchsorted(column.cuts[1:-1], known, side="left").tolist()
        size, gaps = len(column.ranges), len(numbers) - len(known)
    else:
        gaps = missing_entries(values).sum()
        return np.array([len(values) - gaps, gaps], dtype=float)
    counts = np.bincount(np.asarray(found, dtype=int), minlength=size)
    return np.append(counts, gaps).astype(float)


def compare_counts(usual: np.ndarray, window: np.ndarray) -> tuple[float, float]:
    """Return the population stability index of the counts of a window, and the p-value of none.

    Pearson's chi-square, with the variance of the urn of `ReferenceRanks`, as the reference is a
    sample too; and the urn itself for the ranges in which few rows are expected or none was in the
    reference, together, such as gaps and other levels. Twice the smaller p-value of the two.
    """
    m, n = window.sum(), usual.sum()
    expected = (usual + 0.5) / (n + 0.5 * len(usual))
    here = (window + 0.5) / (m + 0.5 * len(window))
    psi = float(((here - expected) * np.log(here / expected)).sum())
    rare = (m * expected < _FEWEST) | (usual == 0)
    p = min(_chi_square(window[~rare], usual[~rare]),
            _tail_probability(window[rare].sum(), m, usual[rare].sum(), n))  # fmt: skip
    return psi, min(2 * p, 1.0)


def _chi_square(window: np.ndarray, counts: np.ndarray) -> float:
    if len(window) < 2 or not window.sum():
        return 1.0
    m, n = window.sum(), counts.sum()
    chi = stats.chisquare(window, m * counts / n).statistic / (1 + m / n)
    return float(special.chdtrc(len(window) - 1, chi))


def _tail_probability(found: float, m: float, before: float, n: float) -> float:
    """Chance of `found` or more of m rows in ranges in which `before` of n reference rows are."""
    more = stats.betabinom.pmf(np.arange(found, m + 1), m, before + 1, n - before + 1e-9)
    return float(min(more.sum(), 1.0))


def learn_columns(X: Any) -> tuple[Column, ...]:
    """Return the columns of a table or of an array (n, d); none for anything else."""
    return tuple(learn_column(name, values) for name, values in _columns(X))


def count_columns(columns: Sequence[Column], X: Any) -> list[np.ndarray]:
    """Return the counts of each known column in X; others are not looked at."""
    there = dict(_columns(X))
    lacking = [one.name for one in columns if one.name not in there]
    if lacking:
        raise ValueError(
            f"X lacks the columns {lacking[:5]}; the monitor was made for "
            f"{[one.name for one in columns][:10]}: give them, or make a monitor without columns"
        )
    return [count_rows(one, there[one.name]) for one in columns]


def _columns(X: Any) -> list[tuple[str, Any]]:
    X = from_arrow(X)
    if not has_columns(X):
        return []
    return list(zip(column_texts(X), (values for _, values in named_columns(X)), strict=True))


def _numbers(values: Any) -> np.ndarray | None:
    """Return a column as float64 (n,), or None if it holds anything but numbers."""
    kind = getattr(values.dtype, "kind", "O")
    if is_category(values) or kind not in "biufOU":
        return None
    if isinstance(values, np.ndarray) and kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    return numbers_of(values)


def _texts(values: Any) -> list[str]:
    """Return the entries of a column that are not missing, as texts as they are written."""
    return [str(value) for value in np.asarray(values, dtype=object)[~missing_entries(values)]]


@dataclass(frozen=True)
class Window:
    """Some rows of the stream in one look.

    Attributes
    ----------
    first, last : int
        Rows of the stream, from 1.
    distance : float
        Kolmogorov and Smirnov's, of the p-values from those of the reference; at the cuts alone,
        and of lower p-values alone where the reference comes from cross-fitting.
    p_value : float
        Of no difference in the p-values.
    differs : bool
        Whether they differ, at the rate of false discoveries.
    changed : tuple of (str, float)
        Columns that differ, at the same rate, with their population stability index; the largest
        first. Below 0.1 a change is small, above 0.25 large, by a rule of thumb.
    uncertainty, flagged : float
        Means.
    estimated_accuracy, accuracy : Estimate or None
        Without labels, and of the labelled rows.
    evidence : dict of str to float
        Of each test over the stream so far, at the last row: logarithm of its wealth in nats.
    """

    first: int
    last: int
    distance: float
    p_value: float
    differs: bool
    changed: tuple[tuple[str, float], ...]
    uncertainty: float
    flagged: float
    estimated_accuracy: Estimate | None
    accuracy: Estimate | None
    evidence: dict[str, float]


@dataclass(frozen=True, eq=False)
class OpenWindow:
    """Counts of the rows since the last window: they add.

    Attributes
    ----------
    ranks : ndarray, shape (K,)
        Rows in each range of `ReferenceRanks`.
    sums : ndarray, shape (2,)
        Of uncertainty and of alarms.
    columns : list of ndarray
        Rows in the ranges of each column.
    accuracy : Sums
    """

    ranks: np.ndarray
    sums: np.ndarray
    columns: list[np.ndarray]
    accuracy: Sums

    def __len__(self) -> int:
        return int(self.ranks.sum())

    def __add__(self, other: OpenWindow) -> OpenWindow:
        columns = [a + b for a, b in zip(self.columns, other.columns, strict=True)]
        return OpenWindow(
            self.ranks + other.ranks,
            self.sums + other.sums,
            columns,
            self.accuracy + other.accuracy,
        )

    def close(
        self,
        last: int,
        reference: ReferenceRanks,
        columns: Sequence[Column],
        calibrations: Sequence[Calibration],
        rate: float,
        evidence: dict[str, float],
    ) -> Window:
        """Return the window that ends with row `last`, tested at a false discovery rate."""
        m = len(self)
        distance, p = kolmogorov(self.ranks, reference)
        compared = [
            compare_counts(one.counts, counts)
            for one, counts in zip(columns, self.columns, strict=True)
        ]
        p_values = [p, *(p_value for _, p_value in compared)]
        # Of Benjamini and Hochberg.
        found = stats.false_discovery_control(p_values) <= rate
        pairs = zip(columns, compared, found[1:], strict=True)
        changed = [(one.name, psi) for one, (psi, _), on in pairs if on]
        changed.sort(key=lambda one: -one[1])
        u, flagged = (self.sums / m).tolist()
        accuracy = self.accuracy.estimate(calibrations), self.accuracy.accuracy
        first, differs = last - m + 1, bool(found[0])
        tests = distance, p, differs, tuple(changed)
        return Window(first, last, *tests, u, flagged, *accuracy, evidence)


def kolmogorov(counts: np.ndarray, reference: ReferenceRanks) -> tuple[float, float]:
    """Largest difference of cumulative shares, and its two-sample p-value.

    Rows that are more typical count if the reference is fresh: those of cross-fitting are a little
    less typical than new rows. Cuts between which nothing is compared make the p-value larger, if
    anything.
    """
    sizes = reference.sizes
    m, n = counts.sum(), sizes.sum() - 1
    more = np.cumsum(counts) / m - np.cumsum(sizes) / sizes.sum()
    distance = float((np.abs(more) if reference.both else more.clip(0)).max())
    scaled = distance * np.sqrt(m * n / (m + n))
    p = special.kolmogorov(scaled) if reference.both else np.exp(-2 * scaled**2)
    return distance, float(p)
