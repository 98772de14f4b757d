"""Texts of numbers, metrics and sets, in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..results.paper import Published
from ..results.scores import SHIFTED_PREFIX
from ..spec.captions import captions_of
from .table import BenchTable, Estimate, Line

if TYPE_CHECKING:
    from pandas import DataFrame

#: A spread over seeds below which the third decimal says something, and the fourth.
_STABLE = (0.005, 0.0005)
_METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "worst_recall": "worst recall",
    "brier_id": "Brier",
    "price": "price",
    "nll": "NLL",
    "ece": "ECE",
    "adaptive_ece": "adaptive ECE",
    "errors_avoided_10": "errors avoided (10 %)",
    "aurc": "AURC",
    "augrc": "AUGRC",
    "auroc": "AUROC",
    "caught_5": "caught at 5 %",
    "aupr": "AUPR",
    "aupr_in": "AUPR, ID positive",
    "fpr95": "FPR95",
    "brier_ood": "OOD Brier",
    "auroc_confidence": "AUROC of confidence",
}


def metric_title(
    name: str, *, with_set: bool = False, suite: str = "", classes: Sequence[str] = ()
) -> str:
    """Return the title of a metric such as ``auroc/kmnist``, with its set if asked for.

    `suite` and `classes` say how sets and classes are called where that is not the same everywhere.
    """
    kind, _, split = name.partition("/")
    title, i = _METRICS.get(kind, kind), kind.removeprefix("recall_")
    if i != kind and i.isdigit():
        title = f"recall of {classes[int(i)] if int(i) < len(classes) else f'class {i}'}"
    return f"{title}, {set_title(split, suite)}" if with_set and split else title


def column_title(name: str, **titles: Any) -> str:
    """Return the title of a metric above numbers as `metric_number` writes them."""
    return metric_title(name, **titles) + (f" × {scale}" if (scale := scale_of(name)) != 1 else "")


def scale_of(name: str) -> int:
    """Return by how much a metric is multiplied in tables: areas of risk by 1000, as elsewhere."""
    return 1000 if name.startswith(("aurc", "augrc")) else 1


def metric_list(names: Iterable[str], suite: str = "", classes: Sequence[str] = ()) -> str:
    """Return titles of metrics, by set, as ``accuracy, Brier; on K-MNIST AUROC, AUPR``."""
    by_set: dict[str, list[str]] = {}
    for name in names:
        where = f"on {set_title(split, suite)} " if (split := name.partition("/")[2]) else ""
        by_set.setdefault(where, []).append(metric_title(name, classes=classes))
    return "; ".join(where + ", ".join(kinds) for where, kinds in by_set.items())


def set_title(name: str, suite: str = "") -> str:
    """Return the title of a set, of the known rows for ""; its own name if it has no other."""
    captions = captions_of(suite)
    name = name.removeprefix(SHIFTED_PREFIX)
    return captions.sets.get(name, name) if name else f"Known {captions.rows}"


def set_heading(table: BenchTable, name: str) -> str:
    """Return the title of a set with what is needed to read its numbers."""
    title, rows = set_title(name, table.suite), captions_of(table.suite).rows
    if not name:
        return f"{title}: {table.n['test']:,} of the test set"
    if name.startswith(SHIFTED_PREFIX):
        return f"{title}: {table.n[name]:,} {rows} with known classes, from elsewhere"
    n_in, n_out = table.n["test"], table.n[f"ood/{name}"]
    return f"{title}: {n_out:,} {rows}; AUPR of guessing {number(n_out / (n_in + n_out))}"


def group_sets(table: BenchTable) -> str:
    """Return which OOD sets are near and far, as ``near OOD is CIFAR-100; far OOD is SVHN``."""
    return "; ".join(
        f"{set_title(group, table.suite)} is "
        + ", ".join(set_title(name, table.suite) for name in sets)
        for group, sets in table.groups.items()
    )


def number(value: float | None) -> str:
    """Return four decimals, or nothing."""
    if value is None:
        return ""
    return f"{value:.4f}" if np.isfinite(value) else str(value)


def metric_number(name: str, value: float | None) -> str:
    """Return a value of a metric below its `column_title`, or nothing."""
    if name == "price" and value is not None:
        return price_text(value)
    scale = scale_of(name)
    return number(value) if value is None or scale == 1 else f"{scale * value:.3f}"


def spread_text(name: str, sd: float) -> str:
    """Return the standard deviation of a metric as it stands behind its mean."""
    return "±" + metric_number(name, sd).removeprefix("+")


def three_decimals(value: float) -> str:
    """Return three decimals, or nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:.3f}" if np.isfinite(value) else "∞"


def with_sign(value: float, form: str = "+.3f") -> str:
    """Return a value with its sign; nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:{form}}".replace("-", "−")


def no_price(table: BenchTable) -> str:
    """Return that no price can be computed, as a sentence; "" where one is, or there is no need."""
    names = {name for line in table.lines for name in line.cells}
    if "price" in names or not any(name.startswith("brier_ood/") for name in names):
        return ""
    return (
        "No price of these OOD Brier scores can be computed: there is no row of max softmax on "
        "a network of these methods."
    )


def price_text(value: float) -> str:
    """Return a price in per cent with its sign, such as ``+17.7%``."""
    text = with_sign(value, "+.1%")
    return "0.0%" if text[1:] == "0.0%" else text


def with_decimals_of(value: float, *cells: Estimate) -> str:
    """Return a value with the two to four decimals that other seeds of each cell would share."""
    spread = max(cell.spread for cell in cells)
    return f"{value:.{2 + sum(spread < limit for limit in _STABLE)}f}"


def stable(cell: Estimate) -> str:
    """Return a mean that stands alone, with the decimals that other seeds would share."""
    return with_decimals_of(cell.mean, cell)


def stable_with_sd(cell: Estimate) -> str:
    """Return a mean that stands alone, ± standard deviation where there are several seeds."""
    return stable(cell) + (f" ±{with_decimals_of(cell.sd, cell)}" if len(cell.values) > 1 else "")


def our_text(cell: Estimate | None) -> str:
    """Return ours: mean, ± standard deviation, and a mark if it differs from the paper's."""
    if cell is None:
        return ""
    spread = f" {spread_text(cell.metric, cell.sd)}" if len(cell.values) > 1 else ""
    return metric_number(cell.metric, cell.mean) + spread + (" *" if cell.differs else "")


def paper_text(cell: Estimate | None) -> str:
    """Return the paper's, with as many decimals as it printed."""
    return "" if cell is None or cell.paper is None else published_text(cell.paper)


def published_text(cell: Published) -> str:
    """Return mean, ± standard deviation, with as many decimals as the paper printed."""
    digits, sd = cell.decimals, cell.sd
    return f"{cell.mean:.{digits}f}" + ("" if sd is None else f" ±{sd:.{digits}f}")


def difference_text(cell: Estimate | None) -> str:
    """Return ours less the paper's, with its sign."""
    if cell is None or cell.difference is None:
        return ""
    text = f"{cell.difference:+.4f}"
    return "0.0000" if float(text) == 0 else text.replace("-", "−")


def both_texts(cell: Estimate | None) -> str:
    """Return ours, and in brackets the paper's and the difference where it has one."""
    if cell is None or cell.paper is None:
        return our_text(cell)
    return f"{our_text(cell)} (paper {paper_text(cell)}; {difference_text(cell)})"


def duration(seconds: float) -> str:
    """Return seconds, minutes or hours, as fits."""
    if seconds < 100:
        return f"{seconds:.{1 if seconds >= 1 else 2}f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def differences(table: BenchTable) -> Iterator[tuple[str, str, str]]:
    """Yield why cells differ from the paper's: method, titles of its metrics, and one sentence."""
    for line in table.lines:
        by_reason: dict[str, list[str]] = {}
        for name, cell in line.cells.items():
            if cell.differs:
                by_reason.setdefault(cell.why or "unexplained", []).append(name)
        for sentence, names in by_reason.items():
            yield line.title, metric_list(names, table.suite, table.classes), sentence


def cells_frame(
    lines: Iterable[Line],
    names: Sequence[str],
    text: Callable[[Estimate | None], str] = both_texts,
    head: str = "method",
    **titles: Any,
) -> DataFrame:
    """Return the cells of lines as text, a column for each metric; `titles` as `column_title`."""
    from pandas import DataFrame

    rows = [[line.title, *(text(line.cells.get(name)) for name in names)] for line in lines]
    return DataFrame(rows, columns=[head, *(column_title(name, **titles) for name in names)])


def grid(frame: DataFrame) -> str:
    """Return a frame of text as a table of Markdown; all columns but the first are numbers."""
    rule = ["---", *["--:"] * (frame.shape[1] - 1)]
    rows = (list(frame.columns), rule, *frame.to_numpy().tolist())
    return "\n".join(f"| {' | '.join(map(escape, row))} |" for row in rows)


def escape(text: str) -> str:
    """Return text without marks of Markdown."""
    return text.replace("|", "\\|").replace("*", "\\*")
