"""Findings about the classifier: lost classes, false alarms by class, temperature, confidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from ..calibration.temperature import BOUNDS
from ..evidence import alarm_threshold
from ..held_out import HeldOut
from ..metrics import ece
from ..writing.finding import Finding, Number
from ..writing.numbers import plain_labels
from ..writing.wording import finding

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
    """Yield the temperature, and confidence against accuracy."""
    if not held_out.labelled:
        return
    # Files of before 0.2.0 hold no probabilities before the calibrator.
    known = held_out.bare_proba is not None
    if known and hasattr(clf.evidence_.calibrator_, "temperature_"):
        yield _temperature(held_out, clf)
    yield _confidence(held_out, clf)


def _temperature(held_out: HeldOut, clf: Any) -> Finding:
    temperature = float(clf.evidence_.calibrator_.temperature_)
    numbers: dict[str, Number] = {"temperature": temperature}
    for name, P in (("before", held_out.bare_proba), ("after", held_out.proba)):
        own = P[np.arange(len(P)), held_out.labels]
        numbers[f"nll_{name}"] = held_out.average(-np.log(np.maximum(own, _TINY)))
        numbers[f"ece_{name}"] = ece(held_out.labels, P)
    fitted = (
        "The classifier's temperature is {temperature:.3g}: held-out NLL {nll_before:.4f} before, "
        "{nll_after:.4f} after, ECE {ece_before:.3f} before, {ece_after:.3f} after."
    ).format_map(numbers)
    if (np.abs(np.log(temperature / np.array(BOUNDS))) < _AT_BOUND).any():
        return finding(
            "temperature_at_bound", numbers, fitted=fitted, beyond=_beyond_a_temperature(clf)
        )
    if _USUAL[0] <= temperature <= _USUAL[1]:
        return finding("temperature", numbers, fitted=fitted)
    refitted = held_out.origin == "left out" and not isinstance(
        getattr(clf, "estimator", None), FrozenEstimator
    )
    few = held_out.total < _FEW_PER_COLUMN * getattr(clf, "n_features_in_", 0)
    surer = (
        " Fitted to all rows it is surer still than in the folds, which have fewer: prediction "
        "sets may hold the true class a few points less often than asked. Ask for a higher "
        "coverage, or set rows aside to calibrate with."
    )
    return finding(
        "temperature_far_from_one",
        numbers,
        fitted=fitted,
        which="over" if temperature > 1 else "under",
        surer=surer * (temperature > 1 and few and refitted),
    )


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
    claim = (
        "On held-out rows the classifier claims to be right in {confidence:.1%} of cases and is "
        "right in {accuracy:.1%}."
    ).format_map(numbers)
    if abs(mean) <= max(_SIGMAS * sd, _GAP):
        return finding("classifier_confidence", numbers, claim=claim)
    return finding(
        "classifier_overconfident" if mean > 0 else "classifier_timid",
        numbers,
        claim=claim,
        wide=f"The gap is {abs(mean) / sd:.0f} standard deviations wide; a density does not repair "
        "confidence on known data.",
        honest=_honest_confidence(clf, timid=mean < 0),
    )


def _honest_confidence(clf: Any, *, timid: bool) -> str:
    """Return the remedy where confidence is not accuracy."""
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
    """Return the remedy where a temperature does not repair the probabilities."""
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
    """Yield collapsed classes, false alarms by class, and by part of the density."""
    names = tuple(map(str, plain_labels(np.asarray(clf.classes_))))
    threshold = alarm_threshold(held_out.scores, clf.alarm_rate, held_out.weights)
    flagged, reachable = held_out.scores < threshold, np.isfinite(threshold)
    if held_out.labelled:
        rows = np.bincount(held_out.labels, weights=held_out.counts, minlength=len(names))
        yield _collapse(held_out, names, rows)
        if len(thin := np.flatnonzero(rows < _FEW_ROWS)):
            numbers: dict[str, Number] = {f"rows of {names[c]}": float(rows[c]) for c in thin}
            yield finding(
                "class_with_few_rows", numbers, classes=_subject(names, thin), few=_FEW_ROWS
            )
        if reachable:
            yield _alarms(held_out, clf, names, flagged)
    if reachable and clf.has_evidence:
        yield from _parts(held_out, clf.evidence_.density_, flagged)


def _collapse(held_out: HeldOut, names: Names, rows: np.ndarray) -> Finding:
    """Judge by the held-out rows of each class (k,) if one takes all or is lost."""
    counts, k = held_out.counts, len(names)
    predicted = np.bincount(held_out.proba.argmax(axis=1), weights=counts, minlength=k)
    hits = np.bincount(held_out.labels, weights=counts * ~held_out.wrong, minlength=k)
    known = np.flatnonzero(rows > 0)
    recall = hits[known] / rows[known]
    numbers: dict[str, Number] = {
        f"recall of {names[c]}": float(r) for c, r in zip(known, recall, strict=True)
    }
    top = int(predicted.argmax())
    share, true_share = predicted[top] / rows.sum(), rows[top] / rows.sum()
    numbers["largest_predicted_share"] = float(share)
    if share > _TAKES_ALL and share > true_share + _SURPLUS:
        return finding("one_class_takes_all", numbers, top=names[top], true_share=true_share)
    if len(never := np.flatnonzero((rows >= _FEW_ROWS) & (predicted == 0))):
        count = int(rows[never].sum())
        return finding(
            "class_never_predicted", numbers, classes=_subject(names, never), count=count
        )
    whole = np.round(hits[known])
    upper = stats.beta.ppf(
        1 - _LEVEL / len(known), whole + 1, np.maximum(rows[known] - whole, 1e-9)
    )
    weak = known[(upper < _LOW_RECALL) & (rows[known] >= _FEW_ROWS)]
    worst = int(recall.argmin())
    lowest = (
        f"Lowest recall on held-out rows: {recall[worst]:.0%}, of class {names[known[worst]]!r}."
    )
    if len(weak):
        return finding("class_nearly_lost", numbers, classes=_subject(names, weak), lowest=lowest)
    return finding("classes", numbers, lowest=lowest)


def _alarms(held_out: HeldOut, clf: Any, names: Names, flagged: np.ndarray) -> Finding:
    shares, p_values = _alarms_by_class(held_out, len(names), flagged)
    numbers: dict[str, Number] = {
        "flagged": held_out.average(flagged),
        "false_alarm_rate": clf.alarm_rate,
    }
    for name, share, p in zip(names, shares, p_values, strict=True):
        if np.isfinite(share):
            numbers |= {f"flagged of {name}": float(share), f"p_value of {name}": float(p)}
    worst = int(np.nanargmax(shares))
    alarms = (
        f"{numbers['flagged']:.1%} of held-out rows lie below the alarm threshold; of class "
        f"{names[worst]!r} {shares[worst]:.0%}, the most of any class."
    )
    drives = np.flatnonzero((p_values < _LEVEL) & (shares > _MANY_TIMES * clf.alarm_rate))
    if not len(drives):
        return finding("alarms_by_class", numbers, alarms=alarms)
    return finding(
        "class_drives_alarms",
        numbers,
        classes=_subject(names, drives),
        largest_p=p_values[drives].max(),
        alarms=alarms,
        or_shrink=" Or a density with a covariance per class and shrinkage does."
        * clf.has_evidence,
    )


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
    """Yield which part of a density of several is the lowest where inputs are flagged."""
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
    yield finding(
        "one_part_drives_alarms" if lowest[top] > _DOMINANT else "parts_share_alarms",
        {f"lowest by {name}": float(share) for name, share in zip(names, lowest, strict=True)},
        top=names[top],
        parts=f"Of the flagged held-out rows {lowest[top]:.0%} are rarest by {names[top]!r}, out "
        f"of {len(names)} parts.",
    )


def _subject(names: Names, classes: np.ndarray) -> str:
    """Return the classes as the subject of a sentence, with its verb."""
    first = ", ".join(repr(names[c]) for c in classes[:_NAMED])
    more = f" and {len(classes) - _NAMED} more" if len(classes) > _NAMED else ""
    return f"Class {first} is" if len(classes) == 1 else f"Classes {first}{more} are"
