"""The study's numbers: a cell for every pair of data, classifier and method, and their summaries.

A pair is a known data set with one foreign set. A line is a pair with a classifier; all methods on
a line had the same classifiers, so differences between them are differences of the methods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..results.scores import OOD_PREFIX
from ..tables.cells import Cell, cell_over_seeds
from ..tables.table import latest_by
from .study import GROUPS

__all__ = ["Column", "Line", "StudyTable", "Summary", "share", "study_table", "summary"]

#: Of a data set and a classifier, without a foreign set.
OF_KNOWN = ("accuracy", "brier_id", "nll", "ece", "adaptive_ece", "error_auroc")
#: Of a pair.
OF_PAIR = ("auroc", "aupr", "fpr95", "brier_ood")


@dataclass(frozen=True, order=True)
class Line:
    """A known data set, a foreign one, and a classifier: names."""

    dataset: str
    ood: str
    classifier: str

    def __str__(self) -> str:
        return f"{self.dataset} / {self.ood}, {self.classifier}"


@dataclass(frozen=True)
class Column:
    """A method: its name, title and group."""

    name: str
    title: str
    group: str


@dataclass(frozen=True)
class StudyTable:
    """All numbers of a study.

    Attributes
    ----------
    study, profile : str
        Names.
    lines : tuple of Line
        In order of the rows.
    columns : tuple of Column
        Methods, in order of the rows.
    cells : mapping of (dataset, classifier, method) to mapping of str to Cell
        Metrics over seeds, such as "brier_id" and "auroc/kmnist".
    refused : mapping of (dataset, classifier, method) to str
        Why a method gave no answer.
    costs : mapping of (dataset, classifier, method) to mapping of str to float
        Mean processor seconds: "fit", of that "classifier", "predict" and "score"; and "rows", the
        rows fitted on over those scored.
    seeds : mapping of (dataset, classifier, method) to tuple of int
        Seeds behind a cell.
    chosen : mapping of (dataset, classifier, method) to tuple of str
        What a selection chose, by seed.
    """

    study: str
    profile: str
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[str, str, str], Mapping[str, Cell]]
    refused: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    costs: Mapping[tuple[str, str, str], Mapping[str, float]] = field(default_factory=dict)
    seeds: Mapping[tuple[str, str, str], tuple[int, ...]] = field(default_factory=dict)
    chosen: Mapping[tuple[str, str, str], tuple[str, ...]] = field(default_factory=dict)

    @property
    def bare(self) -> str:
        """Name of the method that all are compared with."""
        return next(column.name for column in self.columns if column.group == "bare")

    def named(self, group: str) -> list[Column]:
        """Methods of a group; rows of other kinds of a method's uncertainty are not among them."""
        return [c for c in self.columns if c.group == group and ":" not in c.name]

    def cell(self, line: Line, method: str, metric: str) -> Cell | None:
        """A cell of a line; a metric of a pair is named without the foreign set."""
        name = f"{metric}/{line.ood}" if metric in OF_PAIR else metric
        return self.cells.get((line.dataset, line.classifier, method), {}).get(name)

    def value(self, line: Line, method: str, metric: str) -> float:
        """Mean of a cell; NaN if there is none."""
        found = self.cell(line, method, metric)
        return np.nan if found is None else found.mean

    def values(self, method: str, metric: str, lines: Iterable[Line] | None = None) -> np.ndarray:
        """Means of a method on lines (all), NaN where there is none."""
        chosen = self.lines if lines is None else lines
        return np.array([self.value(line, method, metric) for line in chosen])

    def known(self) -> list[Line]:
        """One line for each data set and classifier: for metrics that have no foreign set."""
        first = {(line.dataset, line.classifier): line for line in reversed(self.lines)}
        return [line for line in self.lines if first[line.dataset, line.classifier] is line]

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "study": self.study,
            "profile": self.profile,
            "cells": [
                {
                    "dataset": dataset,
                    "classifier": classifier,
                    "method": method,
                    "seeds": list(self.seeds[dataset, classifier, method]),
                    "metrics": {name: cell.as_json() for name, cell in cells.items()},
                }
                for (dataset, classifier, method), cells in self.cells.items()
            ],
            "refused": [[*key, reason] for key, reason in self.refused.items()],
            "summary": [_plain(summary(self, column.name)) for column in self.columns],
        }


@dataclass(frozen=True)
class Summary:
    """A method over all lines on which it and the bare classifier gave an answer.

    Attributes
    ----------
    method : str
        Name.
    lines : int
        How many lines.
    auroc, auroc_bare : float
        Mean AUROC, and that of the bare classifier on the same lines.
    worst, worst_at : float, str
        Lowest difference to the bare classifier's AUROC, and where.
    brier_ratio : float
        Mean OOD Brier over that of the bare classifier.
    brier_cost : float
        Mean ID Brier over that of the bare classifier, less one.
    error_auroc : float
        Mean AUROC of spotting the classifier's own errors.
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


def study_table(rows: Iterable[Mapping[str, Any]]) -> StudyTable:
    """The table of a study from its rows; of each method, those of the latest configuration.

    Raises
    ------
    ValueError
        If there are no rows, or they are of several studies or profiles.
    """
    rows = list(rows)
    kinds = sorted({(row["suite"], row["profile"]) for row in rows})
    if len(kinds) != 1:
        raise ValueError(
            f"rows must be of one study and one profile, got {kinds or 'none'}; "
            "name the profile, or run the study first"
        )
    kept = latest_by(rows, ("dataset", "classifier", "method"))
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in kept:
        found.setdefault((row["dataset"], row["classifier"], row["method"]), []).append(row)
    refused = {key: of[-1]["refused"] for key, of in found.items() if "refused" in of[-1]}
    answered = {
        key: [row for row in of if row["metrics"]]
        for key, of in found.items()
        if key not in refused
    }
    return StudyTable(
        *kinds[0],
        lines=tuple(dict.fromkeys(line for of in answered.values() for line in _lines(of[-1]))),
        columns=_columns(kept),
        cells={key: _cells(of) for key, of in answered.items()},
        refused=refused,
        costs={key: _costs(of) for key, of in answered.items()},
        seeds={key: tuple(row["seed"] for row in of) for key, of in answered.items()},
        chosen={
            key: tuple(row["chosen"] for row in of)
            for key, of in answered.items()
            if all("chosen" in row for row in of)
        },
    )


def summary(table: StudyTable, method: str) -> Summary:
    """Means of a method over the lines on which both it and the bare classifier answered."""
    bare = table.bare
    both = table.values(method, "auroc") + table.values(bare, "auroc")
    lines = [line for line, there in zip(table.lines, np.isfinite(both), strict=True) if there]
    if not lines:
        nan = np.nan
        return Summary(method, 0, nan, nan, nan, "", nan, nan, nan)
    known = [line for line in table.known() if (line.dataset, line.classifier) in _places(lines)]
    gap = table.values(method, "auroc", lines) - table.values(bare, "auroc", lines)
    return Summary(
        method=method,
        lines=len(lines),
        auroc=_mean(table.values(method, "auroc", lines)),
        auroc_bare=_mean(table.values(bare, "auroc", lines)),
        worst=float(gap.min()),
        worst_at=str(lines[int(gap.argmin())]),
        brier_ratio=_ratio(table, method, "brier_ood", lines),
        brier_cost=_ratio(table, method, "brier_id", known) - 1,
        error_auroc=_nanmean(table.values(method, "error_auroc", known)),
    )


def share(ours: float, theirs: float) -> float:
    """Ours over theirs, errors both; where theirs is zero, 1 for as good and infinity for worse."""
    if theirs == 0:
        return 1.0 if ours == 0 else np.inf
    return ours / theirs


def _plain(found: Summary) -> dict[str, Any]:
    """Plain values; what is not finite as text, for JSON has no such numbers."""
    return {
        name: str(value) if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in vars(found).items()
    }


def _ratio(table: StudyTable, method: str, metric: str, lines: Sequence[Line]) -> float:
    """Mean of a method over mean of the bare classifier."""
    ours, bare = (_mean(table.values(name, metric, lines)) for name in (method, table.bare))
    return share(ours, bare)


def _places(lines: Iterable[Line]) -> set[tuple[str, str]]:
    return {(line.dataset, line.classifier) for line in lines}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else np.nan


def _nanmean(values: np.ndarray) -> float:
    return _mean(values[np.isfinite(values)])


def _lines(row: Mapping[str, Any]) -> list[Line]:
    names = [name.removeprefix(OOD_PREFIX) for name in row["n"] if name.startswith(OOD_PREFIX)]
    return [Line(row["dataset"], name, row["classifier"]) for name in names]


def _columns(rows: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Methods by group, other kinds of uncertainty behind their method."""
    found = {row["method"]: Column(row["method"], row["title"], row["group"]) for row in rows}
    return tuple(sorted(found.values(), key=lambda column: GROUPS.index(column.group)))


def _cells(rows: Sequence[Mapping[str, Any]]) -> dict[str, Cell]:
    names = dict.fromkeys(name for row in rows for name in row["metrics"])
    return {
        name: cell_over_seeds(
            [row["metrics"][name] for row in rows if name in row["metrics"]],
            [row["intervals"][name] for row in rows if name in row["intervals"]],
        )
        for name in names
    }


def _costs(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    steps = {
        step: float(np.mean([row["cpu_seconds"][step] for row in rows]))
        for step in rows[-1]["cpu_seconds"]
    }
    sizes = rows[-1]["n"]
    return {**steps, "rows": sizes["fit"] / sizes["test"]}
