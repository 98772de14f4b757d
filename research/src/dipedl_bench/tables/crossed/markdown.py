"""A crossed suite as Markdown: measures, summaries, every pair, every method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..formatting import grid
from ..table import BenchTable, Line
from .intervals import HEADS, interval_rows, problem_rows
from .measures import Measure, measures
from .pairs import OF_PAIR, Column, Crossed, Summary, crossed, summary

#: Metrics of which ablations and candidates are shown line by line.
_OF_PARTS = ("auroc", "brier_ood")
_VERDICTS = {True: "met", False: "missed", None: "not run"}
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


def crossed_blocks(table: BenchTable) -> list[str]:
    """Blocks of Markdown of the table of a crossed suite."""
    found = crossed(table)
    main = [c for c in found.columns if c.group in ("bare", "ours", "baseline")]
    rest = [c for c in found.columns if c.group in ("ablation", "candidate")]
    blocks = []
    if judged := measures(found):
        blocks += ["## What was asked", measure_list(judged)]
    blocks += interval_blocks(found)
    rows = [
        [title, column.group, *texts]
        for column, (title, *texts) in zip(
            found.columns, summary_rows(found, found.columns), strict=True
        )
    ]
    blocks += ["## All methods, over all lines", grid(["method", "group", *SUMMARY], rows)]
    for metric, title in PAIR_TITLES.items():
        blocks += [f"## {title}", _by_pair(found, main, metric)]
        if rest and metric in _OF_PARTS:
            blocks += [f"### {title} of parts", _by_pair(found, rest, metric)]
    for metric, title in KNOWN_TITLES.items():
        blocks += [f"## {title}", _by_pair(found, main, metric)]
    blocks += ["## Regret of the selection", _regret(found)]
    if refused := [line for line in table.lines if line.refused]:
        why = [[f"{ln.dataset}, {ln.classifier}", ln.name, ln.refused] for ln in refused]
        blocks += ["## Refused", grid(["", "method", "why"], why)]
    return [*blocks, "## Cost, processor seconds", _costs(found)]


def interval_blocks(found: Crossed, mark: str = "##") -> list[str]:
    """Write coverage of intervals, by method and by line; nothing where no probability is known."""
    rows = interval_rows(found)
    if not rows:
        return []
    return [
        f"{mark} Intervals: share of the true class probabilities that they hold",
        grid(["method", *HEADS], rows),
        f"{mark} 95 % intervals by line, without a spread → with",
        grid(*problem_rows(found)),
    ]


def measure_list(found: Sequence[Measure]) -> str:
    """Measures as a list, each miss named."""
    lines = []
    for measure in found:
        lines.append(measure_line(measure))
        lines += [f"  - misses: {miss}" for miss in measure.misses]
    return "\n".join(lines)


def measure_line(measure: Measure) -> str:
    """Verdict, statement and what came out."""
    return f"- **{verdict(measure)}**: {measure.statement}. Found: {measure.found}."


def verdict(measure: Measure) -> str:
    """The verdict in a word or two."""
    return _VERDICTS[measure.met]


def number(value: float) -> str:
    """Three decimals, or nothing for what is not there."""
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if np.isfinite(value) else "∞"


def signed(value: float, form: str = "+.3f") -> str:
    """With its sign; nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:{form}}".replace("-", "−")


#: Head of a column of the summary -> its text.
SUMMARY: dict[str, Callable[[Summary], str]] = {
    "lines": lambda s: str(s.lines),
    "AUROC": lambda s: number(s.auroc),
    "bare AUROC there": lambda s: number(s.auroc_bare),
    "difference": lambda s: signed(s.auroc - s.auroc_bare),
    "worst line": lambda s: signed(s.worst),
    "worst at": lambda s: s.worst_at,
    "OOD Brier, share of the bare": lambda s: signed(s.brier_ratio, ".0%"),
    "ID Brier, cost": lambda s: signed(s.brier_cost, "+.1%"),
    "own errors, AUROC": lambda s: number(s.error_auroc),
}


def summary_rows(
    found: Crossed, columns: Sequence[Column], heads: Iterable[str] = SUMMARY
) -> list[list[str]]:
    """A row for each method: its title, and the texts below heads of the summary."""
    of = [summary(found, column.name) for column in columns]
    texts = ([SUMMARY[head](one) for head in heads] for one in of)
    return [[column.title, *row] for column, row in zip(columns, texts, strict=True)]


def _by_pair(found: Crossed, columns: Sequence[Column], metric: str) -> str:
    return grid(["", *(column.title for column in columns)], pair_rows(found, columns, metric))


def pair_rows(found: Crossed, columns: Sequence[Column], metric: str) -> list[list[str]]:
    """A metric of every pair and method as text, titles in front, and the means."""
    rows = []
    for pair in found.of(metric):
        title = str(pair) if metric in OF_PAIR else pair.place
        cells = (cell_text(found.line(pair, c.name), metric, pair.ood) for c in columns)
        rows.append([title, *cells])
    means = (found.values(c.name, metric, found.of(metric)) for c in columns)
    return [*rows, ["mean", *map(_column_mean, means)]]


def _column_mean(values: np.ndarray) -> str:
    """Mean of the numbers that are there, and how many these are if not all."""
    there = values[~np.isnan(values)]
    few = f" ({len(there)} of {len(values)})" if len(there) < len(values) else ""
    return number(float(there.mean())) + few if len(there) else ""


def cell_text(line: Line | None, metric: str, ood: str) -> str:
    """Mean and half-width of the 95 % interval: over seeds, or over rows with a single seed."""
    if line is None:
        return ""
    if line.refused:
        return "refused"
    cell = line.cells.get(f"{metric}/{ood}" if metric in OF_PAIR else metric)
    if cell is None:
        return ""
    ends = cell.over_seeds or cell.over_images
    return number(cell.mean) + (f" ±{number((ends[1] - ends[0]) / 2)}" if ends else "")


def _regret(found: Crossed) -> str:
    names = [column.name for column in found.named("candidate")]
    rows = []
    for pair, value in found.regret().items():
        best = max(names, key=lambda name: np.nan_to_num(found.value(pair, name, "auroc"), nan=-1))
        rows.append([str(pair), best, selected(found.line(pair, found.ours)), signed(value)])
    if not rows:
        return "The candidates were not run."
    return grid(["", "best candidate, by OOD labels", "chosen", "regret"], rows)


def selected(line: Line | None) -> str:
    """Return the choices of a selection, each once."""
    return "" if line is None else ", ".join(dict.fromkeys(line.selected))


def _costs(found: Crossed) -> str:
    rows = []
    for column in found.columns:
        lines = (found.line(pair, column.name) for pair in found.known())
        spent = [line.spent for line in lines if line is not None and line.spent]
        if spent and ":" not in column.name:
            sums = [sum(of[step] for of in spent) for step in ("train", "classifier", "predict")]
            rows.append([column.title, str(len(spent)), *(f"{s:.2f}" for s in sums)])
    heads = ["method", "classifiers", "fit", "of that, fits of the classifier", "predict"]
    return grid(heads, rows)
