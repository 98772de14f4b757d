"""How numbers, metrics and sets are written, in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..results.scores import SHIFTED_PREFIX
from ..spec.captions import captions_of
from .table import BenchTable, Estimate

#: A spread over seeds below which the third decimal says something, and the fourth.
_STABLE = (0.005, 0.0005)
_METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "worst_recall": "worst recall",
    "brier_id": "Brier",
    "nll": "NLL",
    "ece": "ECE",
    "adaptive_ece": "adaptive ECE",
    "errors_avoided_10": "errors avoided (10 %)",
    "auroc": "AUROC",
    "aupr": "AUPR",
    "aupr_in": "AUPR, ID positive",
    "fpr95": "FPR95",
    "brier_ood": "OOD Brier",
    "auroc_confidence": "AUROC of confidence",
}
#: What is printed where the paper's number differs and nobody wrote down why.
UNEXPLAINED = "unexplained"


def metric_title(
    name: str, *, with_set: bool = False, suite: str = "", classes: Sequence[str] = ()
) -> str:
    """Title of a metric such as ``auroc/kmnist``, with its set if asked for.

    `suite` and `classes` say how sets and classes are called where that is not the same everywhere.
    """
    kind, _, split = name.partition("/")
    title, i = _METRICS.get(kind, kind), kind.removeprefix("recall_")
    if i != kind and i.isdigit():
        title = f"recall of {classes[int(i)] if int(i) < len(classes) else f'class {i}'}"
    return f"{title}, {set_title(split, suite)}" if with_set and split else title


def metric_list(names: Iterable[str], suite: str = "", classes: Sequence[str] = ()) -> str:
    """Titles of metrics, by set, as ``accuracy, Brier; on K-MNIST AUROC, AUPR``."""
    found: dict[str, list[str]] = {}
    for name in names:
        title = metric_title(name, classes=classes)
        found.setdefault(name.partition("/")[2], []).append(title)
    parts = (
        (f"on {set_title(split, suite)} " if split else "", kinds) for split, kinds in found.items()
    )
    return "; ".join(where + ", ".join(kinds) for where, kinds in parts)


def set_title(name: str, suite: str = "") -> str:
    """Title of a set, that of the known rows for ""; its own name if it has no other."""
    captions = captions_of(suite)
    if not name:
        return f"Known {captions.rows}"
    name = name.removeprefix(SHIFTED_PREFIX)
    return captions.sets.get(name, name)


def set_heading(table: BenchTable, name: str) -> str:
    """Title of a set with what is needed to read its numbers."""
    title, rows = set_title(name, table.suite), captions_of(table.suite).rows
    if not name:
        return f"{title}: {table.n['test']:,} of the test set"
    if name.startswith(SHIFTED_PREFIX):
        return f"{title}: {table.n[name]:,} {rows} with known classes, from elsewhere"
    n_in, n_out = table.n["test"], table.n[f"ood/{name}"]
    guessing = number(n_out / (n_in + n_out))
    return f"{title}: {n_out:,} {rows}; AUPR of guessing {guessing}"


def number(value: float | None) -> str:
    """Four decimals, or nothing."""
    if value is None:
        return ""
    return f"{value:.4f}" if np.isfinite(value) else str(value)


def three_decimals(value: float) -> str:
    """Three decimals, or nothing for what is not there."""
    if np.isnan(value):
        return ""
    return f"{value:.3f}" if np.isfinite(value) else "∞"


def signed(value: float, form: str = "+.3f") -> str:
    """With its sign; nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:{form}}".replace("-", "−")


def with_decimals_of(value: float, *cells: Estimate) -> str:
    """A value with two to four decimals: those that other seeds would share, of each cell."""
    spread = max(cell.spread for cell in cells)
    return f"{value:.{2 + sum(spread < limit for limit in _STABLE)}f}"


def stable(cell: Estimate) -> str:
    """A mean that stands alone, with the decimals that other seeds would share."""
    return with_decimals_of(cell.mean, cell)


def stable_with_sd(cell: Estimate) -> str:
    """A mean that stands alone, ± standard deviation where there are several seeds."""
    return stable(cell) + (f" ±{with_decimals_of(cell.sd, cell)}" if len(cell.values) > 1 else "")


def measured(cell: Estimate | None) -> str:
    """Ours in a table: mean, ± standard deviation, and a mark if it differs from the paper's."""
    if cell is None:
        return ""
    spread = f" ±{number(cell.sd)}" if len(cell.values) > 1 else ""
    return number(cell.mean) + spread + (" *" if cell.differs else "")


def printed(cell: Estimate | None) -> str:
    """The paper's, with as many decimals as it printed."""
    if cell is None or cell.paper is None:
        return ""
    digits, sd = cell.paper.decimals, cell.paper.sd
    spread = "" if sd is None else f" ±{sd:.{digits}f}"
    return f"{cell.paper.mean:.{digits}f}{spread}"


def difference(cell: Estimate | None) -> str:
    """Ours less the paper's, with its sign."""
    if cell is None or cell.difference is None:
        return ""
    text = f"{cell.difference:+.4f}"
    return "0.0000" if float(text) == 0 else text.replace("-", "−")


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, as fits."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def cost_texts(cost: Mapping[str, Any], without: str = "") -> list[str]:
    """Times of training, of scoring and of the processor, memory, passes, and parameters if any."""
    return [
        *(duration(cost[step]) for step in ("train_seconds", "score_seconds", "cpu_seconds")),
        f"{cost['peak_memory_mb']:,.0f} MiB",
        str(cost["forward_passes"]),
        without if cost["n_parameters"] is None else f"{cost['n_parameters']:,}",
    ]


def differences(table: BenchTable) -> Iterator[tuple[str, str, str]]:
    """Why cells differ from the paper's: method, titles of its metrics, and one sentence."""
    for line in table.lines:
        found: dict[str, list[str]] = {}
        for name, cell in line.cells.items():
            if cell.differs:
                found.setdefault(cell.why or UNEXPLAINED, []).append(name)
        for sentence, names in found.items():
            yield line.title, metric_list(names, table.suite, table.classes), sentence


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; all columns but the first are numbers."""
    rule = ["---", *["--:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(map(escaped, row))} |" for row in (heads, rule, *rows))


def escaped(text: str) -> str:
    """Text without marks of Markdown."""
    return text.replace("|", "\\|").replace("*", "\\*")
