"""The table of a suite: methods by metrics, ours beside the paper's, and what each method cost.

Rows of one suite and one profile become lines, one for each data set, classifier and method, with
an `Estimate` over seeds for each metric. A suite of one data set has the paper's methods as its
lines; `BenchTable.pairs` sets the methods of a suite of several side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from dipedl.writing import plain

from ..results.paper import Published, published, published_rows, same_method
from ..results.rows import line_of, was_resumed
from ..results.scores import OOD_PREFIX, RANKED, SHIFTED_PREFIX
from ..spec.captions import captions_of, data_note, is_beside_paper
from ..spec.suite import GROUPS, Suite, load_suite, suite_names

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "OF_OOD",
    "BenchTable",
    "Estimate",
    "Line",
    "bench_table",
    "estimate",
    "is_higher_better",
    "keep_latest",
    "paper_row",
    "paper_suite",
]

Interval = tuple[float, float]
Row = Mapping[str, Any]

#: Metrics of an OOD set; all others are of a data set and a classifier alone.
OF_OOD = ("auroc", "caught_5", "aupr", "fpr95", "brier_ood")
#: Metrics of which more is better, and `recall` of any class; of all others less is.
_HIGHER = (
    "accuracy balanced_accuracy worst_recall errors_avoided_10 auroc caught_5 aupr aupr_in "
    "auroc_confidence error_auroc error_correlation"
).split()
_KNOWN_EXTRA = ("nll", "ece", "adaptive_ece", "errors_avoided_10", "aurc", "augrc")
_OOD_EXTRA = ("aupr_in", "fpr95", "aurc", "augrc")
_RECALL = "recall_"
#: Methods that answer with the class probabilities of their network.
_BARE = ("MaxSoftmax", "MaxLogit")
#: Up to so many classes, the recall of each has a column; of more the worst has.
_FEW = 4
_OOD_ERRORS = 4
_ERRORS_OF_AN_INTERVAL = 4  # 95 %: 1.96 on each side
#: How differences are judged, for readers of a table.
_RULE = (
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
class Estimate:
    """One number of a table: mean and population sd (ddof 0, as the paper's) of `values`.

    `values` has one per seed, in the corruption table one per seed and draw. `ci95_seeds` is the
    95 % t-interval of the mean, None with a single seed; it covers the choice of the seed, which
    also chooses the split, and not that of the test images. `ci95_images` is the 95 % bootstrap
    interval over the test images, its ends averaged over seeds: all seeds share the test images, so
    their errors go together and averaging does not narrow them. `why` says why ours differs from
    the paper's, `metric` what the number is, such as ``auroc/kmnist``.
    """

    mean: float
    sd: float
    values: tuple[float, ...]
    ci95_seeds: Interval | None = None
    ci95_images: Interval | None = None
    paper: Published | None = None
    why: str | None = None
    metric: str = ""

    @property
    def spread(self) -> float:
        """Likely distance of the mean from that of other seeds: the standard deviation over seeds.

        With one seed or two at least so many standard errors over images as the standard deviations
        of published metrics with four seeds seldom exceed: one, of OOD metrics four. 0 where none
        is known.
        """
        if len(self.values) > 2 or self.ci95_images is None:
            return self.sd
        low, high = self.ci95_images
        errors = _OOD_ERRORS if self.metric.startswith(OF_OOD) else 1
        return max(self.sd, errors * (high - low) / _ERRORS_OF_AN_INTERVAL)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None else self.mean - self.paper.mean

    @property
    def differs(self) -> bool | None:
        """Return whether ours and the paper's are more than two standard deviations apart.

        The standard deviation is that of the difference of one run of ours and one of theirs,
        ``sqrt(sd_ours^2 + sd_paper^2)``; half a unit of the paper's last decimal is allowed on top,
        for its rounding. None where the paper gives no standard deviation. With a single seed ours
        counts as zero.
        """
        if self.paper is None or self.paper.sd is None:
            return None
        allowed = 2 * np.hypot(self.sd, self.paper.sd) + self.paper.rounding
        return bool(abs(self.mean - self.paper.mean) > allowed)

    @property
    def verdict(self) -> str:
        """Return "equal" unless ours `differs` from the paper's, else "better" or "worse".

        "no data" where the paper has no number or no standard deviation.
        """
        if self.paper is None or self.differs is None:
            return "no data"
        if not self.differs:
            return "equal"
        above = self.mean > self.paper.mean
        return "better" if above == is_higher_better(self.metric) else "worse"

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        more = {"n": len(self.values), "difference": self.difference, "differs": self.differs}
        paper = self.paper and vars(self.paper)
        fields: dict[str, Any] = plain({**vars(self), **more, "paper": paper})
        del fields["metric"]
        return fields


def estimate(values: Sequence[float], intervals: Sequence[Interval] = (), **more: Any) -> Estimate:
    """Return the estimate from one value per seed, with the bootstrap interval of each if any.

    `more` are other fields of it.
    """
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    mean = float(data.sum()) / n
    # An nll is infinite where a true class got probability zero; it has no spread then.
    sd = math.sqrt(float(((data - mean) ** 2).sum()) / n) if math.isfinite(mean) else np.nan
    if n > 1 and math.isfinite(mean):
        half = float(special.stdtrit(n - 1, 0.975)) * sd / math.sqrt(n - 1)
        more["ci95_seeds"] = mean - half, mean + half
    if len(intervals):
        more["ci95_images"] = tuple(np.mean(intervals, axis=0).tolist())
    return Estimate(mean, sd, tuple(data.tolist()), **more)


@dataclass(frozen=True)
class Line:
    """A method on a data set with a classifier (or one setting of a sweep): its cells by metric.

    `dataset` and `classifier` are "" where a suite has one data set; `group` is that of the method,
    `refused` says why it refused, `selected` what its selection chose, by seed, and `temperature`
    is the mean of its temperatures. For `cost` see `cost_of`; `paper` is the paper's name of it.
    """

    name: str
    title: str
    cells: Mapping[str, Estimate]
    seeds: tuple[int, ...] = ()
    paper: str | None = None
    cost: Mapping[str, Any] | None = None
    dataset: str = ""
    classifier: str = ""
    group: str = ""
    ood: tuple[str, ...] = ()
    refused: str = ""
    selected: tuple[str, ...] = ()
    temperature: float | None = None

    @property
    def passes(self) -> int:
        """Passes of a network for a prediction."""
        return 1 if self.cost is None else int(self.cost["forward_passes"])

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        place = {"dataset": self.dataset, "classifier": self.classifier, "refused": self.refused}
        return {
            **(place if self.dataset else {}),
            "method": self.name,
            "title": self.title,
            "paper": self.paper,
            "seeds": list(self.seeds),
            "cells": {name: cell.as_json() for name, cell in self.cells.items()},
            "cost": self.cost,
        }


@dataclass(frozen=True)
class BenchTable:
    """All numbers of a suite and a profile.

    `n` is the number of rows of each split: "validation", "test", "ood/<name>", "shifted/<name>";
    of several data sets, those of the first row. `lines` are the paper's methods in its order, then
    the others as the suite names them; `trivial` the detectors that need no model. `shifted` are
    sets of labelled rows from elsewhere. `note` says what the data are, if they resemble others.
    `groups` are the OOD sets behind "near_ood" and "far_ood", means over sets; empty where the
    suite does not say which are near.
    """

    suite: str
    profile: str
    ood: tuple[str, ...]
    n: Mapping[str, int]
    lines: tuple[Line, ...]
    trivial: tuple[Line, ...] = ()
    shifted: tuple[str, ...] = ()
    note: str = ""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def crossed(self) -> bool:
        """Return whether methods are compared on several data sets and classifiers."""
        return any(line.group for line in self.lines)

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
        """Sentence on how a cell is read."""
        rule = _RULE if self.beside_paper else _SPREAD
        rejects = any("errors_avoided_10" in line.cells for line in self.lines)
        return f"{rule} {_REJECTION}" if rejects else rule

    def columns(self, extra: bool = False) -> dict[str, tuple[str, ...]]:
        """Metrics by the set they are measured on; accuracy never without the recall of classes.

        The sets are "" for the known rows, each OOD set by its name, and ``shifted/<name>`` for
        each labelled set from elsewhere. With `extra` those that the paper does not print or that
        say least, for tables of their own.
        """
        there = {name for line in self.lines for name in line.cells}
        of_ood = captions_of(self.suite).ood_metrics
        recalls = [name for name in there if name.startswith(_RECALL) and "/" not in name]
        recalls.sort(key=lambda name: int(name.removeprefix(_RECALL)))
        by_class = recalls if len(recalls) <= _FEW else ["worst_recall"]
        labelled = ("accuracy", "balanced_accuracy", *by_class, "brier_id")
        known, unknown, shifted = labelled, of_ood, (*labelled, "errors_avoided_10", "nll", "ece")
        if extra:
            known, shifted = _KNOWN_EXTRA, ()
            unknown = tuple(name for name in _OOD_EXTRA if name not in of_ood)
        by_set = {"": known} | {s: tuple(f"{name}/{s}" for name in unknown) for s in self.ood}
        by_set |= {
            f"{SHIFTED_PREFIX}{s}": tuple(f"{name}/{s}" for name in shifted) for s in self.shifted
        }
        return {split: tuple(n for n in names if n in there) for split, names in by_set.items()}

    @cached_property
    def methods(self) -> DataFrame:
        """Methods by group: "title" and "group" by name."""
        from pandas import DataFrame

        titles = {line.name: (line.title, line.group) for line in self.lines}
        by_group = sorted(titles.items(), key=lambda item: GROUPS.index(item[1][1]))
        return DataFrame.from_dict(dict(by_group), orient="index", columns=["title", "group"])

    def in_groups(self, *groups: str) -> list[str]:
        """Names of the methods of groups; other kinds of a method's uncertainty are left out."""
        of = self.methods["group"]
        return [n for group in groups for n in of.index[of == group] if ":" not in n]

    @property
    def bare(self) -> str:
        """Name of the method that all are compared with; ValueError if it was not run."""
        bare = self.in_groups("bare")
        if not bare:
            raise ValueError(
                f"the rows of suite {self.suite!r}, profile {self.profile!r}, hold no method of "
                f"group 'bare', with which all others are compared, got {self.in_groups(*GROUPS)}; "
                "run it too"
            )
        return bare[0]

    @property
    def ours(self) -> str:
        """Name of the method that the suite is about."""
        return next(iter(self.in_groups("ours")), "")

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str, str], Line]:
        """Lines by data set, classifier and method."""
        return {(line.dataset, line.classifier, line.name): line for line in self.lines}

    @cached_property
    def pairs(self) -> DataFrame:
        """Means: a row for each data set, OOD set and classifier, columns (metric, method).

        All methods of a row were given the same classifier, so differences between them are
        differences of the methods. A metric of known rows repeats for every OOD set, see
        `dipedl_bench.tables.pairs.values`; NaN where a method was not run or refused.
        """
        from pandas import DataFrame, MultiIndex

        means: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
        for line in self.lines:
            for ood in () if line.refused else line.ood:
                row = means.setdefault((line.dataset, ood, line.classifier), {})
                for name, cell in line.cells.items():
                    metric, _, split = name.partition("/")
                    if metric not in OF_OOD:
                        row[name, line.name] = cell.mean
                    elif split == ood:
                        row[metric, line.name] = cell.mean
        places = MultiIndex.from_tuples(list(means), names=("dataset", "ood", "classifier"))
        frame = DataFrame(list(means.values()), places)
        return frame.set_axis(MultiIndex.from_tuples(list(frame.columns)), axis=1)

    def as_json(self) -> dict[str, Any]:
        """Every cell, as plain values."""
        return {
            "suite": self.suite,
            "profile": self.profile,
            "n": dict(self.n),
            "rule": self.rule,
            "note": self.note,
            "classes": list(self.classes),
            "methods": [line.as_json() for line in self.lines],
            "trivial": [line.as_json() for line in self.trivial],
        }


def bench_table(rows: Iterable[Row], suite: Suite | None = None) -> BenchTable:
    """Return the table out of rows of one suite and one profile.

    Of every method only rows of its latest configuration count, and where several data sets are
    crossed with classifiers, only the seeds that all methods there share, if they share any: a
    difference of two means is one of the methods. `suite` says which OOD sets are near and far; by
    default the suite of the package that the rows name.
    """
    rows = list(rows)
    kinds = sorted({(row["suite"], row["profile"]) for row in rows})
    if len(kinds) != 1:
        raise ValueError(
            f"rows must be of one suite and one profile, got {kinds or 'none'}; "
            "name the profile, or run the suite first"
        )
    methods: dict[tuple[str, ...], list[Row]] = {}
    for row in (latest := keep_shared_seeds(keep_latest(rows))):
        methods.setdefault(line_of(row), []).append(row)
    bare = bare_scores(latest)
    ood = _names_with(latest[0].get("n", {}), OOD_PREFIX)
    if suite is None and kinds[0][0] in suite_names():
        suite = load_suite(kinds[0][0])
    groups = {"near_ood": suite.near, "far_ood": suite.far} if suite else {}
    groups = {g: there for g, of in groups.items() if (there := tuple(s for s in of if s in ood))}
    lines = [_line(of_method, bare, groups) for of_method in methods.values()]
    order, named = list(_names_of_paper(kinds[0][0])), list(suite.methods) if suite else []

    def place(line: Line) -> tuple[int, int]:
        """Methods of the paper in its order, then the others as the suite names them."""
        of_paper = order.index(line.paper) if line.paper else len(order)
        return of_paper, named.index(line.name) if line.name in named else len(named)

    lines.sort(key=place)
    sizes = latest[0].get("n", {})
    # as the suite names the sets, as far as the row knows; files lie in another order
    sets = list(latest[0].get("config", {}).get("data", {}).get("ood", ()))
    return BenchTable(
        *kinds[0],
        ood=tuple(sorted(ood, key=lambda s: sets.index(s) if s in sets else len(sets))),
        n=sizes,
        lines=tuple(lines),
        shifted=_names_with(sizes, SHIFTED_PREFIX),
        note=data_note(latest[0]),
        groups=groups,
    )


def keep_latest(rows: Iterable[Row]) -> list[Row]:
    """Return rows of the latest configuration of each method, by method and seed.

    Of several data sets and classifiers, of each method on each with each.
    """
    newest: dict[tuple[str, ...], str] = {}
    unique: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        newest[line_of(row)] = row["config_hash"]
        unique[*line_of(row), row["config_hash"], row["seed"]] = row
    order = {key: i for i, key in enumerate(newest)}
    latest = [row for row in unique.values() if newest[line_of(row)] == row["config_hash"]]
    return sorted(latest, key=lambda row: (order[line_of(row)], row["seed"]))


def keep_shared_seeds(rows: list[Row]) -> list[Row]:
    """Return rows of the seeds that all methods on a data set and a classifier share, if any."""
    seeds: dict[tuple[str, str], dict[str, set[int]]] = {}
    for row in rows:
        if row.get("group") and not row.get("refused"):
            of_place = seeds.setdefault((row["dataset"], row["classifier"]), {})
            of_place.setdefault(row["method"], set()).add(row["seed"])
    shared = {place: set.intersection(*of.values()) for place, of in seeds.items()}

    def counts(row: Row) -> bool:
        of_place = shared.get((row.get("dataset", ""), row.get("classifier", "")))
        return not of_place or row["seed"] in of_place or bool(row.get("refused"))

    return [row for row in rows if counts(row)]


def paper_suite(rows: Iterable[Row]) -> str:
    """Return the suite whose tables in the paper may stand beside the rows; "" if none may."""
    row = next(iter(rows))
    return str(row["suite"]) if is_beside_paper(row) else ""


def paper_row(suite: str, method: str) -> str | None:
    """Return the paper's name of a method or a variant of it, as ``edl-published`` of ``EDL``."""
    tokens = method.replace("_", "-").split("-")
    for length in range(len(tokens), 0, -1):
        for name in _names_of_paper(suite):
            if same_method("".join(tokens[:length]), name):
                return name
    return None


def is_higher_better(name: str) -> bool:
    """Return the direction of a metric such as ``auroc/kmnist``."""
    kind = name.partition("/")[0]
    return kind in _HIGHER or kind.startswith(_RECALL)


def cost_of(rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the cost of a method per seed with all its parts, as if it shared none; means.

    Seeds whose training was resumed are left out where there are others: part of it was done twice.
    Wall seconds to train and to predict all splits, processor seconds over all cores of training
    and of both, the largest memory of the process over seeds (MiB), passes of a network per
    prediction, and the number of trained parameters. Of a method in a suite of several classifiers
    processor seconds by step; None of one that refused, and of arrays that were imported.
    """
    row = rows[-1]
    if row.get("refused") or not row["cpu_seconds"]:
        return None
    if "peak_memory_mb" in row:
        rows = [row for row in rows if not was_resumed(row)] or rows

    def mean(kind: str, *steps: str) -> float:
        return fmean(sum(row[kind][step] for step in steps) for row in rows)

    if "peak_memory_mb" not in row:
        return {step: mean("cpu_seconds", step) for step in row["cpu_seconds"]}
    return {
        "train_seconds": mean("seconds", "train"),
        "score_seconds": mean("seconds", "score"),
        "train_cpu_seconds": mean("cpu_seconds", "train"),
        "cpu_seconds": mean("cpu_seconds", "train", "score"),
        "peak_memory_mb": max(row["peak_memory_mb"] for row in rows),
        "forward_passes": rows[-1]["forward_passes"],
        "n_parameters": rows[-1]["n_parameters"],
    }


def _names_with(splits: Iterable[str], prefix: str) -> tuple[str, ...]:
    return tuple(s.removeprefix(prefix) for s in splits if s.startswith(prefix))


def _names_of_paper(suite: str) -> Iterable[str]:
    """Return the methods of a suite as the paper calls them, in the order of its table."""
    return published_rows(captions_of(suite).methods_of or suite)


#: A network by its settings, its seed and the machine that trained it.
Network = tuple[str, int, Any, Any]


def network_of(row: Row) -> Network | None:
    """Return which network a row shares with others; another machine trains another one."""
    part = row.get("parts", {}).get("classifier")
    if part is None:
        return None
    return part["config_hash"], row["seed"], part.get("device"), part.get("instructions")


def bare_scores(rows: Iterable[Row]) -> dict[Network, float]:
    """Return the ID Brier score of max softmax, which max logit shares, by network."""
    return {
        network: row["metrics"]["brier_id"]
        for row in rows
        if (network := network_of(row)) and row["config"].get("estimator") in _BARE
    }


def price_of(rows: Sequence[Row], bare: Mapping[Network, float]) -> Estimate | None:
    """Return how far the ID Brier score lies above that of the bare network, relative to it.

    None unless a row of max softmax on the same network is there for every seed.
    """
    prices = []
    for row in rows:
        network = network_of(row)
        score = bare.get(network) if network else None
        if not score or "brier_id" not in row["metrics"]:
            return None
        prices.append(row["metrics"]["brier_id"] / score - 1)
    return estimate(prices, metric="price")


def _means_over_sets(
    rows: Sequence[Row], names: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Estimate]]:
    """Yield means over near and far OOD sets of each seed; ends of intervals are averaged, too."""
    for (group, sets), kind in product(groups.items(), RANKED):
        of_sets = [f"{kind}/{name}" for name in sets]
        if set(of_sets) <= set(names):
            means = [fmean(row["metrics"][name] for name in of_sets) for row in rows]
            ends = [
                tuple(np.mean([row["intervals"][name] for name in of_sets], axis=0))
                for row in rows
                if set(of_sets) <= row["intervals"].keys()
            ]
            yield f"{kind}/{group}", estimate(means, ends, metric=f"{kind}/{group}")


def _line(
    rows: Sequence[Row],
    bare: Mapping[Network, float],
    groups: Mapping[str, Sequence[str]],
) -> Line:
    row = rows[-1]
    suite, profile, method = row["suite"], row["profile"], row["method"]
    paper, captions = paper_row(suite, method), captions_of(suite)
    beside = published(paper_suite(rows), paper) if paper else {}
    # Rows scored long ago lack the latest metrics. With several classifiers a metric of any row
    # counts: one without errors with one seed has no AUROC of spotting them there.
    names = list(dict.fromkeys(name for r in rows for name in r["metrics"]))
    if not row.get("group"):
        names = [name for name in names if all(name in r["metrics"] for r in rows)]
    cells = {
        name: estimate(
            [r["metrics"][name] for r in rows if name in r["metrics"]],
            [r["intervals"][name] for r in rows if name in r["intervals"]],
            paper=beside.get(name),
            why=captions.why(profile, method, name),
            metric=name,
        )
        for name in names
    }
    # Of many classes the recall of the worst of each seed. It has no interval over the test rows:
    # the smallest of many numbers varies otherwise than each of them.
    for split in dict.fromkeys(n.partition("/")[2] for n in names if n.startswith(_RECALL)):
        of_set = [n for n in names if n.startswith(_RECALL) and n.partition("/")[2] == split]
        if len(of_set) > _FEW:
            worst = [min(r["metrics"][name] for name in of_set) for r in rows]
            cells[f"worst_recall/{split}".removesuffix("/")] = estimate(worst)
    cells |= dict(_means_over_sets(rows, names, groups))
    if price := price_of(rows, bare):
        cells["price"] = price
    temperatures = [r["temperature"] for r in rows if "temperature" in r]
    return Line(
        name=method,
        # the title in the captions, where that of the row says more than was done
        title=str(captions.titles.get(profile, {}).get(method, row["title"])),
        cells={} if row.get("refused") else cells,
        seeds=tuple(r["seed"] for r in rows if r["metrics"]),
        paper=paper,
        cost=cost_of(rows),
        dataset=row.get("dataset", ""),
        classifier=row.get("classifier", ""),
        group=row.get("group", ""),
        ood=_names_with(row.get("n", {}), OOD_PREFIX),
        refused=row.get("refused", ""),
        selected=tuple(r["chosen"] for r in rows if "chosen" in r),
        temperature=fmean(temperatures) if temperatures else None,
    )
