"""Findings about the classifier: lost classes, false alarms by class, temperature, confidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special, stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from ..evidence import alarm_threshold
from ..evidence_model import inverse_temperature, sharpening_share
from ..held_out import HeldOut
from ..metrics import ece
from ..writing.finding import Finding, Number
from ..writing.numbers import plain_labels

_LEVEL = 0.01
_FEW_ROWS = 5
_TAKES_ALL = 0.9
_SURPLUS = 0.1
_LOW_RECALL = 0.5
#: A class counts as driving alarms if flagged this many times as often as asked for.
_MANY_TIMES = 3.0
_DOMINANT = 0.9
_FEW_FLAGGED = 20
_NAMED = 5
#: Temperatures outside of this range say that the classifier's confidence was far off.
_USUAL = (0.5, 2.0)
_AT_BOUND = 1e-3
#: Rows per column below which a classifier of all rows is surer than those of the folds;
#: `research/benchmarks/set_coverage.py` measures by how much.
_FEW_PER_COLUMN = 10
_SIGMAS = 3.0
_GAP = 0.02
_TINY = float(np.finfo(np.float64).tiny)

Names = tuple[str, ...]


def probability_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Temperature, and confidence against accuracy."""
    if not held_out.labelled:
        return
    if clf.has_evidence and hasattr(clf.evidence_.calibrator_, "temperature_"):
        yield _temperature(held_out, clf)
    yield _confidence(held_out, clf)


def uncalibrated(held_out: HeldOut, evidence: Any) -> np.ndarray:
    """Probabilities (m, k) of the classifier itself on held-out rows: before its temperature."""
    temperature = getattr(getattr(evidence, "calibrator_", None), "temperature_", 1.0)
    if temperature == 1:
        return np.asarray(held_out.proba)
    share = sharpening_share(held_out.scores, *evidence.sharpening_)
    exponent = 1 / inverse_temperature(temperature, share)[:, None]
    return np.asarray(special.softmax(exponent * np.log(np.maximum(held_out.proba, _TINY)), axis=1))


def _temperature(held_out: HeldOut, clf: Any) -> Finding:
    calibrator, before = clf.evidence_.calibrator_, uncalibrated(held_out, clf.evidence_)
    temperature = float(calibrator.temperature_)
    numbers: dict[str, Number] = {"temperature": temperature}
    for name, P in (("before", before), ("after", held_out.proba)):
        own = P[np.arange(len(P)), held_out.labels]
        numbers[f"nll_{name}"] = held_out.average(-np.log(np.maximum(own, _TINY)))
        numbers[f"ece_{name}"] = ece(held_out.labels, P)
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
            "Look for leaked or mislabelled rows, and for probabilities of exactly 0 and 1. "
            + _beyond_a_temperature(clf),
        )
    if not _USUAL[0] <= temperature <= _USUAL[1]:
        which = "over" if temperature > 1 else "under"
        few = held_out.total < _FEW_PER_COLUMN * getattr(clf, "n_features_in_", 0)
        refitted = held_out.origin == "left out" and not isinstance(
            getattr(clf, "estimator", None), FrozenEstimator
        )
        surer = temperature > 1 and few and refitted
        return Finding(
            "temperature_far_from_one",
            "note",
            f"{text} The bare classifier is far {which}-confident."
            + " That of all rows is surer still than those of the folds, which are fitted to fewer "
            "rows: prediction sets may hold the true class a few points less often than asked. Ask "
            "for a higher coverage, or set rows aside to calibrate with." * surer,
            numbers,
            "Use the probabilities of this model, not those of the bare classifier.",
        )
    return Finding("temperature", "ok", text, numbers)


def _at_bound(temperature: float, calibrator: Any) -> bool:
    bounds = getattr(calibrator, "bounds", None)
    if bounds is None:
        return False
    return bool(np.any(np.abs(np.log(temperature / np.asarray(bounds, float))) < _AT_BOUND))


def _confidence(held_out: HeldOut, clf: Any) -> Finding:
    confidence = held_out.proba.max(axis=1)
    gap = confidence - ~held_out.wrong
    mean = held_out.average(gap)
    sd = float(np.sqrt(held_out.average((gap - mean) ** 2) / held_out.total))
    numbers: dict[str, Number] = {
        "confidence": held_out.average(confidence),
        "accuracy": held_out.average(~held_out.wrong),
        "gap": mean,
        "gap_sd": sd,
    }
    text = (
        f"On held-out rows the classifier claims to be right in {held_out.average(confidence):.1%} "
        f"of cases and is right in {held_out.average(~held_out.wrong):.1%}."
    )
    if abs(mean) > max(_SIGMAS * sd, _GAP):
        return Finding(
            "classifier_overconfident" if mean > 0 else "classifier_timid",
            "warning" if mean > 0 else "note",
            f"{text} The gap is {abs(mean) / sd:.0f} standard deviations wide; a density does "
            "not repair confidence on known data.",
            numbers,
            _honest_confidence(clf, timid=mean < 0),
        )
    return Finding("classifier_confidence", "ok", text, numbers)


def _honest_confidence(clf: Any, *, timid: bool) -> str:
    """Remedy where confidence is not accuracy."""
    if not clf.has_evidence:
        return (
            "The probabilities of a baseline are its own: "
            f"DIPClassifier(FrozenEstimator({type(clf).__name__}(...))) calibrates them on rows "
            "that it has not seen."
        )
    if clf.evidence_.calibrator is not None:
        return "Leave calibrator=None, which fits a temperature."
    if timid:
        return (
            "A temperature sharpens only as far as held-out rows insist: hold out more, or use "
            "calibrator=Temperature(confidence=0)."
        )
    return _beyond_a_temperature(clf)


def _beyond_a_temperature(clf: Any) -> str:
    """Remedy where a temperature does not repair the probabilities."""
    if not hasattr(clf, "estimator"):
        return "A temperature is not enough for this network: train it with label smoothing."
    inner = clf.estimator
    inner = inner.estimator if isinstance(inner, FrozenEstimator) else inner
    if isinstance(inner, CalibratedClassifierCV) and inner.method == "isotonic":
        return "Neither temperature nor isotonic regression is enough: use another classifier."
    return (
        "A temperature is not enough for this classifier: calibrate it by "
        "CalibratedClassifierCV(estimator, method='isotonic')."
    )


def class_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Collapsed classes, false alarms by class, and by part of the density."""
    names = tuple(map(str, plain_labels(np.asarray(clf.classes_))))
    threshold = alarm_threshold(held_out.scores, clf.alarm_rate, held_out.weights)
    flagged, reachable = held_out.scores < threshold, np.isfinite(threshold)
    if held_out.labelled:
        k = len(names)
        rows = np.bincount(held_out.labels, weights=held_out.counts, minlength=k)
        predicted = np.bincount(held_out.proba.argmax(axis=1), weights=held_out.counts, minlength=k)
        hits = np.bincount(held_out.labels, weights=held_out.counts * ~held_out.wrong, minlength=k)
        yield _collapse(names, rows, predicted, hits)
        yield from _thin_classes(names, rows)
        if reachable:
            yield _alarms(held_out, clf, names, flagged)
    if reachable and clf.has_evidence:
        yield from _parts(held_out, clf.evidence_.density_, flagged)


def _collapse(names: Names, rows: np.ndarray, predicted: np.ndarray, hits: np.ndarray) -> Finding:
    """Judge by rows, predictions and hits of each class, (k,), if one takes all or is lost."""
    with np.errstate(invalid="ignore"):
        recall = hits / rows
    numbers: dict[str, Number] = {
        f"recall of {name}": float(r)
        for name, r in zip(names, recall, strict=True)
        if np.isfinite(r)
    }
    never = np.flatnonzero((rows >= _FEW_ROWS) & (predicted == 0))
    top = int(predicted.argmax())
    share, true_share = predicted[top] / rows.sum(), rows[top] / rows.sum()
    numbers["largest_predicted_share"] = float(share)
    remedy = "Weigh or resample the rare classes, or use another classifier."
    if share > _TAKES_ALL and share > true_share + _SURPLUS:
        return Finding(
            "one_class_takes_all",
            "warning",
            f"The classifier says {names[top]!r} for {share:.0%} of held-out rows, of "
            f"which {true_share:.0%} are.",
            numbers,
            remedy,
        )
    if len(never):
        return Finding(
            "class_never_predicted",
            "warning",
            f"{_subject(names, never)} never predicted on held-out rows, though "
            f"{int(rows[never].sum())} of them belong there.",
            numbers,
            remedy,
        )
    known = np.flatnonzero(rows > 0)
    hits = np.round(recall[known] * rows[known])
    upper = stats.beta.ppf(1 - _LEVEL / len(known), hits + 1, np.maximum(rows[known] - hits, 1e-9))
    weak = known[(upper < _LOW_RECALL) & (rows[known] >= _FEW_ROWS)]
    worst = int(known[recall[known].argmin()])
    text = f"Lowest recall on held-out rows: {recall[worst]:.0%}, of class {names[worst]!r}."
    if len(weak):
        return Finding(
            "class_nearly_lost",
            "note",
            f"{_subject(names, weak)} recognised in less than half of the cases. {text}",
            numbers,
            remedy,
        )
    return Finding("classes", "ok", f"Every class is predicted. {text}", numbers)


def _thin_classes(names: Names, rows: np.ndarray) -> Iterator[Finding]:
    thin = np.flatnonzero(rows < _FEW_ROWS)
    if len(thin):
        it, its = ("it", "its region looks") if len(thin) == 1 else ("them", "their regions look")
        yield Finding(
            "class_with_few_rows",
            "note",
            f"{_subject(names, thin)} held out fewer than {_FEW_ROWS} times: nothing can be said "
            f"about {it}, and {its} rare to the density.",
            {f"rows of {names[c]}": float(rows[c]) for c in thin},
            f"Collect more rows of {it}, and have {it} among the rows given to calibrate.",
        )


def _alarms(held_out: HeldOut, clf: Any, names: Names, flagged: np.ndarray) -> Finding:
    rate = clf.alarm_rate
    shares, p_values = _alarms_by_class(held_out, len(names), flagged)
    overall = held_out.average(flagged)
    numbers: dict[str, Number] = {"flagged": overall, "false_alarm_rate": rate}
    for name, share, p in zip(names, shares, p_values, strict=True):
        if np.isfinite(share):
            numbers[f"flagged of {name}"] = float(share)
            numbers[f"p_value of {name}"] = float(p)
    drives = np.flatnonzero((p_values < _LEVEL) & (shares > _MANY_TIMES * rate))
    worst = int(np.nanargmax(shares))
    text = (
        f"{overall:.1%} of held-out rows lie below the alarm threshold; of class "
        f"{names[worst]!r} {shares[worst]:.0%}, the most of any class."
    )
    if len(drives):
        return Finding(
            "class_drives_alarms",
            "note",
            f"{_subject(names, drives)} flagged far more often than others (p = "
            f"{p_values[drives].max():.1g} at most, after Holm's correction). {text}",
            numbers,
            "The rate of false alarms holds over all inputs, not within each class. More rows of "
            "that class even it out."
            + " Or a density with a covariance per class and shrinkage does."
            * clf.has_evidence,
        )
    return Finding("alarms_by_class", "ok", text, numbers)


def _alarms_by_class(
    held_out: HeldOut, k: int, flagged: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Share flagged of each class, and Fisher's p-value of more than elsewhere, by Holm; (k,)."""
    shares, p_values = np.full(k, np.nan), np.ones(k)
    for c in range(k):
        inside = held_out.labels == c
        if inside.any():
            table = [
                [int((flagged & part).sum()), int((~flagged & part).sum())]
                for part in (inside, ~inside)
            ]
            shares[c] = float(np.average(flagged[inside], weights=held_out.counts[inside]))
            p_values[c] = stats.fisher_exact(table, alternative="greater")[1]
    return shares, holm(p_values)


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values so that they hold together, by Holm (1979)."""
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps * p_values[order]), 1.0)
    return adjusted


def _parts(held_out: HeldOut, density: Any, flagged: np.ndarray) -> Iterator[Finding]:
    """Part of a density of several that is the lowest where inputs are flagged."""
    components, known = held_out.components, held_out.component_names
    # A selector may use one component of all that were scored.
    used = getattr(density, "component_names_", known)
    names = [name for name in known if name in used]
    if components is None or len(names) < 2 or flagged.sum() < _FEW_FLAGGED:
        return
    components = components[:, [known.index(name) for name in names]]
    ranks = stats.rankdata(components, axis=0)[flagged]
    lowest = np.bincount(ranks.argmin(axis=1), minlength=len(names)) / flagged.sum()
    top = int(lowest.argmax())
    numbers: dict[str, Number] = {
        f"lowest by {name}": float(share) for name, share in zip(names, lowest, strict=True)
    }
    text = (
        f"Of the flagged held-out rows {lowest[top]:.0%} are rarest by {names[top]!r}, out of "
        f"{len(names)} parts."
    )
    alone = lowest[top] > _DOMINANT
    yield Finding(
        "one_part_drives_alarms" if alone else "parts_share_alarms",
        "note" if alone else "ok",
        text,
        numbers,
        f"{names[top]!r} alone would be cheaper and say nearly the same." if alone else "",
    )


def _subject(names: Names, classes: np.ndarray) -> str:
    """The classes as the subject of a sentence, with its verb."""
    first = ", ".join(repr(names[c]) for c in classes[:_NAMED])
    more = f" and {len(classes) - _NAMED} more" if len(classes) > _NAMED else ""
    return f"Class {first} is" if len(classes) == 1 else f"Classes {first}{more} are"
