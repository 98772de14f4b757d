"""Which class is lost, which takes all, and which class or part of the density drives alarms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from ..calibration.held_out import HeldOut
from ..evidence import alarm_threshold
from ..writing.finding import Finding, Number
from ..writing.numbers import plain_labels
from ._remedies import equal_alarms

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

Names = tuple[str, ...]


def class_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """Collapsed classes, false alarms by class, and by part of the density."""
    names, rate = (
        tuple(map(str, plain_labels(np.asarray(clf.classes_)))),
        clf._alarm_rate,
    )
    flagged = held.scores < alarm_threshold(held.scores, rate, held.weights)
    reachable = np.isfinite(alarm_threshold(held.scores, rate, held.weights))
    if held.labelled:
        yield _collapse(held, names)
        yield from _thin_classes(held, names)
        if reachable:
            yield _alarms(held, clf, names, flagged)
    if reachable and clf._has_evidence:
        yield from _parts(held, clf.evidence_.density_, flagged)


def _collapse(held: HeldOut, names: Names) -> Finding:
    rows, predicted, recall = _by_class(held, names)
    n = rows.sum()
    numbers: dict[str, Number] = {
        f"recall of {name}": float(r)
        for name, r in zip(names, recall, strict=True)
        if np.isfinite(r)
    }
    never = np.flatnonzero((rows >= _FEW_ROWS) & (predicted == 0))
    top = int(predicted.argmax())
    share, true_share = predicted[top] / n, rows[top] / n
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
    return _recall(names, rows, recall, numbers, remedy)


def _recall(
    names: Names,
    rows: np.ndarray,
    recall: np.ndarray,
    numbers: dict[str, Number],
    remedy: str,
) -> Finding:
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


def _thin_classes(held: HeldOut, names: Names) -> Iterator[Finding]:
    rows, _, _ = _by_class(held, names)
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


def _by_class(held: HeldOut, names: Names) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Held-out inputs, predictions and recall of each class, shapes (k,)."""
    k = len(names)
    rows = np.bincount(held.labels, weights=held.counts, minlength=k)
    predicted = np.bincount(held.proba.argmax(axis=1), weights=held.counts, minlength=k)
    hits = np.bincount(held.labels, weights=held.counts * ~held.wrong, minlength=k)
    with np.errstate(invalid="ignore"):
        return rows, predicted, hits / rows


def _alarms(held: HeldOut, clf: Any, names: Names, flagged: np.ndarray) -> Finding:
    rate = clf._alarm_rate
    shares, p_values = _alarms_by_class(held, len(names), flagged)
    overall = held.average(flagged)
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
            equal_alarms(clf),
        )
    return Finding("alarms_by_class", "ok", text, numbers)


def _alarms_by_class(held: HeldOut, k: int, flagged: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share flagged of each class, and Fisher's p-value of more than elsewhere, by Holm; (k,)."""
    shares, p_values = np.full(k, np.nan), np.ones(k)
    for c in range(k):
        inside = held.labels == c
        if inside.any():
            table = [
                [int((flagged & part).sum()), int((~flagged & part).sum())]
                for part in (inside, ~inside)
            ]
            shares[c] = float(np.average(flagged[inside], weights=held.counts[inside]))
            p_values[c] = stats.fisher_exact(table, alternative="greater")[1]
    return shares, _holm(p_values)


def _holm(p_values: np.ndarray) -> np.ndarray:
    """p-values that hold together, by Holm (1979)."""
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps * p_values[order]), 1.0)
    return adjusted


def _parts(held: HeldOut, density: Any, flagged: np.ndarray) -> Iterator[Finding]:
    """Which part of a density of several is the lowest where inputs are flagged."""
    components, known = held.components, held.component_names
    # A selector may use one component of all that were scored.
    used = getattr(density, "component_names_", known)
    names = [name for name in known if name in used]
    if components is None or len(names) < 2:
        return
    components = components[:, [known.index(name) for name in names]]
    if flagged.sum() < _FEW_FLAGGED:
        return
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
    shown = ", ".join(repr(names[c]) for c in classes[:_NAMED])
    more = f" and {len(classes) - _NAMED} more" if len(classes) > _NAMED else ""
    return f"Class {shown} is" if len(classes) == 1 else f"Classes {shown}{more} are"
