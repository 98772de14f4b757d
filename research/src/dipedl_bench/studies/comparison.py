"""Methods compared for a paper: means, and which differ from the best by more than chance.

Over seeds by Student's paired test; an AUROC over rows, by DeLong's, where predictions of all
methods are there; over data sets, in a crossed suite, by Wilcoxon's signed ranks. The p-values of a
column, one for each method against the best, are Holm's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..names import refuse_unknown
from ..results.predictions import ranks_file, read_ranks
from ..results.scores import LATER, OOD_PREFIX, later_metrics, powers
from ..results.significance import (
    Ranking,
    adjust_holm,
    compare_aurocs,
    compare_over_data_sets,
    compare_over_seeds,
    rank_methods,
)
from ..results.store import Arrays, Store
from ..spec.captions import captions_of
from ..spec.suite import load_suite, suite_names
from ..tables.formatting import (
    column_title,
    escape,
    group_sets,
    metric_number,
    metric_title,
    no_price,
    spread_text,
)
from ..tables.pairs import drop_repeats
from ..tables.table import OF_OOD, BenchTable, Line, is_higher_better
from .sweeps import parts_file, parts_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "ComparedCell",
    "Comparison",
    "compare_methods",
    "complete_rows",
    "predictions_of",
    "write_csv",
    "write_latex",
    "write_markdown",
]

Row = Mapping[str, Any]
#: Seeds below which nothing is tested over them.
_FEWEST_SEEDS = 3
#: Means that agree in so many decimals tie: sums of floats depend on the order.
_DIGITS = 12
#: Columns where none are chosen; those of OOD sets for near and far ones, else for each.
_KNOWN, _RANKED = (
    ("accuracy", "ece", "nll", "brier_id", "aurc", "augrc"),
    ("auroc", "fpr95", "aupr"),
)
_CROSSED = ("auroc", "fpr95", "aupr", "accuracy", "ece", "nll", "brier_id")
_TESTS = {
    "seeds": "Student's paired test over seeds",
    "rows": "DeLong's paired test over rows",
    "data sets": "Wilcoxon's signed ranks over data sets",
}
_BASIC = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "×": r"$\times$",
    "−": r"$-$",
}


# ------------------------------------------------------------------- predictions behind a row


def predictions_of(store: Store, row: Row) -> Arrays | None:
    """Return labels, class probabilities and uncertainty of test and OOD rows; None without them.

    Out of the arrays of the run, or of what is published: the predictions of DIP-EDL, which hold
    those of max softmax and entropy on the same network, too.
    """
    if store.has_arrays(row["method"], row["config_hash"], row["seed"]):
        return store.arrays_of(row)
    network = row.get("parts", {}).get("classifier")
    if network is None:
        return None
    own, estimator = parts_file(store, row).exists(), row["config"].get("estimator")
    if not own and estimator not in ("MaxSoftmax", "PredictiveEntropy"):
        return None
    source = next(
        (
            other
            for other in ([row] if own else store.rows())
            if other.get("parts", {}).get("classifier", {}).get("config_hash")
            == network["config_hash"]
            and other["seed"] == row["seed"]
            and parts_file(store, other).exists()
        ),
        None,
    )
    if source is None:
        return None
    parts = parts_of(store, source)
    if own:
        proba = {split: of.mean for split, of in parts.dirichlets().items()}
        uncertainty = {split: -z for split, z in parts.z.items()}
    else:
        proba = dict(parts.proba)
        by_confidence = {split: 1 - p.max(axis=1) for split, p in proba.items()}
        uncertainty = by_confidence if estimator == "MaxSoftmax" else parts.entropy
    names = {split: split if split == parts.known else f"{OOD_PREFIX}{split}" for split in proba}
    arrays: Arrays = {
        name: {"probabilities": proba[split], "uncertainty": uncertainty[split]}
        for split, name in names.items()
    }
    arrays[parts.known]["y"] = parts.y
    return arrays


def complete_rows(store: Store, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return rows with the metrics that came later than they, where their predictions are there.

    No other metric of a row changes, and no file.
    """
    complete = []
    for row in rows:
        row = dict(row)
        there = {name.partition("/")[0] for name in row["metrics"]}
        if there and not there.issuperset(LATER):
            arrays, ranks = predictions_of(store, row), ranks_file(store.folder, row)
            if arrays is not None:
                row["metrics"] = {**later_metrics(arrays), **row["metrics"]}
            elif ranks.exists():
                row["metrics"] = {**powers(read_ranks(ranks)), **row["metrics"]}
        complete.append(row)
    return complete


# ------------------------------------------------------------------------------ the comparison


@dataclass(frozen=True)
class ComparedCell:
    """Mean and population sd of n values, and how it compares with the best of its column.

    `p_value` is that of a difference from the best, corrected for the comparisons of the column;
    None for the one that others are tested against, and where nothing was tested.
    `rank` is the average over data sets.
    """

    mean: float
    sd: float | None
    n: int
    best: bool = False
    p_value: float | None = None
    rank: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A table of methods by metrics, its cells by (method, metric), and how it is to be read.

    `tests` says over what each metric was tested; `bold` holds the cells that are the best of
    their column, or not significantly worse.
    """

    suite: str
    profile: str
    titles: Mapping[str, str]
    metrics: tuple[str, ...]
    cells: Mapping[tuple[str, str], ComparedCell]
    tests: Mapping[str, str]
    caption: str
    level: float

    def bold(self, method: str, metric: str) -> bool:
        """Return whether a cell is the best of its column, or not significantly worse."""
        cell = self.cells[method, metric]
        return cell.best or (cell.p_value is not None and cell.p_value > self.level)

    def head(self, metric: str) -> str:
        """Return the title of a column, with an arrow in the direction of better."""
        title = column_title(metric, with_set=True, suite=self.suite)
        return f"{title} {'↑' if is_higher_better(metric) else '↓'}"


def compare_methods(
    table: BenchTable,
    *stores: Store,
    methods: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    level: float = 0.05,
) -> Comparison:
    """Return the comparison of the methods of a table, all by default.

    `stores` are where predictions are looked for; none tests over seeds alone. OOD Brier scores
    stand beside the Brier score of known inputs that they were bought with. ValueError if a method
    or a metric has no number.
    """
    there = dict.fromkeys(name for line in table.lines for name in line.cells)
    if methods is not None:
        refuse_unknown("method", methods, [line.name for line in table.lines])
    if table.crossed:
        there = dict.fromkeys(name.partition("/")[0] for name in there)
    if metrics is not None:
        if "price" in metrics and (unknown := no_price(table)):
            raise ValueError(unknown)
        refuse_unknown("metric", metrics, there)
        if any(name.startswith("brier_ood") for name in metrics) and "brier_id" in there:
            metrics = list(dict.fromkeys([*metrics, "brier_id"]))
    if table.crossed:
        return _compare_crossed(table, methods, metrics or _CROSSED, level)
    lines = [ln for ln in table.lines if ln.cells and (methods is None or ln.name in methods)]
    if metrics is None:
        sets = tuple(table.groups) or table.ood
        metrics = [*_KNOWN, *(f"{kind}/{split}" for split in sets for kind in _RANKED)]
        metrics = [name for name in metrics if all(name in line.cells for line in lines)]
    predictions, seeds = _load_predictions(stores, lines), _tested_seeds(lines)
    cells: dict[tuple[str, str], ComparedCell] = {}
    tests = {}
    for metric in metrics:
        of_metric = [line for line in lines if metric in line.cells]
        if not of_metric:
            raise ValueError(
                f"metrics: none of the methods has {metric!r} in all of its seeds; leave it out"
            )
        tests[metric] = over = "rows" if _has_scores(metric, of_metric, predictions) else "seeds"
        enough = [ln for ln in of_metric if over == "rows" or _is_testable(ln, seeds)]
        best, first = (_best(of, metric) for of in (of_metric, enough or of_metric))
        p_values = {}
        for second in of_metric:
            if second is not first and (over == "rows" or second in enough):
                p = (
                    _compare_rows(metric, first, second, predictions, table)
                    if over == "rows"
                    else _compare_seeds(metric, first, second)
                )
                if p is not None:
                    p_values[second.name] = p
        adjusted = dict(zip(p_values, adjust_holm(list(p_values.values())).tolist(), strict=True))
        if first is not best:
            adjusted[first.name] = 1.0
        for line in of_metric:
            cell = line.cells[metric]
            cells[line.name, metric] = ComparedCell(
                cell.mean,
                cell.sd if len(cell.values) > 1 else None,
                len(cell.values),
                cell.mean == best.cells[metric].mean,
                None if line is best else adjusted.get(line.name),
            )
    titles = {line.name: line.title for line in lines}
    made = Comparison(table.suite, table.profile, titles, tuple(metrics), cells, tests, "", level)
    return replace(made, caption=_caption(made, table, lines))


def _best(lines: Sequence[Line], metric: str) -> Line:
    sign = 1 if is_higher_better(metric) else -1
    return max(lines, key=lambda line: sign * line.cells[metric].mean)


def _tested_seeds(lines: Sequence[Line]) -> tuple[int, ...]:
    """Return the seeds of one line, of which most lines have enough to be tested."""
    return max(
        (line.seeds for line in lines),
        key=lambda seeds: sum(_is_testable(line, seeds) for line in lines),
    )


def _is_testable(line: Line, seeds: Iterable[int]) -> bool:
    """Return whether a line has enough of these seeds to be tested over them."""
    return len({*line.seeds} & {*seeds}) >= _FEWEST_SEEDS


def _compare_seeds(metric: str, first: Line, second: Line) -> float | None:
    """Return the p-value over the seeds that both have; None of too few, or of infinities."""
    by_seed = [
        dict(zip(line.seeds, line.cells[metric].values, strict=True)) for line in (first, second)
    ]
    common = [seed for seed in by_seed[0] if seed in by_seed[1]]
    values = [[of[seed] for seed in common] for of in by_seed]
    if len(common) < _FEWEST_SEEDS or not np.isfinite(values).all():
        return None
    return compare_over_seeds(*values)


Predictions = Mapping[tuple[str, int], Arrays]


def _load_predictions(stores: Iterable[Store], lines: Iterable[Line]) -> Predictions:
    """Labels and uncertainties, or their ranks, of every line and seed that has any."""
    names = {line.name for line in lines}
    latest = {
        (row["method"], row["seed"]): (store, row)
        for store in stores
        for row in store.rows()
        if row["method"] in names
    }
    found = {}
    for key, (store, row) in latest.items():
        ranks = ranks_file(store.folder, row)
        found[key] = read_ranks(ranks) if ranks.exists() else predictions_of(store, row)
    return {key: arrays for key, arrays in found.items() if arrays is not None}


def _has_scores(metric: str, lines: Iterable[Line], predictions: Predictions) -> bool:
    """Return whether a metric is an AUROC whose rows are the same everywhere, and there."""
    arrays = [predictions.get((line.name, seed)) for line in lines for seed in line.seeds]
    if not metric.startswith("auroc/") or not arrays or None in arrays:
        return False
    labels = [of["test"]["y"] for of in arrays if of is not None]
    return all(np.array_equal(y, labels[0]) for y in labels)


def _compare_rows(
    metric: str, first: Line, second: Line, predictions: Predictions, table: BenchTable
) -> float | None:
    common = [seed for seed in first.seeds if seed in second.seeds]
    if not common:
        return None
    split = metric.removeprefix("auroc/")
    sets = table.groups.get(split, (split,))

    def scores(line: Line) -> list[list[tuple[np.ndarray, np.ndarray]]]:
        arrays = [predictions[line.name, seed] for seed in common]
        return [
            [(of["test"]["uncertainty"], of[f"{OOD_PREFIX}{s}"]["uncertainty"]) for of in arrays]
            for s in sets
        ]

    return compare_aurocs(scores(first), scores(second)).p_value


def _compare_crossed(
    table: BenchTable, methods: Sequence[str] | None, metrics: Sequence[str], level: float
) -> Comparison:
    """Compare by data set: means over its classifiers and OOD sets, where all methods have one."""
    cells: dict[tuple[str, str], ComparedCell] = {}
    rankings: dict[str, Ranking] = {}
    names = list(methods or table.in_groups("bare", "ours", "baseline"))
    left: list[str] = []
    for metric in metrics:
        values = _by_data_set(table, metric, names)
        if methods is None:  # what lacks some data sets would take them from all others
            left += [name for name in values if values[name].isna().any() and name not in left]
    names = [name for name in names if name not in left]
    n, lines = 0, 0
    for metric in metrics:
        values = _by_data_set(table, metric, names, common=True)
        n, lines = len(values), max(lines, values.attrs["lines"])
        if n == 0:
            raise ValueError(
                f"methods must share a data set and classifier with a number of {metric!r}, got "
                f"{names}; choose fewer with --methods"
            )
        means = {name: float(values[name].mean()) for name in names}
        best = max(means, key=lambda name: means[name] * (1 if is_higher_better(metric) else -1))
        others = [name for name in names if name != best]
        p = adjust_holm([compare_over_data_sets(values[best], values[name]) for name in others])
        adjusted = dict(zip(others, p.tolist(), strict=True))
        if n > 1 and len(names) > 2:
            rankings[metric] = rank_methods(values.to_numpy(), is_higher_better(metric), level)
        ranks = rankings[metric].ranks if metric in rankings else [None] * len(names)
        for name, rank in zip(names, ranks, strict=True):
            cells[name, metric] = ComparedCell(
                means[name],
                None,
                n,
                name == best,
                adjusted.get(name),
                None if rank is None else float(rank),
            )
    titles = {name: str(table.methods["title"][name]) for name in names}
    sentences = [
        f"{_title(table.suite)}, profile {table.profile}: means over {n} data sets, each the mean "
        f"of its lines ({lines} data sets with classifier and OOD set in all); data sets that are "
        "made of the same rows count as one.",
        f"Bold: the best of a column, and what is not significantly worse at the level {level:g} "
        f"by {_TESTS['data sets']}, two-sided, with Holm's correction for the column.",
    ]
    if rankings:
        friedman = "; ".join(
            f"{metric_title(metric)} {_p_text(of.p_value)}" for metric, of in rankings.items()
        )
        distance = next(iter(rankings.values())).critical_difference
        sentences.append(
            "In brackets the average rank; two methods differ if their ranks are "
            f"{distance:.2f} apart (Nemenyi). Friedman's test that all are equal: {friedman}."
        )
    if left:
        missing = ", ".join(str(table.methods["title"][name]) for name in left)
        sentences.append(f"Left out, without a number on some data sets: {missing}.")
    tests = dict.fromkeys(metrics, "data sets")
    return Comparison(
        table.suite,
        table.profile,
        titles,
        tuple(metrics),
        cells,
        tests,
        " ".join(sentences),
        level,
    )


def _by_data_set(
    table: BenchTable, metric: str, names: Sequence[str], *, common: bool = False
) -> DataFrame:
    """Return means by source of the data and method; with `common` of lines that all have."""
    pairs = table.pairs if metric in OF_OOD else drop_repeats(table.pairs)
    values = pairs.reindex(columns=[(metric, name) for name in names]).astype(float)
    values.columns = list(names)
    if common:
        values = values[np.isfinite(values.to_numpy()).all(axis=1)]
    sources = _sources(table)
    by = values.index.get_level_values("dataset").map(lambda name: sources.get(name, name))
    of_all = values.groupby(by, sort=False).agg(lambda of: of.mean() if of.notna().all() else None)
    of_all = of_all.astype(float).round(_DIGITS)
    of_all.attrs["lines"] = len(values)
    return of_all


def _sources(table: BenchTable) -> dict[str, str]:
    """Where the rows of each data set come from: variants of one set are no independent data."""
    if table.suite not in suite_names():
        return {}
    sources = {name: data.loader for name, data in load_suite(table.suite).datasets.items()}
    return sources if len(set(sources.values())) > 1 else {}


def _caption(made: Comparison, table: BenchTable, lines: Sequence[Line]) -> str:
    by_seeds: dict[tuple[int, ...], list[str]] = {}
    for line in lines:
        by_seeds.setdefault(line.seeds, []).append(line.title)
    most = max(by_seeds, key=lambda seeds: len(by_seeds[seeds]))
    seeds = f"seed{'s' * (len(most) > 1)} {', '.join(map(str, most))}"
    others = [
        f"{', '.join(titles)}: {', '.join(map(str, of))}"
        for of, titles in by_seeds.items()
        if of != most
    ]
    title, rows = _title(table.suite), captions_of(table.suite).rows
    text = f"{title}, profile {table.profile}: mean ± population standard deviation over {seeds}"
    sentences = [text + (f" ({'; '.join(others)})." if others else ".")]
    over = {kind: [m for m, of in made.tests.items() if of == kind] for kind in ("rows", "seeds")}
    tested = [f"{_TESTS[kind]} ({_metric_names(of)})" for kind, of in over.items() if of]
    reference = _tested_seeds(lines)
    testable = sum(_is_testable(line, reference) for line in lines)
    if not over["rows"] and testable < 2:
        sentences.append(
            f"Bold: the best of a column; fewer than {_FEWEST_SEEDS} seeds in common are not "
            "enough to test differences."
        )
    else:
        sentences.append(
            "Bold: the best of a column, and what is not significantly worse at the level "
            f"{made.level:g} by {' or '.join(tested)}, two-sided, with Holm's correction for the "
            "column."
        )
    if over["seeds"] and 2 <= testable < len(lines):
        sentences.append(
            f"Methods with fewer than {_FEWEST_SEEDS} of the seeds "
            f"{', '.join(map(str, reference))} are not tested over seeds, and bold where they are "
            "the best alone; all others are tested against the best of the others."
        )
    if over["rows"]:
        sentences.append(f"A test over {rows} says nothing of other seeds.")
    used = {metric.partition("/")[2] for metric in made.metrics}
    if used & set(table.groups):
        sentences.append(f"Means over OOD sets: {group_sets(table)}.")
    if any(metric.startswith("fpr95") for metric in made.metrics):
        sentences.append("FPR95: share of known rows flagged where 95 % of the OOD rows are.")
    if table.note:
        sentences.append(table.note)
    return " ".join(sentences)


def _metric_names(metrics: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(metric_title(metric) for metric in metrics))


def _title(suite: str) -> str:
    return load_suite(suite).title if suite in suite_names() else suite


def _p_text(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)


# --------------------------------------------------------------------------------- as text


def write_csv(made: Comparison) -> str:
    """Return a line for each method and metric; p-values are corrected, and empty for the best."""
    from pandas import DataFrame

    rows = []
    for (method, metric), cell in made.cells.items():
        kind, _, split = metric.partition("/")
        place = made.suite, made.profile, method, made.titles[method], kind, split
        numbers = cell.mean, cell.sd, cell.n, cell.rank, int(cell.best), cell.p_value
        rows.append((*place, *numbers, made.tests[metric], int(made.bold(method, metric))))
    heads = "suite profile method title metric set mean sd n rank best p_value test bold".split()
    return str(DataFrame(rows, columns=heads).to_csv(index=False, lineterminator="\n"))


def write_markdown(made: Comparison) -> str:
    """Return the caption, and the table with bold cells."""
    heads = ["method", *map(made.head, made.metrics)]
    lines = [heads, ["---", *["--:"] * len(made.metrics)]]
    for method, title in made.titles.items():
        texts = [
            " ".join(f"**{text}**" if i == 0 and bold else text for i, text in enumerate(of))
            for of, bold in _texts(made, method)
        ]
        lines.append([escape(title), *texts])
    grid = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{escape(made.caption)}\n\n{grid}\n"


def write_latex(made: Comparison) -> str:
    r"""Return the table for LaTeX with the package booktabs, its caption and label."""
    lines = [" & ".join(map(_latex, ["Method", *map(made.head, made.metrics)])) + r" \\"]
    for method, title in made.titles.items():
        texts = []
        for of, bold in _texts(made, method):
            mean, *rest = map(_latex, of)
            mean = rf"\textbf{{{mean}}}" if bold else mean
            texts.append(" ".join([mean, *(rf"{{\scriptsize {text}}}" for text in rest)]))
        lines.append(" & ".join([_latex(title), *texts]) + r" \\")
    head, *rows = lines
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            rf"\caption{{{_latex(made.caption)}}}",
            rf"\label{{tab:{made.suite}-{made.profile}}}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * len(made.metrics)}}}",
            *(r"\toprule", head, r"\midrule", *rows, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _texts(made: Comparison, method: str) -> Iterator[tuple[list[str], bool]]:
    """Mean, and what stands beside it: standard deviation, average rank."""
    for metric in made.metrics:
        cell = made.cells.get((method, metric))
        if cell is None:
            yield [""], False
            continue
        beside = [] if cell.sd is None else [spread_text(metric, cell.sd)]
        beside += [] if cell.rank is None else [f"({cell.rank:.1f})"]
        yield [metric_number(metric, cell.mean), *beside], made.bold(method, metric)


def _latex(text: str) -> str:
    return "".join(_BASIC.get(letter, letter) for letter in text)
