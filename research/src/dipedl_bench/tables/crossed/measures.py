"""The measures of a crossed suite, evaluated: met, missed and where, or not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...spec.entries import MeasureEntry
from ...spec.suite import load_suite, suite_names
from ..headline import is_higher_better
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


#: A line, or what stands for some, with its number, and what the number comes from.
Judged = tuple[object, float, str]
_COMPARED: Mapping[str, Callable[[float, float], float]] = {
    "difference": lambda ours, theirs: ours - theirs,
    "share": share,
}
#: The method whose rows hold the temperature of maximum likelihood, and where timid ends.
_SCALED, _TIMID = "temperature", 0.8


def measures(found: Crossed) -> list[Measure]:
    """Every measure that the file of the suite names; none of a suite of your own."""
    suite = found.table.suite
    entries = load_suite(suite).measures if suite in suite_names() else ()
    return [evaluated(entry, found) for entry in entries]


def evaluated(entry: MeasureEntry, found: Crossed) -> Measure:
    """One measure."""
    if entry.what == "baselines":
        return _above_every_baseline(entry, found)
    chosen = lines_of(entry.lines, found)
    judged = list(_JUDGED[entry.what](entry, chosen))
    if not judged:
        return Measure(entry.statement, "the rows for it are missing", None)
    values = np.array([value for _, value, _ in judged])
    numbers = {name: float(getattr(values, name)()) for name in ("min", "max", "mean")}
    numbers |= {"median": float(np.median(values)), **_means(entry, chosen)}
    text = entry.found.format(**numbers)
    if entry.judged == "mean":
        of_mean = numbers["ratio" if entry.by == "share" else "mean"]
        return Measure(entry.statement, text, entry.good(of_mean))
    bad = [one for one in judged if not entry.good(one[1])]
    misses = tuple(f"{place}: {entry.miss.format(value=v)}{note}" for place, v, note in bad)
    met = len(judged) - len(bad) >= entry.good_share * len(judged)
    return Measure(entry.statement, f"{text}; {len(bad)} of {len(judged)} miss", met, misses)


def lines_of(kind: str, found: Crossed) -> Crossed:
    """The lines that a measure with this value of `lines` is about."""
    return replace(found, pairs=tuple(filter(partial(_LINES[kind], found), found.pairs)))


def _temperature(found: Crossed, pair: Pair) -> float:
    """Return the temperature of temperature scaling; NaN where it was not run."""
    line = found.line(pair, _SCALED)
    return np.nan if line is None or line.temperature is None else line.temperature


def _measured_before(found: Crossed, pair: Pair) -> bool:
    known = load_suite(found.table.suite).datasets.get(pair.dataset)
    return known is not None and known.looked_at != "never"


_LINES: Mapping[str, Callable[[Crossed, Pair], bool]] = {
    "all": lambda found, pair: True,
    "timid": lambda found, pair: _temperature(found, pair) < _TIMID,
    "others": lambda found, pair: _temperature(found, pair) >= _TIMID,
    "earlier": _measured_before,
}


def _compared(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """Ours with another method's, on the pairs that both have."""
    other = _other(entry, found)
    for pair in found.of(entry.metric):
        ours, theirs = (found.value(pair, name, entry.metric) for name in (found.ours, other))
        if np.isfinite(ours) and np.isfinite(theirs):
            yield pair, _COMPARED[entry.by](ours, theirs), f" ({theirs:.4f} to {ours:.4f})"


def _valued(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """The metric itself, of one data set and OOD set or of all."""
    for pair in found.pairs:
        value = found.value(pair, entry.method or found.ours, entry.metric)
        asked = entry.dataset or pair.dataset, entry.ood or pair.ood
        if (pair.dataset, pair.ood) == asked and np.isfinite(value):
            yield pair, value, ""


def _earlier(entry: MeasureEntry, found: Crossed) -> Iterator[Judged]:
    """Mean metric by classifier, less that of an earlier default."""
    for classifier, before in entry.earlier.items():
        pairs = [pair for pair in found.pairs if pair.classifier == classifier]
        now = found.values(found.ours, entry.metric, pairs)
        if len(now) and np.isfinite(now).all():
            yield classifier, float(now.mean()) - before, f" ({before:.3f} to {now.mean():.3f})"


_JUDGED: Mapping[str, Callable[[MeasureEntry, Crossed], Iterator[Judged]]] = {
    "compare": _compared,
    "value": _valued,
    "regret": lambda _, found: ((pair, gap, "") for pair, gap in found.regret().items()),
    "earlier": _earlier,
}


def _above_every_baseline(entry: MeasureEntry, found: Crossed) -> Measure:
    """Also above the rankings of a baseline by other kinds of its uncertainty."""
    ours = found.values(found.ours, entry.metric)
    sign = 1 if is_higher_better(entry.metric) else -1
    behind, seen, compared = [], [], False
    for column in (c for c in found.columns if c.group in ("bare", "baseline")):
        theirs = found.values(column.name, entry.metric)
        both = np.isfinite(ours) & np.isfinite(theirs)
        if both.any():
            mean, other = ours[both].mean(), theirs[both].mean()
            seen += [other] if both.all() else []
            if sign * (mean - other) <= 0:
                lines = f"on {both.sum()} lines"
                behind.append(f"{column.title}: {mean:.3f} against {other:.3f} {lines}")
            compared = True
    if not compared:
        return Measure(entry.statement, "the rows for it are missing", None)
    best = sign * max((sign * other for other in seen), default=-np.inf)
    text = entry.found.format(mean=float(np.nanmean(ours)), best=best)
    return Measure(entry.statement, "; ".join([text, *behind]), not behind)


def _means(entry: MeasureEntry, found: Crossed) -> dict[str, float]:
    """Mean of both, over the pairs that both have, ours over theirs, and over a third method's."""
    if entry.what != "compare":
        return {}
    ours, theirs = _of_both(entry, found, _other(entry, found))
    means = {"ours": ours, "theirs": theirs, "ratio": share(ours, theirs)}
    return means | (
        {"beside": share(*_of_both(entry, found, entry.beside))} if entry.beside else {}
    )


def _of_both(entry: MeasureEntry, found: Crossed, other: str) -> tuple[float, float]:
    """Our mean and another method's, over the pairs that both have."""
    pairs = found.of(entry.metric)
    ours, theirs = (found.values(name, entry.metric, pairs) for name in (found.ours, other))
    both = np.isfinite(ours) & np.isfinite(theirs)
    if not both.any():
        return np.nan, np.nan
    return float(ours[both].mean()), float(theirs[both].mean())


def _other(entry: MeasureEntry, found: Crossed) -> str:
    return found.bare if entry.against == "bare" else entry.against
