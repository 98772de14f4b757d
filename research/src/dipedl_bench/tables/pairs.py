"""Methods side by side by pairs of a data set and an OOD set, with one classifier each.

Everything here is a mean over a frame of pairs, `BenchTable.pairs` or some of its rows. Tables are
frames of text; their first column has the titles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..results.known_truth import BY_CONFIDENCE, BY_DENSITY, LEVELS
from .formatting import three_decimals, with_sign
from .table import OF_OOD, BenchTable

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Pair = tuple[str, str, str]

#: A third of the rows counts as covered from here on.
_COVERED = 0.8
#: Thirds of the rows, as the tables call them.
_THIRDS = {
    "densest": "nearest to the training rows",
    "middle": "in the middle",
    "sparsest": "furthest from them",
    "unsure": "least sure answers",
    "between": "between",
    "surest": "surest answers",
}
#: Metrics of a pair and of a classifier, and how they are called.
PAIR_TITLES = {
    "auroc": "AUROC",
    "caught_5": "Caught at 5 % false alarms",
    "aupr": "AUPR",
    "fpr95": "FPR95",
    "brier_ood": "OOD Brier",
}
KNOWN_TITLES = {
    "accuracy": "Accuracy",
    "brier_id": "ID Brier",
    "nll": "NLL",
    "ece": "ECE",
    "adaptive_ece": "Adaptive ECE",
    "error_auroc": "AUROC of spotting the classifier's own errors",
}


def pair_title(pair: Pair) -> str:
    """Return data set, OOD set and classifier of a pair."""
    return f"{pair[0]} / {pair[1]}, {pair[2]}"


def drop_repeats(pairs: DataFrame) -> DataFrame:
    """Return one pair for each data set and classifier."""
    return pairs[~pairs.index.droplevel("ood").duplicated()]


def values(pairs: DataFrame, metric: str, method: str) -> Series:
    """Return means of a method; without an OOD set once for each data set and classifier."""
    from pandas import Series

    rows = pairs if metric in OF_OOD else drop_repeats(pairs)
    column = metric, method
    found = rows[column] if column in rows else Series(np.nan, rows.index, name=column)
    return found.astype(float)


def both(pairs: DataFrame, metric: str, ours: str, theirs: str) -> np.ndarray:
    """Return means of two methods (2, n) where both are finite."""
    means = np.array([values(pairs, metric, name) for name in (ours, theirs)])
    return means[:, np.isfinite(means).all(axis=0)]


def share(ours: float, theirs: float) -> float:
    """Return ours over theirs, both errors; of zero, 1 for as good and infinity for worse."""
    if theirs == 0:
        return 1.0 if ours == 0 else np.inf
    return ours / theirs


def candidates(table: BenchTable, pairs: DataFrame) -> DataFrame:
    """Return AUROC of each candidate by pair."""
    from pandas import DataFrame

    aurocs = {name: values(pairs, "auroc", name) for name in table.in_groups("candidate")}
    return DataFrame(aurocs, index=pairs.index, dtype=float)


def regret(table: BenchTable, pairs: DataFrame) -> Series:
    """Return by pair the best candidate's AUROC, chosen with the OOD labels, less ours."""
    best = candidates(table, pairs).max(axis=1)
    return (best - values(pairs, "auroc", table.ours)).dropna()


def summary(table: BenchTable) -> DataFrame:
    """Return a row for each method over the pairs that both it and the bare classifier have.

    "lines" is their number, "caught" the mean share of OOD rows flagged at 5 % false alarms, over
    those lines that have it; "worst" the lowest difference to the bare classifier's AUROC, at
    "worst_at"; "brier_ratio" the mean OOD Brier over the bare classifier's, "brier_cost" the same
    of the ID Brier, less one; "error_auroc" the mean AUROC of spotting the classifier's own errors.
    """
    from pandas import DataFrame

    def of_method(method: str) -> dict[str, object]:
        gap = values(table.pairs, "auroc", method) - values(table.pairs, "auroc", table.bare)
        gap = gap[np.isfinite(gap)]
        at = table.pairs.index.droplevel("ood")
        at_home = table.pairs[at.isin(gap.index.droplevel("ood"))]

        def mean(metric: str, name: str) -> float:
            pairs = table.pairs.loc[gap.index] if metric in OF_OOD else at_home
            return float(values(pairs, metric, name).mean())

        def ratio(metric: str) -> float:
            return share(mean(metric, method), mean(metric, table.bare))

        return {
            "method": method,
            "lines": len(gap),
            "auroc": mean("auroc", method),
            "caught": mean("caught_5", method),
            "auroc_bare": mean("auroc", table.bare),
            "worst": float(gap.min()),
            "worst_at": pair_title(gap.idxmin()) if len(gap) else "",
            "brier_ratio": ratio("brier_ood"),
            "brier_cost": ratio("brier_id") - 1,
            "error_auroc": mean("error_auroc", method),
        }

    return DataFrame(map(of_method, table.methods.index))


#: Head of a column of the summary -> its text.
SUMMARY: dict[str, Callable[..., str]] = {
    "lines": lambda s: str(s.lines),
    "AUROC": lambda s: three_decimals(s.auroc),
    "caught at 5 %": lambda s: three_decimals(s.caught) if np.isfinite(s.caught) else "not kept",
    "bare AUROC there": lambda s: three_decimals(s.auroc_bare),
    "difference": lambda s: with_sign(s.auroc - s.auroc_bare),
    "worst line": lambda s: with_sign(s.worst),
    "worst at": lambda s: s.worst_at,
    "OOD Brier, share of the bare": lambda s: with_sign(s.brier_ratio, ".0%"),
    "ID Brier, cost": lambda s: with_sign(s.brier_cost, "+.1%"),
    "own errors, AUROC": lambda s: three_decimals(s.error_auroc),
}


def summary_frame(table: BenchTable, heads: Iterable[str] = SUMMARY) -> DataFrame:
    """Return title and group of each method, and the texts below heads of the summary."""
    summaries, methods = summary(table), table.methods.reset_index(drop=True)
    columns = {head: [SUMMARY[head](row) for row in summaries.itertuples()] for head in heads}
    return methods.rename(columns={"title": "method"}).assign(**columns)


def pair_frame(table: BenchTable, methods: Sequence[str], metric: str) -> DataFrame:
    """Return a metric of every pair and method as text, and the means."""
    from pandas import DataFrame

    pairs = table.pairs if metric in OF_OOD else drop_repeats(table.pairs)
    rows = [
        [
            pair_title(pair) if metric in OF_OOD else f"{pair[0]}, {pair[2]}",
            *(_pair_text(table, pair, name, metric) for name in methods),
        ]
        for pair in pairs.index
    ]
    means = ["mean"]
    for column in (values(pairs, metric, name) for name in methods):
        few = f" ({column.count()} of {len(column)})" if column.count() < len(column) else ""
        means.append(three_decimals(column.mean()) + few if column.count() else "")
    return DataFrame([*rows, means], columns=["", *table.methods["title"][list(methods)]])


def _pair_text(table: BenchTable, pair: Pair, method: str, metric: str) -> str:
    """Mean and half-width of the 95 % interval: over seeds, or over rows with a single seed."""
    dataset, ood, classifier = pair
    line = table.by_place.get((dataset, classifier, method))
    if line is None or line.refused:
        return "refused" if line else ""
    cell = line.cells.get(f"{metric}/{ood}" if metric in OF_OOD else metric)
    if cell is None:
        return ""
    ends = cell.ci95_seeds or cell.ci95_images
    half = f" ±{three_decimals((ends[1] - ends[0]) / 2)}" if ends else ""
    return three_decimals(cell.mean) + half


def regret_frame(table: BenchTable) -> DataFrame:
    """Return the regret of our selection by pair, the best candidate, and what was chosen."""
    from pandas import DataFrame

    best, rows = candidates(table, table.pairs), []
    for pair, value in regret(table, table.pairs).items():
        chosen = table.by_place[pair[0], pair[2], table.ours].selected
        texts = best.loc[pair].idxmax(), ", ".join(dict.fromkeys(chosen)), with_sign(value)
        rows.append([pair_title(pair), *texts])
    return DataFrame(rows, columns=["", "best candidate, by OOD labels", "chosen", "regret"])


def choice_frame(table: BenchTable, parts: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return mean AUROC of ours, and of scores chosen line by line, on parts of the lines.

    `parts` names their classifiers; added are all lines, and all without the three data sets of the
    largest regret. The choice is between ours and one candidate, the one that could help most, or
    among ours and all: by the AUROC itself, which takes the unknown rows, or without these by the
    AUROC of spotting the classifier's errors on known test rows. Empty without candidates.
    """
    from pandas import DataFrame

    pairs, rivals = table.pairs, candidates(table, table.pairs)
    rivals.insert(0, table.ours, values(pairs, "auroc", table.ours))
    partners = [[table.ours, name] for name in rivals.columns[1:]]
    if not partners:
        return DataFrame()
    # Of equal scores, and on lines without errors, ours is first.
    errors = pairs["error_auroc"].reindex(columns=rivals.columns).fillna(-np.inf)

    def choose(names: Sequence[str], by: DataFrame) -> np.ndarray:
        best = by[names].to_numpy().argmax(axis=1)
        return np.asarray(rivals[names].to_numpy()[np.arange(len(rivals)), best])

    pair = max(partners, key=lambda names: rivals[names].max(axis=1).mean())
    titles = f"ours or {table.methods['title'][pair[1]]}", "ours or any candidate"
    chosen = DataFrame({"ours": rivals[table.ours]})
    for title, names in zip(titles, (pair, [*rivals]), strict=True):
        chosen[f"{title}, by unknown rows"] = choose(names, rivals)
        chosen[f"{title}, by errors"] = choose(names, errors)
    worst = sorted(regret(table, pairs).groupby(level="dataset").sum().nlargest(3).index)
    classifier, dataset = (pairs.index.get_level_values(n) for n in ("classifier", "dataset"))
    rows = {title: classifier.isin(names) for title, names in parts.items()}
    rows |= {"all": dataset.notna(), f"all but {', '.join(worst)}": ~dataset.isin(worst)}
    return DataFrame(
        {"": title, "lines": str(of.sum()), **chosen[of].mean().map(three_decimals)}
        for title, of in rows.items()
        if of.any()
    )


def cost_frame(table: BenchTable) -> DataFrame:
    """Return processor seconds of each method, added up over its classifiers."""
    from pandas import DataFrame

    rows = []
    for name, title in table.methods["title"].items():
        lines = (
            table.by_place.get((d, c, str(name))) for d, _, c in drop_repeats(table.pairs).index
        )
        costs = DataFrame([line.cost for line in lines if line is not None and line.cost])
        if len(costs) and ":" not in str(name):
            sums = costs[["train", "classifier", "predict"]].sum()
            rows.append([title, str(len(costs)), *sums.map("{:.2f}".format)])
    heads = ["method", "classifiers", "fit", "of that, fits of the classifier", "predict"]
    return DataFrame(rows, columns=heads)


# --------------------------------------------------------------- intervals of class probabilities


def methods_with_intervals(table: BenchTable) -> list[str]:
    """Return methods that say how far a class probability may be off; none where none is known."""
    names = table.methods.index
    return [n for n in names if values(table.pairs, "coverage_95", n).notna().any()]


def coverage_of(table: BenchTable, method: str) -> list[float]:
    """Return the mean coverage at each of `LEVELS`."""
    return [float(values(table.pairs, f"coverage_{level}", method).mean()) for level in LEVELS]


def interval_frame(table: BenchTable) -> DataFrame:
    """Return means over the lines of each method with intervals, of coverages quartiles too.

    Widths and scores are those of 95 % intervals. Where a method has not run on every line, our
    numbers on its lines stand beside its own.
    """
    from pandas import DataFrame

    def of_method(method: str) -> dict[str, str]:
        def of(metric: str, name: str = method) -> Series:
            return values(table.pairs, metric, name)

        there = of("coverage_50").notna()

        def coverage(level: int) -> str:
            shares = of(f"coverage_{level}")[there]
            low, high = shares.quantile([0.25, 0.75])
            return f"{shares.mean():.2f} ({low:.2f} to {high:.2f})"

        def covered(names: Sequence[str]) -> str:
            shares = np.concatenate([of(f"coverage_95_{name}").dropna() for name in names])
            return f"{(shares >= _COVERED).mean():.0%}"

        score = "interval_score_95"
        return {
            "method": table.methods["title"][method],
            "lines": str(there.sum()),
            **{f"{level} %": coverage(level) for level in LEVELS},
            "thirds by distance at .80 or more": covered(BY_DENSITY),
            "by confidence": covered(BY_CONFIDENCE),
            "width": _two_decimals(of("width_95").mean()),
            "score": _two_decimals(of(score)[there].mean()),
            "our score there": _two_decimals(of(score, table.ours)[there].mean()),
            "far: 95 %": _two_decimals(of("coverage_95/far").mean()),
            "far: score": _two_decimals(of(f"{score}/far").mean()),
        }

    return DataFrame(map(of_method, methods_with_intervals(table)))


def uncovered_frame(table: BenchTable) -> DataFrame:
    """Return by third the lines on which our 95 % intervals hold too little, the lowest first."""
    from pandas import DataFrame

    def lines(metric: str) -> str:
        shares = values(table.pairs, metric, table.ours).sort_values()
        low = shares[shares < _COVERED].items()
        return "; ".join(f"{data}, {kind} {three_decimals(of)}" for (data, _, kind), of in low)

    return DataFrame(
        {
            "third of the rows": title,
            "test rows": lines(f"coverage_95_{name}"),
            "far rows": lines(f"coverage_95_{name}/far"),
        }
        for name, title in _THIRDS.items()
    )


def error_frame(table: BenchTable) -> DataFrame:
    """Return how far each method is from the truth, and how well it ranks that, beside ours.

    Means over the lines of each method with intervals, on test rows and on far ones.
    """
    from pandas import DataFrame

    def of_method(method: str) -> dict[str, str]:
        there = values(table.pairs, "coverage_50", method).notna()
        found = {"method": table.methods["title"][method], "lines": str(there.sum())}
        for end, where in (("", ""), ("/far", "far: ")):
            for metric, title, text in (
                ("squared_error", "squared error", three_decimals),
                ("error_correlation", "correlation", _two_decimals),
            ):
                for name, whose in ((method, ""), (table.ours, ", ours there")):
                    mean = values(table.pairs, metric + end, name)[there].mean()
                    found[f"{where}{title}{whose}"] = text(mean)
        return found

    return DataFrame(map(of_method, methods_with_intervals(table)))


def problem_frame(table: BenchTable) -> DataFrame:
    """Return coverage of 95 % intervals of the bare method and ours, by data set and classifier."""
    pairs = drop_repeats(table.pairs).droplevel("ood")
    cells = (
        pairs.reindex(columns=[("coverage_95", name) for name in (table.bare, table.ours)])
        .map(_two_decimals)
        .agg(" → ".join, axis=1)
        .unstack("classifier")
        .reindex(index=pairs.index.unique("dataset"), columns=pairs.index.unique("classifier"))
    )
    return cells.fillna("").rename_axis("data").reset_index()


def _two_decimals(value: float) -> str:
    """Return two decimals, or nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:.2f}"
