"""Held-out rows: what makes them worth little is said at once, with the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from ._fold import like
from .calibration._seen_rows import share_of_copies
from .calibration.held_out import HeldOut
from .fitting.classifiers import FittedClassifier
from .fitting.progress import warn_caller
from .inputs import numbers
from .writing.finding import Finding, FindingWarning
from .writing.numbers import plain_labels

MOST, FEWEST = 1000, 100
#: A rise of the Brier score is no chance from so many standard errors on, and large from so much.
_SIGMAS, _RISE = 3.0, 0.01
#: Errors of the nearest row beside which a classifier without one is suspect.
_ERRORS = 5
_COVERAGE = 0.9
#: Confidence of the bound on an error rate without an error, by Clopper and Pearson.
_SURE = 0.95
#: Realised rates are to lie within this share of the rate asked for, at one standard deviation.
_RELATIVE = 0.5
_COVERAGE_SD = 0.03
#: Fewer errors than this say nothing about which score spots errors.
_FEW_ERRORS = 10
#: A smaller share of copies hardly moves a quantile of the held-out rows.
_MOST_COPIES = 0.5
_SURER = "It is surer of the labels of these rows than half-way between two rows of one class"


def warn_of_rows(held: HeldOut, clf: Any) -> None:
    """Say at once what makes the held-out rows of a fit worth little, with the remedy."""
    warn_of_source(held, clf)
    size = _size(held, clf)
    if size.code == "calibration_small" and held.origin != "in-sample":
        _warn(size)


def warn_of_source(held: HeldOut, clf: Any) -> None:
    """Say at once that the held-out rows were seen before, or are of one class."""
    if seen_before(held, clf):
        _warn(_source(held, clf))
    labels = _labels(held, clf)
    if labels.severity == "warning":
        _warn(labels)


def seen_before(held: HeldOut, clf: Any) -> bool:
    """Whether the classifier has learned the held-out rows, as far as that can be told."""
    source = _source(held, clf)
    return source.severity == "warning" and source.code != "calibration_in_sample"


def _warn(finding: Finding) -> None:
    warn_caller(FindingWarning(finding))


def held_out_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """Source, size, labels and copies of the held-out data."""
    yield _source(held, clf)
    yield _size(held, clf)
    yield _labels(held, clf)
    yield from _copies(held, clf)


def _source(held: HeldOut, clf: Any) -> Finding:
    source = held.source
    if held.origin == "in-sample":
        return Finding(
            "calibration_in_sample",
            "warning",
            "Thresholds and scale of the evidence come from rows that the density was fitted on. "
            "Such rows look more typical than new ones: more new inputs will be flagged, and "
            "lose more confidence, than the settings ask for.",
            {"source": source},
            _own_rows(clf),
        )
    if held.origin == "frozen density":
        return Finding(
            "density_frozen",
            "note",
            "The density came fitted, and is judged on the rows given to fit. If they are the rows "
            "it learned from, they look more typical than new ones.",
            {"source": source},
            f"Call {clf._calibrated_by} with rows that the density has not seen.",
        )
    if held.origin == "given twice":
        return _given_twice(source)
    if held.origin == "left out" and _came_fitted(clf):
        return _frozen(held, clf)
    return Finding(
        "calibration_source", "ok", f"Statistics come from {source}.", {"source": source}
    )


def _came_fitted(clf: Any) -> bool:
    """Whether the classifier was fitted before: frozen, or a module's network."""
    return isinstance(clf.estimator, FrozenEstimator) if hasattr(clf, "estimator") else True


def _given_twice(source: str) -> Finding:
    return Finding(
        "calibration_given_to_fit",
        "warning",
        f"Statistics come from {source}. The model knows them: its errors look rarer than on new "
        "rows, and the rows more typical than new ones, so that too many new inputs will be "
        "flagged and sets will cover too little.",
        {"source": source},
        "Calibrate with rows that fit has not seen, or call fit without calibration.",
    )


def _frozen(held: HeldOut, clf: Any) -> Finding:
    memorised = getattr(clf.evidence_, "memorised_", None)
    numbers: dict[str, float | int | str] = {"source": held.source}
    perfect = held.labelled and not held.wrong.any()
    if held.labelled:
        numbers["error_rate"] = held.average(held.wrong)
    suspect = (perfect and held.total >= FEWEST) if memorised is None else memorised
    tail = "If they are the rows it learned from, its errors and its confidence look better here "
    tail += "than on new rows."
    if suspect:
        why = "It makes no error at all on them" if perfect else _SURER
        tail = (
            f"{why}, which is what a classifier does on rows it has memorised: its errors, "
            "confidence and features say nothing about new rows here."
        )
    return Finding(
        "classifier_frozen",
        "warning" if suspect else "note",
        f"The classifier came fitted, and is judged on the rows given to fit. {tail}",
        numbers,
        f"Call {clf._calibrated_by} with rows that the classifier has not seen.",
    )


def _size(held: HeldOut, clf: Any) -> Finding:
    m, rate = held.total, clf._alarm_rate
    least = int(np.ceil(1 / rate)) - 1
    steady = int(np.ceil((1 - rate) / (rate * _RELATIVE**2)))
    covering = int(np.ceil(_COVERAGE * (1 - _COVERAGE) / _COVERAGE_SD**2))
    needed = max(steady, covering)
    numbers: dict[str, float | int | str] = {
        "rows": m,
        "false_alarm_rate": rate,
        "least_for_an_alarm": least,
        "needed": needed,
        "false_alarm_sd": float(np.sqrt(rate * (1 - rate) / (m + 2))),
        "coverage": _COVERAGE,
        "coverage_sd": float(np.sqrt(_COVERAGE * (1 - _COVERAGE) / (m + 2))),
    }
    spread = (
        f"With {m:g} held-out rows the rate of false alarms comes out at {_pct(rate)} ± "
        f"{_pct(numbers['false_alarm_sd'])}, and the coverage of a "
        f"{_COVERAGE:.0%} prediction set at {_COVERAGE:.0%} ± {_pct(numbers['coverage_sd'])}"
    )
    if held.labelled:
        error = held.average(held.wrong)
        numbers["error_rate"] = error
        numbers["error_rate_sd"] = float(np.sqrt(error * (1 - error) / m))
        spread += (
            f"; the error rate is {_pct(error)} ± {_pct(numbers['error_rate_sd'])}"
            if error > 0
            else "; no row is misclassified, and the error rate is at most "
            f"{_pct(1 - (1 - _SURE) ** (1 / m))} with confidence {_SURE:.0%}"
        )
    if m < least:
        return Finding(
            "calibration_too_few",
            "warning",
            f"{m:g} held-out rows are too few for a false-alarm rate of {_pct(rate)}: at least "
            f"{least} are needed before any input can be flagged, and {needed} before the rate is "
            "steady.",
            numbers,
            f"{_more_rows(clf, needed)}; or ask for a higher false_alarm_rate than {rate:g}.",
        )
    if m < needed:
        return Finding(
            "calibration_small",
            "note",
            f"{spread} (one standard deviation over the choice of rows).",
            numbers,
            f"{_more_rows(clf, needed)}, if the rates matter.",
        )
    return Finding("calibration_size", "ok", f"{spread}.", numbers)


def _labels(held: HeldOut, clf: Any) -> Finding:
    if held.labelled and (held.labels == held.labels[0]).all():
        name = plain_labels(np.asarray(clf.classes_))[held.labels[0]]
        return Finding(
            "calibration_one_class",
            "warning",
            f"All {held.total:g} held-out rows are of class {name!r}: what is learned from them, "
            "such as a temperature, thresholds, prediction sets and intervals, holds for no other "
            "class.",
            {"rows": held.total},
            _every_class(held, clf),
        )
    if held.labelled:
        errors = int(held.wrong.sum())
        numbers: dict[str, float | int | str] = {"errors": errors}
        if errors < _FEW_ERRORS:
            return Finding(
                "errors_too_few",
                "ok",
                f"The classifier makes {errors} errors on held-out rows, fewer than "
                f"{_FEW_ERRORS}: which score spots errors cannot be judged.",
                numbers,
            )
        return Finding("labels", "ok", f"{errors} held-out errors to compare scores by.", numbers)
    missing = "class probabilities" if held.proba is None else "labels"
    return Finding(
        "labels_missing",
        "note",
        f"The held-out rows have no {missing}: whether the density says more than the "
        "classifier, what the evidence costs, and which class suffers cannot be told.",
        {"missing": missing},
        f"Give rows with labels to {clf._calibrated_by}.",
    )


def _copies(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """Rows of few discrete columns: their copies in the other folds have taught the classifier."""
    if held.origin != "left out" or not held.labelled or _came_fitted(clf):
        return
    share = share_of_copies(getattr(clf.evidence_, "row_hashes_", np.empty(0)))
    if share > _MOST_COPIES:
        yield Finding(
            "calibration_copies",
            "warning",
            f"{share:.0%} of the rows have a copy, as rows of few discrete columns do. Folds share "
            "copies out evenly, so that a classifier knows the labels of a held-out row better "
            "than those of a new one: prediction sets may cover some percentage points less than "
            "they state.",
            {"share": share},
            _own_rows(clf),
        )


def _pct(share: float | int | str) -> str:
    percent = 100 * float(share)
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def _own_rows(clf: Any) -> str:
    """How thresholds stop coming from the rows of the fit."""
    given = (
        "Leave cv at its default" if hasattr(clf, "estimator") else "Give fit_density held_out=0.1"
    )
    return f"{given}, or call {clf._calibrated_by} with rows that nothing was fitted on."


def _more_rows(clf: Any, needed: int) -> str:
    """How more rows are held out."""
    given = f"give at least {needed} rows to {clf._calibrated_by}"
    return f"Hold out at least {needed} rows: {given}" + (
        ", or more rows to fit" if clf._has_evidence else ""
    )


def _every_class(held: HeldOut, clf: Any) -> str:
    """How rows of every class are held out."""
    rows = f"rows of every class to {clf._calibrated_by}."
    if held.origin == "left out" and not isinstance(getattr(clf, "cv", ""), str | Integral):
        return (
            "Let the held-out parts of cv= hold every class, as those of StratifiedKFold(5) do, or "
            f"give {rows}"
        )
    return f"Give {rows}"


def memorised(classifier: FittedClassifier, X: Any, y: np.ndarray, Z: np.ndarray) -> bool | None:
    """Whether a classifier has learned rows X (n, d) of class indices y (n,) by heart.

    Half-way between a row and the nearest one of its class, in the features Z (n, p), a classifier
    is surer of the class than at the rows, whose labels may be noise; one that has learned them is
    less sure. It is also suspect if it makes no error, where the nearest row often has another
    label. At most a thousand rows are looked at. None if the classifier is not frozen, for fewer
    than a hundred rows, if X holds other things than numbers, and if it refuses those half-way.
    """
    if not isinstance(classifier.template, FrozenEstimator):
        return None
    values = numbers(X)
    if values is None or len(Z) < FEWEST or not np.isfinite(values).all():
        return None
    some = np.linspace(0, len(Z) - 1, min(len(Z), MOST)).astype(int)
    values, y, Z = values[some], y[some], Z[some]
    middle = like(X, (values + values[nearest_of_class(Z, y)]) / 2)
    P = classifier.proba(_safe_indexing(X, some))
    try:
        between = classifier.proba(middle)
    except Exception:
        # Between two codes of a category there may be no third.
        return None
    errors = int((y[_nearest(Z)] != y).sum())
    flawless = errors >= _ERRORS and bool((P.argmax(axis=1) == y).all())
    return flawless or less_sure_between(P, between, y)


def less_sure_between(P: np.ndarray, between: np.ndarray, y: np.ndarray) -> bool:
    """Return whether probabilities half-way between rows fit the labels y (n,) worse than at them.

    P (n, k) are at the rows, `between` (n, k) half-way to another row of the class.
    """
    truth = np.eye(P.shape[1])[y]
    rise = ((between - truth) ** 2).sum(axis=1) - ((P - truth) ** 2).sum(axis=1)
    return bool(rise.mean() > max(_RISE, _SIGMAS * rise.std() / np.sqrt(len(rise))))


def _nearest(Z: np.ndarray) -> np.ndarray:
    """Number of the nearest other row of each, shape (n,)."""
    return np.asarray(NearestNeighbors(n_neighbors=1).fit(Z).kneighbors()[1][:, 0])


def nearest_of_class(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Number of the nearest other row of the same class; of a class of one row itself."""
    found = np.arange(len(Z))
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            found[rows] = rows[_nearest(Z[rows])]
    return found
