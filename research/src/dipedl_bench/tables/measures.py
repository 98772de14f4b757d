"""The measures that the file of a suite names, evaluated: met, missed and where, or not run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..spec.suite import MeasureEntry, load_suite, suite_names
from .pairs import both, pair_title, regret, share, values
from .table import BenchTable, is_higher_better

if TYPE_CHECKING:
    from pandas import DataFrame


class Measure(NamedTuple):
    """A statement, what came out in numbers, and each miss with its number.

    `met` is None where the rows for it are missing.
    """

    statement: str
    found: str
    met: bool | None
    misses: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        return "not run" if self.met is None else "met" if self.met else "missed"

    @property
    def line(self) -> str:
        """Verdict, statement and what came out."""
        return f"- **{self.verdict}**: {self.statement}. Found: {self.found}."


#: A line, or what stands for some, with its number, and what the number comes from.
Judged = Iterator[tuple[str, float, str]]
#: The method whose rows hold the temperature of maximum likelihood, and where timid ends.
_SCALED, _TIMID = "temperature", 0.8


def measures(table: BenchTable) -> list[Measure]:
    """Every measure that the file of the suite names; none of a suite of your own."""
    entries = load_suite(table.suite).measures if table.suite in suite_names() else ()
    return [evaluate(entry, table) for entry in entries]


def evaluate(entry: MeasureEntry, table: BenchTable) -> Measure:
    """One measure."""
    if entry.what == "baselines":
        return _above_every_baseline(entry, table)
    pairs = pairs_of(entry.lines, table)
    judged = list(_JUDGED[entry.what](entry, table, pairs))
    if not judged:
        return Measure(entry.statement, "the rows for it are missing", None)
    numbers = _numbers(entry, table, pairs, np.array([value for _, value, _ in judged]))
    text = entry.found.format(**numbers)
    if entry.judged == "mean":
        of_mean = numbers["ratio" if entry.by == "share" else "mean"]
        return Measure(entry.statement, text, entry.good(of_mean))
    bad = [one for one in judged if not entry.good(one[1])]
    misses = tuple(f"{place}: {entry.miss.format(value=v)}{note}" for place, v, note in bad)
    met = len(judged) - len(bad) >= entry.good_share * len(judged)
    return Measure(entry.statement, f"{text}; {len(bad)} of {len(judged)} miss", met, misses)


def pairs_of(kind: str, table: BenchTable) -> DataFrame:
    """The pairs that a measure with this value of `lines` is about."""
    pairs = table.pairs
    if kind == "all":
        return pairs
    if kind == "earlier":
        before = load_suite(table.suite).datasets
        names = [name for name, data in before.items() if data.looked_at != "never"]
        return pairs[pairs.index.isin(names, level="dataset")]
    lines = (table.by_place.get((data, classifier, _SCALED)) for data, _, classifier in pairs.index)
    temperatures = np.array([line and line.temperature for line in lines], dtype=float)
    return pairs[temperatures < _TIMID if kind == "timid" else temperatures >= _TIMID]


def _compared(entry: MeasureEntry, table: BenchTable, pairs: DataFrame) -> Judged:
    """Ours with another method's, on the pairs that both have."""
    ours, theirs = (values(pairs, entry.metric, n) for n in (table.ours, _other(entry, table)))
    for pair, a, b in zip(ours.index, ours, theirs, strict=True):
        if np.isfinite(a) and np.isfinite(b):
            judged = share(a, b) if entry.by == "share" else a - b
            yield pair_title(pair), judged, f" ({b:.4f} to {a:.4f})"


def _valued(entry: MeasureEntry, table: BenchTable, pairs: DataFrame) -> Judged:
    """The metric itself, of one data set and OOD set or of all."""
    name = entry.method or table.ours
    for pair, row in pairs.reindex(columns=[(entry.metric, name)]).iterrows():
        asked = entry.dataset or pair[0], entry.ood or pair[1]
        if pair[:2] == asked and np.isfinite(row.iloc[0]):
            yield pair_title(pair), row.iloc[0], ""


def _earlier(entry: MeasureEntry, table: BenchTable, pairs: DataFrame) -> Judged:
    """Mean metric by classifier, less that of an earlier default."""
    for classifier, before in entry.earlier.items():
        rows = pairs[pairs.index.get_level_values("classifier") == classifier]
        now = rows.reindex(columns=[(entry.metric, table.ours)]).to_numpy()
        if len(now) and np.isfinite(now).all():
            yield classifier, float(now.mean()) - before, f" ({before:.3f} to {now.mean():.3f})"


def _regret(entry: MeasureEntry, table: BenchTable, pairs: DataFrame) -> Judged:
    for pair, gap in regret(table, pairs).items():
        yield pair_title(pair), gap, ""


_JUDGED: Mapping[str, Callable[[MeasureEntry, BenchTable, DataFrame], Judged]] = {
    "compare": _compared,
    "value": _valued,
    "regret": _regret,
    "earlier": _earlier,
}


def _numbers(
    entry: MeasureEntry, table: BenchTable, pairs: DataFrame, judged: np.ndarray
) -> dict[str, float]:
    """Numbers that a statement names; of a comparison the means where both methods have one."""
    numbers = {name: float(getattr(judged, name)()) for name in ("min", "max", "mean")}
    numbers["median"] = float(np.median(judged))
    if entry.what != "compare":
        return numbers
    means = {
        other: both(pairs, entry.metric, table.ours, other).mean(axis=1).tolist()
        for other in (_other(entry, table), entry.beside)
        if other
    }
    ours, theirs = means[_other(entry, table)]
    numbers |= {"ours": ours, "theirs": theirs, "ratio": share(ours, theirs)}
    return numbers | ({"beside": share(*means[entry.beside])} if entry.beside else {})


def _above_every_baseline(entry: MeasureEntry, table: BenchTable) -> Measure:
    """Also above the rankings of a baseline by other kinds of its uncertainty."""
    ours = values(table.pairs, entry.metric, table.ours)
    sign = 1 if is_higher_better(entry.metric) else -1
    behind, best, compared = [], -np.inf, False
    rivals = table.methods[table.methods["group"].isin(["bare", "baseline"])]
    for name, title in rivals["title"].items():
        found = both(table.pairs, entry.metric, table.ours, str(name))
        if lines := found.shape[1]:
            compared = True
            mean, other = found.mean(axis=1)
            if lines == len(ours):
                best = max(best, sign * other)
            if sign * (mean - other) <= 0:
                behind.append(f"{title}: {mean:.3f} against {other:.3f} on {lines} lines")
    if not compared:
        return Measure(entry.statement, "the rows for it are missing", None)
    text = entry.found.format(mean=float(np.nanmean(ours)), best=sign * best)
    return Measure(entry.statement, "; ".join([text, *behind]), not behind)


def _other(entry: MeasureEntry, table: BenchTable) -> str:
    return table.bare if entry.against == "bare" else entry.against
