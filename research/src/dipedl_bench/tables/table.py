"""The table of a suite: methods by metrics, ours beside the paper's, and what each method cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ..results.paper import published, published_rows, same_method
from ..results.scores import OOD_PREFIX, SHIFTED_PREFIX
from ..spec.captions import captions_of, data_note, is_own_data
from .cells import Cell, cell_over_seeds
from .columns import columns, worst_recalls
from .cost import Cost, cost_of, spent

__all__ = [
    "RULE",
    "BenchTable",
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
_SPREAD = "± is the population standard deviation over seeds."
_REJECTION = (
    "Errors avoided (10 %): the share of all errors that lie among the tenth of the rows with the "
    "largest uncertainty."
)


@dataclass(frozen=True)
class Line:
    """One method (or one setting of a sweep) with its cells by metric.

    In a table of a crossed suite, a method on one data set with one classifier: `dataset` and
    `classifier` name them, `group` is that of the method, `refused` says why it refused, `spent` is
    the mean of its processor seconds by step, with "rows", those fitted on over those scored, and
    `selected` what its selection chose, by seed, and `temperature` the mean of its temperatures.
    """

    name: str
    title: str
    cells: Mapping[str, Cell]
    seeds: tuple[int, ...] = ()
    paper: str | None = None
    cost: Cost | None = None
    dataset: str = ""
    classifier: str = ""
    group: str = ""
    ood: tuple[str, ...] = ()
    refused: str = ""
    spent: Mapping[str, float] = field(default_factory=dict)
    selected: tuple[str, ...] = ()
    temperature: float | None = None


@dataclass(frozen=True)
class BenchTable:
    """All numbers of a suite and a profile.

    `n` is the number of rows of each split: "validation", "test", "ood/<name>", "shifted/<name>";
    of a crossed suite, those of its first row. `lines` are the paper's methods in its order, then
    the others as they were run; `trivial` the detectors that need no model. `shifted` are sets of
    labelled rows from elsewhere. `note` says what the data are, if they resemble other data.
    """

    suite: str
    profile: str
    ood: tuple[str, ...]
    n: Mapping[str, int]
    lines: tuple[Line, ...]
    trivial: tuple[Line, ...] = ()
    shifted: tuple[str, ...] = ()
    note: str = ""

    @property
    def crossed(self) -> bool:
        """Return whether methods are compared on several data sets and classifiers."""
        return any(line.dataset for line in self.lines)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes by number; empty where none are told."""
        return captions_of(self.suite).classes

    @property
    def beside_paper(self) -> bool:
        """Return whether any cell has a number of the paper beside it."""
        return any(cell.paper for line in self.lines for cell in line.cells.values())

    @property
    def rule(self) -> str:
        """How a cell is to be read."""
        rule = RULE if self.beside_paper else _SPREAD
        rejects = any("errors_avoided_10" in line.cells for line in self.lines)
        return f"{rule} {_REJECTION}" if rejects else rule

    def lines_on(self, split: str) -> tuple[Line, ...]:
        """Lines that have numbers on a set; the trivial detectors do not classify."""
        return self.lines + (self.trivial if split in self.ood else ())

    def columns(self, extra: bool = False) -> dict[str, tuple[str, ...]]:
        """Metrics by the set they are measured on, see `dipedl_bench.tables.columns`.

        The sets are "" for the known rows, each OOD set by its name, and ``shifted/<name>`` for
        each labelled set from elsewhere. With `extra` those that the paper does not print.
        """
        there = (name for line in self.lines for name in line.cells)
        ood_metrics = captions_of(self.suite).ood_metrics
        return columns(ood_metrics, self.ood, self.shifted, there, extra=extra)

    def as_json(self) -> dict[str, Any]:
        """Every cell, as plain values."""
        return {
            "suite": self.suite,
            "profile": self.profile,
            "n": dict(self.n),
            "rule": self.rule,
            "note": self.note,
            "classes": list(self.classes),
            "methods": [_line_json(line) for line in self.lines],
            "trivial": [_line_json(line) for line in self.trivial],
        }


def bench_table(rows: Iterable[Mapping[str, Any]]) -> BenchTable:
    """The table out of rows of one suite and one profile.

    Of every method only rows of its latest configuration count.
    """
    rows = list(rows)
    kinds = sorted({(row["suite"], row["profile"]) for row in rows})
    if len(kinds) != 1:
        raise ValueError(
            f"rows must be of one suite and one profile, got {kinds or 'none'}; "
            "name the profile, or run the suite first"
        )
    kept = latest(rows)
    methods: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in kept:
        methods.setdefault(_key(row), []).append(row)
    lines = [_line(of_method) for of_method in methods.values()]
    order = list(published_rows(_names_of(kinds[0][0])))
    lines.sort(key=lambda line: order.index(line.paper) if line.paper else len(order))
    sizes = kept[0].get("n", {})
    return BenchTable(
        *kinds[0],
        ood=_in_order(kept[0], _named(sizes, OOD_PREFIX)),
        n=sizes,
        lines=tuple(lines),
        shifted=_named(sizes, SHIFTED_PREFIX),
        note=data_note(kept[0]),
    )


def _named(splits: Iterable[str], prefix: str) -> tuple[str, ...]:
    return tuple(s.removeprefix(prefix) for s in splits if s.startswith(prefix))


def _in_order(row: Mapping[str, Any], sets: Sequence[str]) -> tuple[str, ...]:
    """As the suite names the sets, as far as the row knows; files lie in another order."""
    named = list(row.get("config", {}).get("data", {}).get("ood", ()))
    return tuple(sorted(sets, key=lambda s: named.index(s) if s in named else len(named)))


def _names_of(suite: str) -> str:
    """The suite out of whose table in the paper the methods of a suite are."""
    return captions_of(suite).methods_of or suite


def latest(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of the latest configuration of each method, one per seed, in order of method and seed.

    In a crossed suite, of each method on each data set with each classifier.
    """
    newest: dict[tuple[str, ...], str] = {}
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        newest[_key(row)] = row["config_hash"]
        found[*_key(row), newest[_key(row)], row["seed"]] = row
    order = {key: i for i, key in enumerate(newest)}
    kept = [row for key, row in found.items() if newest[_key(row)] == key[-2]]
    return sorted(kept, key=lambda row: (order[_key(row)], row["seed"]))


def _key(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return data set, classifier and method of a line."""
    return row.get("dataset", ""), row.get("classifier", ""), row["method"]


def paper_suite(rows: Iterable[Mapping[str, Any]]) -> str:
    """The suite whose tables in the paper are of the same data as the rows; "" if none is."""
    row = next(iter(rows))
    return "" if is_own_data(row) else str(row["suite"])


def paper_row(suite: str, method: str) -> str | None:
    """The paper's name of a method or of a variant of it, as ``edl-published`` of ``EDL``."""
    tokens = method.replace("_", "-").split("-")
    for length in range(len(tokens), 0, -1):
        for name in published_rows(_names_of(suite)):
            if same_method("".join(tokens[:length]), name):
                return name
    return None


def _line(rows: Sequence[Mapping[str, Any]]) -> Line:
    row = rows[-1]
    names = _metrics(rows)
    refused = row.get("refused", "")
    temperatures = [r["temperature"] for r in rows if "temperature" in r]
    return Line(
        name=row["method"],
        title=_title(row),
        cells={}
        if refused
        else {name: _cell(rows, name) for name in names} | dict(worst_recalls(rows, names)),
        seeds=tuple(r["seed"] for r in rows if r["metrics"]),
        paper=paper_row(row["suite"], row["method"]),
        cost=cost_of(rows) if "peak_memory_mb" in row else None,
        dataset=row.get("dataset", ""),
        classifier=row.get("classifier", ""),
        group=row.get("group", ""),
        ood=_named(row.get("n", {}), OOD_PREFIX),
        refused=refused,
        spent=spent(rows) if "classifier" in row and not refused else {},
        selected=tuple(r["chosen"] for r in rows if "chosen" in r),
        temperature=fmean(temperatures) if temperatures else None,
    )


def _title(row: Mapping[str, Any]) -> str:
    """Return the title in the captions, where that of the row says more than was done."""
    better = captions_of(row["suite"]).titles.get(row["profile"], {})
    return str(better.get(row["method"], row["title"]))


def _metrics(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Metrics that a line has: those of every row, for rows scored long ago lack the latest.

    In a crossed suite those of any row: a classifier without errors with one seed has no AUROC of
    spotting them there.
    """
    every = dict.fromkeys(name for row in rows for name in row["metrics"])
    if "classifier" in rows[-1]:
        return list(every)
    return [name for name in rows[-1]["metrics"] if all(name in r["metrics"] for r in rows)]


def _cell(rows: Sequence[Mapping[str, Any]], name: str) -> Cell:
    suite, profile, method = (rows[-1][key] for key in ("suite", "profile", "method"))
    row = paper_row(suite, method)
    return cell_over_seeds(
        [row["metrics"][name] for row in rows if name in row["metrics"]],
        [row["intervals"][name] for row in rows if name in row["intervals"]],
        baseline=rows[-1].get("baselines", {}).get(name),
        paper=published(paper_suite(rows), row).get(name) if row else None,
        why=captions_of(suite).why(profile, method, name),
        metric=name,
    )


def _line_json(line: Line) -> dict[str, Any]:
    place = {"dataset": line.dataset, "classifier": line.classifier, "refused": line.refused}
    return {
        **(place if line.dataset else {}),
        "method": line.name,
        "title": line.title,
        "paper": line.paper,
        "seeds": list(line.seeds),
        "cells": {name: cell.as_json() for name, cell in line.cells.items()},
        "cost": None if line.cost is None else dict(vars(line.cost)),
    }
