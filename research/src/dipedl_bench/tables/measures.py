"""The measures that the file of a suite names, evaluated: met, missed and where, or not run."""

from __future__ import annotations

from collections.abc import Iterator
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


#: The method whose rows hold the temperature of maximum likelihood, and where timid ends.
_SCALED, _TIMID = "temperature", 0.8
_MISSING = "the rows for it are missing"


def measures(table: BenchTable) -> list[Measure]:
    """Return every measure that the file of the suite names; none of a suite of your own."""
    entries = load_suite(table.suite).measures if table.suite in suite_names() else ()
    return [evaluate(entry, table) for entry in entries]


def evaluate(entry: MeasureEntry, table: BenchTable) -> Measure:
    """Return one measure."""
    if entry.what == "baselines":
        return _above_every_baseline(entry, table)
    pairs = pairs_of(entry.lines, table)
    judged = list(_judge_lines(entry, table, pairs))
    if not judged:
        return Measure(entry.statement, _MISSING, None)
    array = np.array([value for _, value, _ in judged])
    numbers = {name: float(getattr(np, name)(array)) for name in ("min", "max", "mean", "median")}
    if entry.what == "compare":
        other = _other(entry, table)
        ours, theirs = both(pairs, entry.metric, table.ours, other).mean(axis=1).tolist()
        numbers |= {"ours": ours, "theirs": theirs, "ratio": share(ours, theirs)}
        if entry.beside:
            beside = both(pairs, entry.metric, table.ours, entry.beside).mean(axis=1).tolist()
            numbers["beside"] = share(*beside)
    text = entry.found.format(**numbers)
    if entry.judged != "each":
        of_shares = entry.judged == "mean" and entry.by == "share"
        number = numbers["ratio" if of_shares else entry.judged]
        return Measure(entry.statement, text, entry.good(number))
    misses = tuple(
        f"{place}: {entry.miss.format(value=value)}{note}"
        for place, value, note in judged
        if not entry.good(value)
    )
    met = len(judged) - len(misses) >= entry.good_share * len(judged)
    return Measure(entry.statement, f"{text}; {len(misses)} of {len(judged)} miss", met, misses)


def pairs_of(kind: str, table: BenchTable) -> DataFrame:
    """Return the pairs that a measure with this value of `lines` is about."""
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


def _judge_lines(
    entry: MeasureEntry, table: BenchTable, pairs: DataFrame
) -> Iterator[tuple[str, float, str]]:
    """Yield each line, or what stands for some, with its number and what that comes from."""
    if entry.what == "compare":  # ours with another method's, on the pairs that both have
        ours, theirs = (values(pairs, entry.metric, n) for n in (table.ours, _other(entry, table)))
        for pair, a, b in zip(ours.index, ours, theirs, strict=True):
            if np.isfinite(a) and np.isfinite(b):
                number = share(a, b) if entry.by == "share" else a - b
                yield pair_title(pair), number, f" ({b:.4f} to {a:.4f})"
    elif entry.what == "value":  # the metric itself, of one data set and OOD set or of all
        column = (entry.metric, entry.method or table.ours)
        for pair, value in pairs.reindex(columns=[column]).iloc[:, 0].dropna().items():
            if pair[:2] == (entry.dataset or pair[0], entry.ood or pair[1]):
                yield pair_title(pair), value, ""
    elif entry.what == "earlier":  # mean by classifier, less that of an earlier default
        of_ours = pairs.reindex(columns=[(entry.metric, table.ours)]).iloc[:, 0]
        for classifier, before in entry.earlier.items():
            now = of_ours[of_ours.index.get_level_values("classifier") == classifier]
            if len(now) and now.notna().all():
                note = f" ({before:.3f} to {now.mean():.3f})"
                yield classifier, float(now.mean()) - before, note
    else:
        for pair, gap in regret(table, pairs).items():
            yield pair_title(pair), gap, ""


def _above_every_baseline(entry: MeasureEntry, table: BenchTable) -> Measure:
    """Also above the rankings of a baseline by other kinds of its uncertainty."""
    ours = values(table.pairs, entry.metric, table.ours)
    sign = 1 if is_higher_better(entry.metric) else -1
    behind, best, compared = [], -np.inf, False
    rivals = table.methods[table.methods["group"].isin(["bare", "baseline"])]
    for name, title in rivals["title"].items():
        pair = both(table.pairs, entry.metric, table.ours, str(name))
        if lines := pair.shape[1]:
            compared = True
            mean, other = pair.mean(axis=1)
            if lines == len(ours):
                best = max(best, sign * other)
            if sign * (mean - other) <= 0:
                behind.append(f"{title}: {mean:.3f} against {other:.3f} on {lines} lines")
    if not compared:
        return Measure(entry.statement, _MISSING, None)
    text = entry.found.format(mean=float(ours.mean()), best=sign * best)
    return Measure(entry.statement, "; ".join([text, *behind]), not behind)


def _other(entry: MeasureEntry, table: BenchTable) -> str:
    return table.bare if entry.against == "bare" else entry.against
