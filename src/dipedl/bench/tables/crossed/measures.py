"""The measures of a crossed suite, evaluated: met, missed and where, or not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ...spec.entries import MeasureEntry
from ...spec.suite import load_suite, suite_names
from .pairs import Crossed, Pair, share


@dataclass(frozen=True)
class Measure:
    """A statement, what came out in numbers, and each miss with its number.

    `met` is None where the rows for it are missing.
    """

    statement: str
    found: str
    met: bool | None
    misses: tuple[str, ...] = ()


#: A pair with its number, and what the number comes from.
Judged = tuple[Pair, float, str]
_COMPARED: Mapping[str, Callable[[float, float], float]] = {
    "difference": lambda ours, theirs: ours - theirs,
    "share": share,
    "excess": lambda ours, theirs: share(ours, theirs) - 1,
}


def measures(found: Crossed) -> list[Measure]:
    """Every measure that the file of the suite names; none of a suite of your own."""
    suite = found.table.suite
    entries = load_suite(suite).measures if suite in suite_names() else ()
    return [evaluated(entry, found) for entry in entries]


def evaluated(entry: MeasureEntry, found: Crossed) -> Measure:
    """One measure."""
    if entry.what == "baselines":
        return _above_every_baseline(entry, found)
    judged = list(_JUDGED[entry.what](entry, found))
    if not judged:
        return Measure(entry.statement, "the rows for it are missing", None)
    values = np.array([value for _, value, _ in judged])
    numbers = {name: float(getattr(values, name)()) for name in ("min", "max", "mean")}
    numbers |= {"median": float(np.median(values)), **_means(entry, found)}
    bad = [one for one in judged if not entry.good(one[1])]
    misses = tuple(f"{pair}: {entry.miss.format(value=v)}{note}" for pair, v, note in bad)
    text = f"{entry.found.format(**numbers)}; {len(bad)} of {len(judged)} miss"
    of_mean = numbers["mean" if entry.by == "difference" else "ratio"]
    met = not bad if entry.judged == "each" else entry.good(of_mean)
    return Measure(entry.statement, text, met, misses)


def _compared(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """Ours with another method's, on the pairs that both have."""
    other = _other(entry, found)
    for pair in found.of(entry.metric):
        ours, theirs = (found.value(pair, name, entry.metric) for name in (found.ours, other))
        if np.isfinite(ours) and np.isfinite(theirs):
            yield pair, _COMPARED[entry.by](ours, theirs), f" ({theirs:.4f} to {ours:.4f})"


def _valued(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """The metric itself, on a data set and an OOD set."""
    for pair in found.pairs:
        value = found.value(pair, found.ours, entry.metric)
        if (pair.dataset, pair.ood) == (entry.dataset, entry.ood) and np.isfinite(value):
            yield pair, value, ""


def _regrets(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    for pair, value in found.regret().items():
        yield pair, value, ""


def _fit_costs(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """Our fit over what is allowed, classifier included."""
    for pair in found.known():
        value = _fit_share(entry, found, pair)
        if np.isfinite(value):
            yield pair, value, ""


def _prediction_costs(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """Our prediction over that of another method, less one."""
    for pair in found.known():
        ours, theirs = (_spent(found, pair, m) for m in (found.ours, _other(entry, found)))
        if ours and theirs and theirs["predict"] > 0:
            yield pair, ours["predict"] / theirs["predict"] - 1, ""


_JUDGED: Mapping[str, Callable[[MeasureEntry, Crossed], Iterator[Judged]]] = {
    "compare": _compared,
    "value": _valued,
    "regret": _regrets,
    "fit_cost": _fit_costs,
    "prediction_cost": _prediction_costs,
}


def _above_every_baseline(entry: MeasureEntry, found: Crossed) -> Measure:
    ours = found.values(found.ours, entry.metric)
    behind, seen = [], []
    for name in (column.name for column in found.named("bare", "baseline")):
        theirs = found.values(name, entry.metric)
        both = np.isfinite(ours) & np.isfinite(theirs)
        if both.any():
            mean, other = ours[both].mean(), theirs[both].mean()
            seen.append(other if both.all() else -np.inf)
            if mean <= other:
                behind.append(f"{name}: {mean:.3f} against {other:.3f} on {both.sum()} lines")
    if not seen:
        return Measure(entry.statement, "the rows for it are missing", None)
    text = entry.found.format(mean=float(np.nanmean(ours)), best=max(seen))
    return Measure(entry.statement, text, not behind, tuple(behind))


def _means(entry: MeasureEntry, found: Crossed) -> dict[str, float]:
    """Mean over mean, as the measure compares, and of the cost without the classifier's own."""
    if entry.what == "fit_cost":
        alone = [_fit_share(entry, found, pair, density_only=True) for pair in found.known()]
        return {"density": float(np.nanmean(alone))}
    if entry.what != "compare" or entry.by == "difference":
        return {}
    others = {"ratio": _other(entry, found), "beside": entry.beside}
    return {name: _over_all(entry, found, other) for name, other in others.items() if other}


def _over_all(entry: MeasureEntry, found: Crossed, other: str) -> float:
    """Our mean compared with another method's, over the pairs that both have."""
    pairs = found.of(entry.metric)
    ours, theirs = (found.values(name, entry.metric, pairs) for name in (found.ours, other))
    both = np.isfinite(ours) & np.isfinite(theirs)
    if not both.any():
        return np.nan
    return _COMPARED[entry.by](float(ours[both].mean()), float(theirs[both].mean()))


def _fit_share(
    entry: MeasureEntry, found: Crossed, pair: Pair, *, density_only: bool = False
) -> float:
    """Our fit over what is allowed: some fits of another method, and a pass for each candidate."""
    ours, single = (_spent(found, pair, m) for m in (found.ours, _other(entry, found)))
    if not ours or not single:
        return np.nan
    bare = _spent(found, pair, found.bare)
    candidates = [_spent(found, pair, column.name) for column in found.named("candidate")]
    passes = sum(
        max(spent["predict"] - bare["predict"], 0.0) * spent["rows"]
        for spent in candidates
        if spent
    )
    own, allowed = (s["train"] - density_only * s["classifier"] for s in (ours, single))
    return float(own / (entry.times * allowed + passes))


def _other(entry: MeasureEntry, found: Crossed) -> str:
    return found.bare if entry.against == "bare" else entry.against


def _spent(found: Crossed, pair: Pair, method: str) -> Mapping[str, float]:
    line = found.line(pair, method)
    return {} if line is None else line.spent
