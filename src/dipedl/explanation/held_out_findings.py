"""Findings about held-out rows: where they came from, how many, of which classes, copies."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..held_out import FEWEST_ROWS, HeldOut, share_of_copies
from ..writing.finding import Finding, FindingWarning, Number, warn_caller
from ..writing.numbers import plain_labels

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


def warn_of_held_out_rows(held_out: HeldOut, clf: Any, *, after_fit: bool = False) -> None:
    """Warn that held-out rows were seen before, or are of one class; after a fit, of few rows."""
    findings = [_source(held_out, clf)] if seen_before(held_out, clf) else []
    if _labels(held_out, clf).severity == "warning":
        findings.append(_labels(held_out, clf))
    if (
        after_fit
        and held_out.origin != "in-sample"
        and _size(held_out, clf).code == "calibration_small"
    ):
        findings.append(_size(held_out, clf))
    for finding in findings:
        warn_caller(FindingWarning(finding))


def seen_before(held_out: HeldOut, clf: Any) -> bool:
    """Return whether the classifier has learned the held-out rows, as far as can be told."""
    source = _source(held_out, clf)
    return source.severity == "warning" and source.code != "calibration_in_sample"


def held_out_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Source, size, labels and copies of the held-out data."""
    yield _source(held_out, clf)
    yield _size(held_out, clf)
    yield _labels(held_out, clf)
    yield from _copies(held_out, clf)


def _source(held_out: HeldOut, clf: Any) -> Finding:
    source = held_out.source
    if held_out.origin == "in-sample":
        return Finding(
            "calibration_in_sample",
            "warning",
            "Thresholds and scale of the evidence come from rows that the density was fitted on. "
            "Such rows look more typical than new ones: more new inputs will be flagged, and "
            "lose more confidence, than the settings ask for.",
            {"source": source},
            _hold_out_remedy(clf),
        )
    if held_out.origin == "frozen density":
        return Finding(
            "density_frozen",
            "note",
            "The density came fitted, and is judged on the rows given to fit. If they are the rows "
            "it learned from, they look more typical than new ones.",
            {"source": source},
            f"Call {clf.calibrated_by} with rows that the density has not seen.",
        )
    if held_out.origin == "given twice":
        return _present_in_fit(source)
    if held_out.origin == "left out" and _came_fitted(clf):
        return _source_of_frozen(held_out, clf)
    return Finding(
        "calibration_source", "ok", f"Statistics come from {source}.", {"source": source}
    )


def _came_fitted(clf: Any) -> bool:
    """Return whether the classifier was fitted before: frozen, or a module's network."""
    return isinstance(clf.estimator, FrozenEstimator) if hasattr(clf, "estimator") else True


def _present_in_fit(source: str) -> Finding:
    return Finding(
        "calibration_given_to_fit",
        "warning",
        f"Statistics come from {source}. The model knows them: its errors look rarer than on new "
        "rows, and the rows more typical than new ones, so that too many new inputs will be "
        "flagged and sets will cover too little.",
        {"source": source},
        "Calibrate with rows that fit has not seen, or call fit without calibration.",
    )


def _source_of_frozen(held_out: HeldOut, clf: Any) -> Finding:
    memorised = getattr(clf.evidence_, "memorised_", None)
    numbers: dict[str, Number] = {"source": held_out.source}
    perfect = held_out.labelled and not held_out.wrong.any()
    if held_out.labelled:
        numbers["error_rate"] = held_out.average(held_out.wrong)
    suspect = (perfect and held_out.total >= FEWEST_ROWS) if memorised is None else memorised
    tail = "If they are the rows it learned from, its errors and its confidence look better here "
    tail += "than on new rows."
    if suspect:
        why = (
            "It makes no error at all on them"
            if perfect
            else "It is surer of the labels of these rows than half-way between two rows of a class"
        )
        tail = (
            f"{why}, which is what a classifier does on rows it has memorised: its errors, "
            "confidence and features say nothing about new rows here."
        )
    return Finding(
        "classifier_frozen",
        "warning" if suspect else "note",
        f"The classifier came fitted, and is judged on the rows given to fit. {tail}",
        numbers,
        f"Call {clf.calibrated_by} with rows that the classifier has not seen.",
    )


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
    if m < least:
        return Finding(
            "calibration_too_few",
            "warning",
            f"{m:g} held-out rows are too few for a false-alarm rate of {_percent(rate)}: at least "
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


def _labels(held_out: HeldOut, clf: Any) -> Finding:
    if held_out.labelled and (held_out.labels == held_out.labels[0]).all():
        name = plain_labels(np.asarray(clf.classes_))[held_out.labels[0]]
        return Finding(
            "calibration_one_class",
            "warning",
            f"All {held_out.total:g} held-out rows are of class {name!r}: what is learned from "
            "them, such as a temperature, thresholds, sets and intervals, holds for no other "
            "class.",
            {"rows": held_out.total},
            _every_class_remedy(held_out, clf),
        )
    if held_out.labelled:
        errors = int(held_out.wrong.sum())
        numbers: dict[str, Number] = {"errors": errors}
        if errors < _FEW_ERRORS:
            return Finding(
                "errors_too_few",
                "ok",
                f"The classifier makes {errors} errors on held-out rows, fewer than "
                f"{_FEW_ERRORS}: which score spots errors cannot be judged.",
                numbers,
            )
        return Finding("labels", "ok", f"{errors} held-out errors to compare scores by.", numbers)
    missing = "class probabilities" if held_out.proba is None else "labels"
    return Finding(
        "labels_missing",
        "note",
        f"The held-out rows have no {missing}: whether the density says more than the "
        "classifier, what the evidence costs, and which class suffers cannot be told.",
        {"missing": missing},
        f"Give rows with labels to {clf.calibrated_by}.",
    )


def _copies(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Rows of few discrete columns: their copies in the other folds have taught the classifier."""
    if held_out.origin != "left out" or not held_out.labelled or _came_fitted(clf):
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
            _hold_out_remedy(clf),
        )


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


def _more_rows(clf: Any, needed: int) -> str:
    """Return the remedy for too few held-out rows."""
    remedy = f"give at least {needed} rows to {clf.calibrated_by}"
    return f"Hold out at least {needed} rows: {remedy}" + (
        ", or more rows to fit" if clf.has_evidence else ""
    )


def _every_class_remedy(held_out: HeldOut, clf: Any) -> str:
    """Return the remedy for held-out rows of one class."""
    rows = f"rows of every class to {clf.calibrated_by}."
    if held_out.origin == "left out" and not isinstance(getattr(clf, "cv", ""), str | Integral):
        return (
            "Let the held-out parts of cv= hold every class, as those of StratifiedKFold(5) do, or "
            f"give {rows}"
        )
    return f"Give {rows}"
