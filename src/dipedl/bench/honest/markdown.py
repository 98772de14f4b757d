"""The study as Markdown: measures, summaries, every line, every method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..tables.markdown import grid
from .measures import Measure, measures, regret
from .table import Column, Line, StudyTable, Summary, summary

__all__ = ["markdown", "measure_list", "number", "signed", "verdict"]

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


def markdown(table: StudyTable) -> str:
    """All tables of a study.

    Parameters
    ----------
    table : StudyTable
        From `dipedl.bench.honest.table.study_table`.
    """
    main = [c for c in table.columns if c.group in ("bare", "ours", "baseline")]
    rest = [c for c in table.columns if c.group in ("ablation", "candidate")]
    blocks = ["## What was asked", measure_list(measures(table)), "## All methods, over all lines"]
    blocks += [_summaries(table)]
    for metric, title in PAIR_TITLES.items():
        blocks += [f"## {title}", _lines(table, table.lines, main, metric)]
        if rest and metric in _OF_PARTS:
            blocks += [f"### {title} of parts", _lines(table, table.lines, rest, metric)]
    for metric, title in KNOWN_TITLES.items():
        blocks += [f"## {title}", _lines(table, table.known(), main, metric, with_ood=False)]
    blocks += ["## Regret of the selection", _regret(table)]
    if table.refused:
        blocks += ["## Refused", _refused(table)]
    blocks += ["## Cost, processor seconds", _costs(table)]
    return "\n\n".join(blocks) + "\n"


def measure_list(found: Sequence[Measure]) -> str:
    """Measures as a list, each miss named."""
    lines = []
    for measure in found:
        lines.append(f"- **{verdict(measure)}**: {measure.statement}. Found: {measure.found}.")
        lines += [f"  - misses: {miss}" for miss in measure.misses]
    return "\n".join(lines)


def verdict(measure: Measure) -> str:
    """The verdict in a word or two."""
    return _VERDICTS[measure.met]


def number(value: float, digits: int = 3) -> str:
    """Three decimals, or nothing for what is not there."""
    if np.isnan(value):
        return ""
    return f"{value:.{digits}f}" if np.isfinite(value) else "∞"


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


def _summaries(table: StudyTable) -> str:
    rows = []
    for column in table.columns:
        of = summary(table, column.name)
        rows.append([column.title, column.group, *(show(of) for show in SUMMARY.values())])
    return grid(["method", "group", *SUMMARY], rows)


def _lines(
    table: StudyTable,
    lines: Iterable[Line],
    columns: Sequence[Column],
    metric: str,
    with_ood: bool = True,
) -> str:
    rows = [
        [_title(line, with_ood), *(cell_text(table, line, c.name, metric) for c in columns)]
        for line in lines
    ]
    means = [_column_mean(table, lines, column.name, metric) for column in columns]
    rows.append(["mean", *means])
    return grid(["", *(column.title for column in columns)], rows)


def _column_mean(table: StudyTable, lines: Iterable[Line], method: str, metric: str) -> str:
    values = table.values(method, metric, lines)
    there = values[~np.isnan(values)]
    few = f" ({len(there)} of {len(values)})" if len(there) < len(values) else ""
    return number(float(there.mean())) + few if len(there) else ""


def cell_text(table: StudyTable, line: Line, method: str, metric: str) -> str:
    """Mean and half-width of the 95 % interval: over seeds, or over rows with a single seed."""
    if (line.dataset, line.classifier, method) in table.refused:
        return "refused"
    cell = table.cell(line, method, metric)
    if cell is None:
        return ""
    ends = cell.over_seeds or cell.over_images
    return number(cell.mean) + (f" ±{number((ends[1] - ends[0]) / 2)}" if ends else "")


def _title(line: Line, with_ood: bool) -> str:
    return str(line) if with_ood else f"{line.dataset}, {line.classifier}"


def _regret(table: StudyTable) -> str:
    found = regret(table)
    names = [column.name for column in table.named("candidate")]
    rows = []
    for line, value in found.items():
        best = max(names, key=lambda name: np.nan_to_num(table.value(line, name, "auroc"), nan=-1))
        chosen = table.chosen.get((line.dataset, line.classifier, "default"), ())
        rows.append([str(line), best, ", ".join(dict.fromkeys(chosen)), signed(value)])
    if not rows:
        return "The candidates were not run."
    return grid(["", "best candidate, by foreign labels", "chosen", "regret"], rows)


def _refused(table: StudyTable) -> str:
    rows = [[f"{data}, {clf}", method, why] for (data, clf, method), why in table.refused.items()]
    return grid(["", "method", "why"], rows)


def _costs(table: StudyTable) -> str:
    rows = []
    for column in table.columns:
        found = [
            cost
            for line in table.known()
            if (cost := table.costs.get((line.dataset, line.classifier, column.name)))
        ]
        if found and ":" not in column.name:
            sums = [sum(cost[step] for cost in found) for step in ("fit", "classifier", "predict")]
            rows.append([column.title, str(len(found)), *(f"{s:.2f}" for s in sums)])
    heads = ["method", "classifiers", "fit", "of that, fits of the classifier", "predict"]
    return grid(heads, rows)
