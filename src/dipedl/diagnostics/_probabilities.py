"""Whether the classifier's confidence is what it says, before and after its temperature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special
from sklearn.frozen import FrozenEstimator

from ..calibration.held_out import HeldOut
from ..maths.evidence import inverse_temperature, sharpening_share
from ..metrics import ece
from ..writing.finding import Finding, Number
from ._remedies import honest_confidence, other_probabilities

#: Temperatures outside of this range say that the classifier's confidence was far off.
_USUAL = (0.5, 2.0)
_AT_BOUND = 1e-3
#: `benchmarks/set_coverage.py` measures by how much.
_SURER = (
    " That of all rows is surer still than those of the folds, which are fitted to fewer rows: "
    "prediction sets may hold the true class a few points less often than asked. Ask for a higher "
    "coverage, or set rows aside to calibrate with."
)
#: Rows per column below which a classifier of all rows is surer than those of the folds.
_FEW = 10
_SIGMAS = 3.0
_GAP = 0.02
_TINY = float(np.finfo(np.float64).tiny)


def probability_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """Temperature, and confidence against accuracy."""
    if not held.labelled:
        return
    if clf._has_evidence and hasattr(clf.evidence_.calibrator_, "temperature_"):
        yield _temperature(held, clf)
    yield _confidence(held, clf)


def uncalibrated(held: HeldOut, evidence: Any) -> np.ndarray:
    """Probabilities (m, k) of the classifier itself on held-out rows: before its temperature."""
    temperature = getattr(getattr(evidence, "calibrator_", None), "temperature_", 1.0)
    if temperature == 1:
        return np.asarray(held.proba)
    share = sharpening_share(held.scores, *evidence.sharpening_)
    exponent = 1 / inverse_temperature(temperature, share)[:, None]
    return np.asarray(special.softmax(exponent * np.log(np.maximum(held.proba, _TINY)), axis=1))


def _temperature(held: HeldOut, clf: Any) -> Finding:
    calibrator, before = clf.evidence_.calibrator_, uncalibrated(held, clf.evidence_)
    temperature = float(calibrator.temperature_)
    numbers: dict[str, Number] = {"temperature": temperature}
    for name, P in (("before", before), ("after", held.proba)):
        own = P[np.arange(len(P)), held.labels]
        numbers[f"nll_{name}"] = held.average(-np.log(np.maximum(own, _TINY)))
        numbers[f"ece_{name}"] = ece(held.labels, P)
    n = {name: float(value) for name, value in numbers.items()}
    text = (
        f"The classifier's temperature is {temperature:.3g}: held-out NLL {n['nll_before']:.4f} "
        f"before, {n['nll_after']:.4f} after, ECE {n['ece_before']:.3f} before, "
        f"{n['ece_after']:.3f} after."
    )
    if _at_bound(temperature, calibrator):
        return Finding(
            "temperature_at_bound",
            "warning",
            f"{text} It stopped at the end of its range: no temperature repairs these "
            "probabilities.",
            numbers,
            other_probabilities(clf),
        )
    if not _USUAL[0] <= temperature <= _USUAL[1]:
        which = "over" if temperature > 1 else "under"
        surer = temperature > 1 and _of_fewer_rows(held, clf)
        return Finding(
            "temperature_far_from_one",
            "note",
            f"{text} The bare classifier is far {which}-confident." + (_SURER if surer else ""),
            numbers,
            "Use the probabilities of this model, not those of the bare classifier.",
        )
    return Finding("temperature", "ok", text, numbers)


def _of_fewer_rows(held: HeldOut, clf: Any) -> bool:
    """Whether held-out probabilities are of classifiers of fewer rows, and rows are few at all."""
    given = getattr(clf, "estimator", None)
    few = held.total < _FEW * getattr(clf, "n_features_in_", 0)
    return few and held.origin == "left out" and not isinstance(given, FrozenEstimator)


def _at_bound(temperature: float, calibrator: Any) -> bool:
    bounds = getattr(calibrator, "bounds", None)
    if bounds is None:
        return False
    return bool(np.any(np.abs(np.log(temperature / np.asarray(bounds, float))) < _AT_BOUND))


def _confidence(held: HeldOut, clf: Any) -> Finding:
    confidence = held.proba.max(axis=1)
    gap = confidence - ~held.wrong
    mean = held.average(gap)
    sd = float(np.sqrt(held.average((gap - mean) ** 2) / held.total))
    numbers: dict[str, Number] = {
        "confidence": held.average(confidence),
        "accuracy": held.average(~held.wrong),
        "gap": mean,
        "gap_sd": sd,
    }
    text = (
        f"On held-out rows the classifier claims to be right in {held.average(confidence):.1%} "
        f"of cases and is right in {held.average(~held.wrong):.1%}."
    )
    if abs(mean) > max(_SIGMAS * sd, _GAP):
        return Finding(
            "classifier_overconfident" if mean > 0 else "classifier_timid",
            "warning" if mean > 0 else "note",
            f"{text} The gap is {abs(mean) / sd:.0f} standard deviations wide; a density does "
            "not repair confidence on known data.",
            numbers,
            honest_confidence(clf, timid=mean < 0),
        )
    return Finding("classifier_confidence", "ok", text, numbers)
