"""The table of a suite: methods by metrics, ours beside the paper's, and what each method cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cells import Cell, cell_over_seeds
from .differences import explanation
from .paper import published_rows, same_method

__all__ = [
    "RULE",
    "BenchTable",
    "Cost",
    "Line",
    "bench_table",
    "latest",
    "paper_row",
    "paper_suite",
]

#: How differences are judged, for readers of a table.
RULE = (
    "± is the population standard deviation over seeds, as in the paper. * marks a mean more than "
    "two standard deviations from the paper's, where the standard deviation is sqrt(ours² + "
    "paper's²); half a unit of the paper's last decimal is allowed on top."
)
#: Data that the paper has no numbers of.
_OF_OURS = ("colour-digits",)
_KNOWN = ("accuracy", "brier_id")
_ABROAD = ("auroc", "aupr", "brier_ood")
_KNOWN_EXTRA = ("nll", "ece", "adaptive_ece")
_ABROAD_EXTRA = ("aupr_in", "fpr95")


@dataclass(frozen=True)
class Cost:
    """What a method cost a seed, with all its parts, as if it had shared none; means over seeds.

    Attributes
    ----------
    train_seconds, score_seconds : float
        Wall time to train, and to answer all splits.
    cpu_seconds : float
        Processor time of both, over all cores.
    peak_memory_mb : float
        Largest memory of the process, in MiB; the largest over seeds.
    forward_passes : int
        Passes of a network for one answer.
    n_parameters : int or None
        Trained numbers.
    """

    train_seconds: float
    score_seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    forward_passes: int
    n_parameters: int | None


@dataclass(frozen=True)
class Line:
    """One method (or one setting of a sweep) with its cells by metric."""

    name: str
    title: str
    cells: Mapping[str, Cell]
    seeds: tuple[int, ...] = ()
    paper: str | None = None
    cost: Cost | None = None


@dataclass(frozen=True)
class BenchTable:
    """All numbers of a suite and a profile.

    Attributes
    ----------
    suite, profile : str
        Names.
    ood : tuple of str
        OOD sets.
    n : mapping of str to int
        Images in each split, by name: "validation", "test", "ood/<name>".
    lines : tuple of Line
        The paper's methods in its order, then the others in the order in which they were run.
    trivial : tuple of Line
        Detectors that need no model, see `dipedl.bench.trivial`.
    """

    suite: str
    profile: str
    ood: tuple[str, ...]
    n: Mapping[str, int]
    lines: tuple[Line, ...]
    trivial: tuple[Line, ...] = ()

    def lines_on(self, split: str) -> tuple[Line, ...]:
        """Lines that have numbers on a set; the trivial detectors do not classify."""
        return self.lines + (self.trivial if split else ())

    def columns(self, extra: bool = False) -> dict[str, tuple[str, ...]]:
        """Metrics by the set they are measured on: "" for known images, then each OOD set.

        With `extra` those which the paper does not print.
        """
        known, abroad = (_KNOWN_EXTRA, _ABROAD_EXTRA) if extra else (_KNOWN, _ABROAD)
        return {"": known} | {s: tuple(f"{name}/{s}" for name in abroad) for s in self.ood}

    def unexplained(self) -> list[tuple[Line, str]]:
        """Cells that differ from the paper's and say not why."""
        return [
            (line, name)
            for line in self.lines
            for name, cell in line.cells.items()
            if cell.differs and cell.why is None
        ]

    def as_json(self) -> dict[str, Any]:
        """Every cell, as plain values."""
        return {
            "suite": self.suite,
            "profile": self.profile,
            "n": dict(self.n),
            "rule": RULE,
            "methods": [_line_json(line) for line in self.lines],
            "trivial": [_line_json(line) for line in self.trivial],
        }


def bench_table(rows: Iterable[Mapping[str, Any]]) -> BenchTable:
    """The table out of rows of one suite and one profile.

    Of every method only rows of its latest configuration count.

    Parameters
    ----------
    rows : iterable of mapping
        See `dipedl.bench.load_rows`.

    Returns
    -------
    BenchTable

    Raises
    ------
    ValueError
        If there is no row, or rows of several suites or profiles.

    Examples
    --------
    >>> import tempfile
    >>> from dipedl.bench.synthetic import write_synthetic_store
    >>> from dipedl.bench.table import bench_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = bench_table(write_synthetic_store(folder).rows())
    >>> [(line.title, line.paper, line.seeds) for line in table.lines]
    [('EDL', 'EDL', (10, 20)), ('DIP-EDL', 'DIP-EDL', (10, 20)), ('MAX-SOFTMAX', None, (10, 20))]
    """
    kept = latest(rows)
    kinds = sorted({(row["suite"], row["profile"]) for row in kept})
    if len(kinds) != 1:
        raise ValueError(
            f"rows must be of one suite and one profile, got {kinds or 'none'}; "
            "name the profile, or run the suite first"
        )
    methods: dict[str, list[Mapping[str, Any]]] = {}
    for row in kept:
        methods.setdefault(row["method"], []).append(row)
    lines = [_line(of_method) for of_method in methods.values()]
    order = list(published_rows(kinds[0][0]))
    lines.sort(key=lambda line: order.index(line.paper) if line.paper else len(order))
    sizes = kept[0]["n"]
    ood = tuple(s.removeprefix("ood/") for s in sizes if s.startswith("ood/"))
    return BenchTable(*kinds[0], ood=ood, n=sizes, lines=tuple(lines))


def latest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of the latest configuration of each method, one a seed, in order of method and seed."""
    return latest_by(rows, ("method",))


def latest_by(rows: Iterable[Mapping[str, Any]], keys: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Rows of the latest configuration of each value of `keys`, one a seed, in their order."""
    newest: dict[tuple[str, ...], str] = {}
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        newest[key] = row["config_hash"]
        found[*key, row["config_hash"], row["seed"]] = row
    order = {key: i for i, key in enumerate(newest)}
    kept = [
        (order[key], row["seed"], row)
        for (*of, digest, _), row in found.items()
        if newest[key := tuple(of)] == digest
    ]
    return [row for *_, row in sorted(kept, key=lambda entry: entry[:2])]


def paper_suite(rows: Iterable[Mapping[str, Any]]) -> str:
    """The suite whose tables in the paper are of the same data as the rows; "" if none is."""
    row = next(iter(rows))
    seen = row.get("config", {}).get("data", {}).get("dataset")
    return "" if seen in _OF_OURS else str(row["suite"])


def paper_row(suite: str, method: str) -> str | None:
    """The paper's name of a method or of a variant of it, as ``edl-published`` of ``EDL``."""
    words = method.replace("_", "-").split("-")
    for length in range(len(words), 0, -1):
        for name in published_rows(suite):
            if same_method("".join(words[:length]), name):
                return name
    return None


def _line(rows: Sequence[Mapping[str, Any]]) -> Line:
    row = rows[-1]
    return Line(
        name=row["method"],
        title=row["title"],
        cells={name: _cell(rows, name) for name in row["metrics"]},
        seeds=tuple(r["seed"] for r in rows),
        paper=paper_row(row["suite"], row["method"]),
        cost=_cost(rows),
    )


def _cell(rows: Sequence[Mapping[str, Any]], name: str) -> Cell:
    suite, profile, method = (rows[-1][key] for key in ("suite", "profile", "method"))
    row = paper_row(suite, method)
    return cell_over_seeds(
        [row["metrics"][name] for row in rows],
        [row["intervals"][name] for row in rows if name in row["intervals"]],
        baseline=rows[-1]["baselines"].get(name),
        paper=published_rows(suite)[row].get(name) if row and paper_suite(rows) else None,
        why=explanation(suite, profile, method, name),
    )


def _cost(rows: Sequence[Mapping[str, Any]]) -> Cost:
    def mean(kind: str, *steps: str) -> float:
        return float(np.mean([sum(row[kind][step] for step in steps) for row in rows]))

    return Cost(
        train_seconds=mean("seconds", "train"),
        score_seconds=mean("seconds", "score"),
        cpu_seconds=mean("cpu_seconds", "train", "score"),
        peak_memory_mb=max(row["peak_memory_mb"] for row in rows),
        forward_passes=rows[-1]["forward_passes"],
        n_parameters=rows[-1]["n_parameters"],
    )


def _line_json(line: Line) -> dict[str, Any]:
    return {
        "method": line.name,
        "title": line.title,
        "paper": line.paper,
        "seeds": list(line.seeds),
        "cells": {name: cell.as_json() for name, cell in line.cells.items()},
        "cost": None if line.cost is None else dict(vars(line.cost)),
    }
