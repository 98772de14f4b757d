"""Findings about held-out rows: where they came from, how many, of which classes, copies."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from .held_out import FEWEST_ROWS, HeldOut, share_of_copies
from .writing.finding import Finding, FindingWarning, Number, warn_caller
from .writing.numbers import plain_labels
from .writing.wording import finding

_COVERAGE = 0.9
#: Confidence of the bound on an error rate without an error, by Clopper and Pearson.
_CONFIDENCE = 0.95
#: Realised rates are to lie within this share of the rate asked for, at one standard deviation.
_RELATIVE = 0.5
_COVERAGE_SD = 0.03
#: Fewer errors than this say nothing about which score spots errors.
_FEW_ERRORS = 10
#: A smaller share of copies hardly moves a quantile of the held-out rows.
_MOST_COPIES = 0.5
#: What is found where held-out rows have such an origin.
_ORIGINS = {
    "in-sample": "calibration_in_sample",
    "frozen density": "density_frozen",
    "given twice": "calibration_given_to_fit",
}


def warn_of_held_out_rows(held_out: HeldOut, clf: Any, *, after_fit: bool = False) -> None:
    """Warn that held-out rows were seen before, or are of one class; after a fit, of few rows."""
    source, size, labels = (check(held_out, clf) for check in (_source, _size, _labels))
    few = after_fit and held_out.origin != "in-sample" and size.code == "calibration_small"
    for found, warned in (
        (source, seen_before(held_out, clf)),
        (labels, labels.severity == "warning"),
        (size, few),
    ):
        if warned:
            warn_caller(FindingWarning(found))


def seen_before(held_out: HeldOut, clf: Any) -> bool:
    """Return whether the classifier has learned the held-out rows, as far as can be told."""
    source = _source(held_out, clf)
    return source.severity == "warning" and source.code != "calibration_in_sample"


def held_out_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield source, size, labels and copies of the held-out data."""
    yield _source(held_out, clf)
    yield _size(held_out, clf)
    yield _labels(held_out, clf)
    if held_out.origin == "left out" and held_out.labelled and not _came_fitted(clf):
        # Rows of few discrete columns: copies in the other folds have taught the classifier.
        share = share_of_copies(getattr(clf.evidence_, "row_hashes_", np.empty(0)))
        if share > _MOST_COPIES:
            yield finding("calibration_copies", {"share": share}, hold_out=_hold_out_remedy(clf))


def _source(held_out: HeldOut, clf: Any) -> Finding:
    if held_out.origin == "left out" and _came_fitted(clf):
        return _source_of_frozen(held_out, clf)
    return finding(
        _ORIGINS.get(held_out.origin, "calibration_source"),
        {"source": held_out.source},
        calibrate=clf.calibrated_by,
        hold_out=_hold_out_remedy(clf),
    )


def _came_fitted(clf: Any) -> bool:
    """Return whether the classifier was fitted before: frozen, or a module's network."""
    return isinstance(clf.estimator, FrozenEstimator) if hasattr(clf, "estimator") else True


def _source_of_frozen(held_out: HeldOut, clf: Any) -> Finding:
    memorised = getattr(clf.evidence_, "memorised_", None)
    numbers: dict[str, Number] = {"source": held_out.source}
    perfect = held_out.labelled and not held_out.wrong.any()
    if held_out.labelled:
        numbers["error_rate"] = held_out.average(held_out.wrong)
    suspect = (perfect and held_out.total >= FEWEST_ROWS) if memorised is None else memorised
    seen = "If it learned from them, its errors and confidence look better here than on new rows."
    if suspect:
        why = (
            "It makes no error at all on them"
            if perfect
            else "It is surer of the labels of these rows than half-way between two rows of a class"
        )
        seen = (
            f"{why}, as a classifier does on rows that it has memorised: its errors, confidence "
            "and features say nothing about new rows here."
        )
    severity = "warning" if suspect else "note"
    return finding("classifier_frozen", numbers, severity, seen=seen, calibrate=clf.calibrated_by)


def _size(held_out: HeldOut, clf: Any) -> Finding:
    m, rate = held_out.total, clf.alarm_rate
    least = int(np.ceil(1 / rate)) - 1
    steady = int(np.ceil((1 - rate) / (rate * _RELATIVE**2)))
    covering = int(np.ceil(_COVERAGE * (1 - _COVERAGE) / _COVERAGE_SD**2))
    needed = max(steady, covering)
    numbers: dict[str, Number] = {
        "rows": m,
        "false_alarm_rate": rate,
        "least_for_an_alarm": least,
        "needed": needed,
        "false_alarm_sd": float(np.sqrt(rate * (1 - rate) / (m + 2))),
        "coverage": _COVERAGE,
        "coverage_sd": float(np.sqrt(_COVERAGE * (1 - _COVERAGE) / (m + 2))),
    }
    spread = (
        f"With {m:g} held-out rows the rate of false alarms comes out at {_percent(rate)} ± "
        f"{_percent(numbers['false_alarm_sd'])}, and the coverage of a "
        f"{_COVERAGE:.0%} prediction set at {_COVERAGE:.0%} ± {_percent(numbers['coverage_sd'])}"
    )
    if held_out.labelled:
        error = held_out.average(held_out.wrong)
        numbers["error_rate"] = error
        numbers["error_rate_sd"] = float(np.sqrt(error * (1 - error) / m))
        spread += (
            f"; the error rate is {_percent(error)} ± {_percent(numbers['error_rate_sd'])}"
            if error > 0
            else "; no row is misclassified, and the error rate is at most "
            f"{_percent(1 - (1 - _CONFIDENCE) ** (1 / m))} with confidence {_CONFIDENCE:.0%}"
        )
    more_rows = f"Hold out at least {needed} rows: give them to {clf.calibrated_by}"
    more_rows += ", or more rows to fit" * clf.has_evidence
    code = "calibration_small" if m < needed else "calibration_size"
    code = "calibration_too_few" if m < least else code
    return finding(code, numbers, rate=_percent(rate), spread=spread, more_rows=more_rows)


def _labels(held_out: HeldOut, clf: Any) -> Finding:
    if not held_out.labelled:
        missing = "class probabilities" if held_out.proba is None else "labels"
        return finding("labels_missing", {"missing": missing}, calibrate=clf.calibrated_by)
    if (held_out.labels == held_out.labels[0]).all():
        name = plain_labels(np.asarray(clf.classes_))[held_out.labels[0]]
        remedy = _every_class_remedy(held_out, clf)
        numbers: dict[str, Number] = {"rows": held_out.total}
        return finding("calibration_one_class", numbers, name=name, every_class=remedy)
    errors = int(held_out.wrong.sum())
    return finding("errors_too_few" if errors < _FEW_ERRORS else "labels", {"errors": errors})


def _percent(share: float | int | str) -> str:
    percent = 100 * float(share)
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def _hold_out_remedy(clf: Any) -> str:
    """Return the remedy for thresholds that come from the rows of the fit."""
    remedy = (
        "Leave cv at its default"
        if hasattr(clf, "estimator")
        else "Make the module by DIPModule(network) in place of DIPModule.paper(network)"
    )
    return f"{remedy}, or call {clf.calibrated_by} with rows that nothing was fitted on."


def _every_class_remedy(held_out: HeldOut, clf: Any) -> str:
    """Return the remedy for held-out rows of one class."""
    rows = f"rows of every class to {clf.calibrated_by}."
    if held_out.origin == "left out" and not isinstance(getattr(clf, "cv", ""), str | Integral):
        return (
            "Let the held-out parts of cv= hold every class, as those of StratifiedKFold(5) do, or "
            f"give {rows}"
        )
    return f"Give {rows}"
