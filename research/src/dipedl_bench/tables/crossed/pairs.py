"""A table of a crossed suite by pairs: data set, OOD set and classifier, methods side by side.

All methods of a pair were given the same classifier, so differences between them are differences of
the methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dipedl.writing.numbers import plain

from ...spec.entries import GROUPS
from ..cells import Cell
from ..table import BenchTable, Line

#: Metrics of an OOD set; all others are of a data set and a classifier alone.
OF_PAIR = ("auroc", "aupr", "fpr95", "brier_ood")


@dataclass(frozen=True, order=True)
class Pair:
    """A known data set, an OOD set, and a classifier: names."""

    dataset: str
    ood: str
    classifier: str

    @property
    def place(self) -> str:
        """Data set and classifier."""
        return f"{self.dataset}, {self.classifier}"

    def __str__(self) -> str:
        return f"{self.dataset} / {self.ood}, {self.classifier}"


@dataclass(frozen=True)
class Column:
    """A method: its name, title and group."""

    name: str
    title: str
    group: str


@dataclass(frozen=True)
class Crossed:
    """The numbers of a crossed suite by pair and method.

    `pairs` are in order of the rows; `columns` are the methods by group, other kinds of uncertainty
    behind their method.
    """

    table: BenchTable
    pairs: tuple[Pair, ...]
    columns: tuple[Column, ...]

    @cached_property
    def lines(self) -> Mapping[tuple[str, str, str], Line]:
        """Lines of the table by data set, classifier and method."""
        return {(line.dataset, line.classifier, line.name): line for line in self.table.lines}

    @property
    def bare(self) -> str:
        """Name of the method that all are compared with."""
        return next(column.name for column in self.columns if column.group == "bare")

    @property
    def ours(self) -> str:
        """Name of the method that the suite is about."""
        return next((column.name for column in self.named("ours")), "")

    def named(self, *groups: str) -> list[Column]:
        """Methods of groups; rows of other kinds of a method's uncertainty are not among them."""
        return [
            c for group in groups for c in self.columns if c.group == group and ":" not in c.name
        ]

    def line(self, pair: Pair, method: str) -> Line | None:
        """The line of a method; None if it was not run there."""
        return self.lines.get((pair.dataset, pair.classifier, method))

    def cell(self, pair: Pair, method: str, metric: str) -> Cell | None:
        """A cell; a metric of an OOD set is named without it."""
        line = self.line(pair, method)
        name = f"{metric}/{pair.ood}" if metric in OF_PAIR else metric
        return None if line is None else line.cells.get(name)

    def value(self, pair: Pair, method: str, metric: str) -> float:
        """Mean of a cell; NaN if there is none."""
        found = self.cell(pair, method, metric)
        return np.nan if found is None else found.mean

    def values(self, method: str, metric: str, pairs: Iterable[Pair] | None = None) -> np.ndarray:
        """Means of a method on pairs (all), NaN where there is none."""
        chosen = self.pairs if pairs is None else pairs
        return np.array([self.value(pair, method, metric) for pair in chosen])

    def of(self, metric: str) -> Sequence[Pair]:
        """Pairs for a metric: all, or one for each data set and classifier if it has no OOD set."""
        if metric in OF_PAIR:
            return self.pairs
        first = {(pair.dataset, pair.classifier): pair for pair in reversed(self.pairs)}
        return [pair for pair in self.pairs if first[pair.dataset, pair.classifier] is pair]

    def known(self) -> Sequence[Pair]:
        """One pair for each data set and classifier."""
        return self.of("")

    def regret(self) -> dict[Pair, float]:
        """By pair, the best candidate's AUROC, chosen with the OOD labels, less ours."""
        found = {}
        for pair in self.pairs:
            values = [self.value(pair, column.name, "auroc") for column in self.named("candidate")]
            there = [value for value in values if np.isfinite(value)]
            own = self.value(pair, self.ours, "auroc")
            if there and np.isfinite(own):
                found[pair] = max(there) - own
        return found

    def as_json(self) -> list[dict[str, Any]]:
        """The summary of every method, as plain values."""
        return [plain(vars(summary(self, column.name))) for column in self.columns]


def crossed(table: BenchTable) -> Crossed:
    """The table of a crossed suite by pairs."""
    pairs = (
        Pair(line.dataset, ood, line.classifier)
        for line in table.lines
        if not line.refused
        for ood in line.ood
    )
    columns = {line.name: Column(line.name, line.title, line.group) for line in table.lines}
    by_group = sorted(columns.values(), key=lambda column: GROUPS.index(column.group))
    return Crossed(table, tuple(dict.fromkeys(pairs)), tuple(by_group))


@dataclass(frozen=True)
class Summary:
    """A method over the pairs that both it and the bare classifier have; `lines` is their number.

    `worst` is the lowest difference to the bare classifier's AUROC, at `worst_at`; `brier_ratio`
    the mean OOD Brier over the bare classifier's, `brier_cost` the same of the ID Brier, less one;
    `error_auroc` the mean AUROC of spotting the classifier's own errors.
    """

    method: str
    lines: int
    auroc: float
    auroc_bare: float
    worst: float
    worst_at: str
    brier_ratio: float
    brier_cost: float
    error_auroc: float


def summary(found: Crossed, method: str) -> Summary:
    """Means of a method over the pairs that both it and the bare classifier have."""
    bare = found.bare
    both = found.values(method, "auroc") + found.values(bare, "auroc")
    pairs = [pair for pair, there in zip(found.pairs, np.isfinite(both), strict=True) if there]
    if not pairs:
        nan = np.nan
        return Summary(method, 0, nan, nan, nan, "", nan, nan, nan)
    places = {pair.place for pair in pairs}
    known = [pair for pair in found.known() if pair.place in places]
    gap = found.values(method, "auroc", pairs) - found.values(bare, "auroc", pairs)
    errors = found.values(method, "error_auroc", known)
    return Summary(
        method=method,
        lines=len(pairs),
        auroc=_mean(found.values(method, "auroc", pairs)),
        auroc_bare=_mean(found.values(bare, "auroc", pairs)),
        worst=float(gap.min()),
        worst_at=str(pairs[int(gap.argmin())]),
        brier_ratio=_ratio(found, method, "brier_ood", pairs),
        brier_cost=_ratio(found, method, "brier_id", known) - 1,
        error_auroc=_mean(errors[np.isfinite(errors)]),
    )


def share(ours: float, theirs: float) -> float:
    """Ours over theirs, errors both; where theirs is zero, 1 for as good and infinity for worse."""
    if theirs == 0:
        return 1.0 if ours == 0 else np.inf
    return ours / theirs


def _ratio(found: Crossed, method: str, metric: str, pairs: Sequence[Pair]) -> float:
    """Mean of a method over mean of the bare classifier."""
    ours, bare = (_mean(found.values(name, metric, pairs)) for name in (method, found.bare))
    return share(ours, bare)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan
