"""Methods side by side by pairs of a data set and an OOD set, with one classifier each.

Everything here is a mean over a frame of pairs, `BenchTable.pairs` or some of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..results.known_truth import BY_CONFIDENCE, BY_DENSITY, LEVELS
from .formatting import signed, three_decimals
from .table import OF_OOD, BenchTable

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Pair = tuple[str, str, str]

#: A third of the rows counts as covered from here on.
_COVERED = 0.8
#: Metrics of a pair and of a classifier, and how they are called.
PAIR_TITLES = {"auroc": "AUROC", "aupr": "AUPR", "fpr95": "FPR95", "brier_ood": "OOD Brier"}
KNOWN_TITLES = {
    "accuracy": "Accuracy",
    "brier_id": "ID Brier",
    "nll": "NLL",
    "ece": "ECE",
    "adaptive_ece": "Adaptive ECE",
    "error_auroc": "AUROC of spotting the classifier's own errors",
}
#: Heads of the table of intervals.
INTERVALS = (
    "lines",
    *(f"{level} %" for level in LEVELS),
    "thirds by distance at .80 or more",
    "by confidence",
    "width",
    "score",
    "our score there",
    "correlation",
    "our correlation there",
    "far: 95 %",
    "far: score",
)


def place_title(pair: Pair) -> str:
    """Data set and classifier of a pair."""
    return f"{pair[0]}, {pair[2]}"


def pair_title(pair: Pair) -> str:
    """Data set, OOD set and classifier of a pair."""
    return f"{pair[0]} / {pair[1]}, {pair[2]}"


def known(pairs: DataFrame) -> DataFrame:
    """Return one pair for each data set and classifier."""
    return pairs[~pairs.index.droplevel("ood").duplicated()]


def values(pairs: DataFrame, metric: str, method: str) -> Series:
    """Means of a method; a metric without an OOD set once for each data set and classifier."""
    rows = pairs if metric in OF_OOD else known(pairs)
    return rows.reindex(columns=[(metric, method)]).iloc[:, 0].astype(float)


def both(pairs: DataFrame, metric: str, ours: str, theirs: str) -> np.ndarray:
    """Means of two methods (2, n) where both are finite."""
    found = np.array([values(pairs, metric, name) for name in (ours, theirs)])
    return found[:, np.isfinite(found).all(axis=0)]


def share(ours: float, theirs: float) -> float:
    """Ours over theirs, errors both; where theirs is zero, 1 for as good and infinity for worse."""
    if theirs == 0:
        return 1.0 if ours == 0 else np.inf
    return ours / theirs


def regret(table: BenchTable, pairs: DataFrame) -> Series:
    """By pair, the best candidate's AUROC, chosen with the OOD labels, less ours."""
    from pandas import concat

    ours = values(pairs, "auroc", table.ours)
    candidates = [values(pairs, "auroc", name) for name in table.in_groups("candidate")]
    if not candidates:
        return ours[:0]
    return (concat(candidates, axis=1).max(axis=1) - ours).dropna()


def summary(table: BenchTable) -> DataFrame:
    """Return a row for each method over the pairs that both it and the bare classifier have.

    "lines" is their number, "worst" the lowest difference to the bare classifier's AUROC, at
    "worst_at"; "brier_ratio" the mean OOD Brier over the bare classifier's, "brier_cost" the same
    of the ID Brier, less one; "error_auroc" the mean AUROC of spotting the classifier's own errors.
    """
    from pandas import DataFrame

    return DataFrame([_summary(table, method) for method in table.methods.index])


def _summary(table: BenchTable, method: str) -> dict[str, object]:
    gap = values(table.pairs, "auroc", method) - values(table.pairs, "auroc", table.bare)
    pairs = table.pairs[np.isfinite(gap)]
    at_home = table.pairs[table.pairs.index.droplevel("ood").isin(pairs.index.droplevel("ood"))]

    def mean(metric: str, name: str) -> float:
        found = values(pairs if metric in OF_OOD else at_home, metric, name).to_numpy()
        return float(found.mean()) if len(found) else np.nan

    ratios = (share(mean(m, method), mean(m, table.bare)) for m in ("brier_ood", "brier_id"))
    ood_ratio, id_ratio = ratios
    errors = values(at_home, "error_auroc", method).dropna().to_numpy()
    gap = gap[pairs.index]
    return {
        "method": method,
        "lines": len(pairs),
        "auroc": mean("auroc", method),
        "auroc_bare": mean("auroc", table.bare),
        "worst": float(gap.min()),
        "worst_at": pair_title(gap.idxmin()) if len(gap) else "",
        "brier_ratio": ood_ratio,
        "brier_cost": id_ratio - 1,
        "error_auroc": float(errors.mean()) if len(errors) else np.nan,
    }


#: Head of a column of the summary -> its text.
SUMMARY: dict[str, Callable[..., str]] = {
    "lines": lambda s: str(s.lines),
    "AUROC": lambda s: three_decimals(s.auroc),
    "bare AUROC there": lambda s: three_decimals(s.auroc_bare),
    "difference": lambda s: signed(s.auroc - s.auroc_bare),
    "worst line": lambda s: signed(s.worst),
    "worst at": lambda s: s.worst_at,
    "OOD Brier, share of the bare": lambda s: signed(s.brier_ratio, ".0%"),
    "ID Brier, cost": lambda s: signed(s.brier_cost, "+.1%"),
    "own errors, AUROC": lambda s: three_decimals(s.error_auroc),
}


def summary_rows(
    table: BenchTable, heads: Iterable[str] = SUMMARY, groups: Sequence[str] = ()
) -> list[list[str]]:
    """Title of each method of `groups` (all), and the texts below heads of the summary."""
    heads = list(heads)
    return [
        [title, *(SUMMARY[head](row) for head in heads)]
        for row, title, group in zip(
            summary(table).itertuples(), table.methods["title"], table.methods["group"], strict=True
        )
        if not groups or group in groups
    ]


def pair_rows(table: BenchTable, methods: Sequence[str], metric: str) -> list[list[str]]:
    """A metric of every pair and method as text, titles in front, and the means."""
    rows, pairs = [], table.pairs if metric in OF_OOD else known(table.pairs)
    for pair in pairs.index:
        title = pair_title(pair) if metric in OF_OOD else place_title(pair)
        rows.append([title, *(cell_text(table, pair, name, metric) for name in methods)])
    return [*rows, ["mean", *(_mean_text(values(pairs, metric, name)) for name in methods)]]


def _mean_text(found: Series) -> str:
    """Mean of the numbers that are there, and how many these are if not all."""
    there = found.dropna().to_numpy()
    few = f" ({len(there)} of {len(found)})" if len(there) < len(found) else ""
    return three_decimals(float(there.mean())) + few if len(there) else ""


def cell_text(table: BenchTable, pair: Pair, method: str, metric: str) -> str:
    """Mean and half-width of the 95 % interval: over seeds, or over rows with a single seed."""
    dataset, ood, classifier = pair
    line = table.by_place.get((dataset, classifier, method))
    if line is None or line.refused:
        return "refused" if line else ""
    cell = line.cells.get(f"{metric}/{ood}" if metric in OF_OOD else metric)
    if cell is None:
        return ""
    ends = cell.over_seeds or cell.over_images
    half = f" ±{three_decimals((ends[1] - ends[0]) / 2)}" if ends else ""
    return three_decimals(cell.mean) + half


def with_intervals(table: BenchTable) -> list[str]:
    """Methods that say how far a class probability may be off; none where none is known."""
    names = table.methods.index
    return [n for n in names if values(table.pairs, "coverage_95", n).notna().any()]


def coverage_of(table: BenchTable, method: str) -> list[float]:
    """Mean coverage at each of `LEVELS`."""
    means = (values(table.pairs, f"coverage_{level}", method) for level in LEVELS)
    return [float(np.nanmean(of)) for of in means]


def interval_rows(table: BenchTable) -> list[list[str]]:
    """Title of each method with intervals, and means over its lines, as `INTERVALS` says.

    Of coverages the quartiles too; widths and scores are those of 95 % intervals. Where a method
    has not run on every line, our numbers on its lines stand beside its own.
    """
    return [[table.methods["title"][n], *_interval_row(table, n)] for n in with_intervals(table)]


def _interval_row(table: BenchTable, method: str) -> list[str]:
    def of(metric: str, name: str = method) -> np.ndarray:
        return np.asarray(values(table.pairs, metric, name))

    there = np.isfinite(of("coverage_50"))

    def coverage(level: int) -> str:
        held = of(f"coverage_{level}")[there]
        low, high = np.quantile(held, [0.25, 0.75])
        return f"{held.mean():.2f} ({low:.2f} to {high:.2f})"

    def covered(names: Sequence[str]) -> str:
        held = np.concatenate([of(f"coverage_95_{name}") for name in names])
        return f"{(held[np.isfinite(held)] >= _COVERED).mean():.0%}"

    return [
        str(there.sum()),
        *(coverage(level) for level in LEVELS),
        covered(BY_DENSITY),
        covered(BY_CONFIDENCE),
        _two_decimals(np.nanmean(of("width_95"))),
        *(
            _two_decimals(of(metric, name)[there].mean())
            for metric in ("interval_score_95", "error_correlation")
            for name in (method, table.ours)
        ),
        _two_decimals(np.nanmean(of("coverage_95/far"))),
        _two_decimals(np.nanmean(of("interval_score_95/far"))),
    ]


def problem_rows(table: BenchTable) -> tuple[list[str], list[list[str]]]:
    """Coverage of 95 % intervals of the bare method and of ours, by data set and classifier."""
    pairs = known(table.pairs).droplevel("ood")
    cells = (
        pairs.reindex(columns=[("coverage_95", name) for name in (table.bare, table.ours)])
        .map(_two_decimals)
        .agg(" → ".join, axis=1)
        .unstack("classifier")
        .reindex(index=pairs.index.unique("dataset"), columns=pairs.index.unique("classifier"))
    )
    rows = cells.fillna("").reset_index().to_numpy().tolist()
    return ["data", *cells.columns], rows


def _two_decimals(value: float) -> str:
    """Two decimals, or nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:.2f}"
