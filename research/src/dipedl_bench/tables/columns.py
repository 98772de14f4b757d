"""Which metrics stand side by side: accuracy never without the recall of the classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..results.scores import SHIFTED_PREFIX
from .cells import Cell, cell_over_seeds

_KNOWN_EXTRA = ("nll", "ece", "adaptive_ece", "errors_avoided_10")
_OOD_EXTRA = ("aupr_in", "fpr95")
#: Up to so many classes, the recall of each has a column; of more the worst has.
_FEW = 4
_RECALL = "recall_"


def columns(
    ood_metrics: Sequence[str],
    ood: Iterable[str],
    shifted: Iterable[str],
    there: Iterable[str],
    *,
    extra: bool = False,
) -> dict[str, tuple[str, ...]]:
    """Metrics by the set they are measured on; `there` are those that any line has.

    The key is "" for the known rows, the name of each OOD set, ``shifted/<name>`` for the others.
    `ood_metrics` stand in the main tables of OOD sets; with `extra`, those that the paper does not
    print or that say least, for tables of their own.
    """
    there = set(there)
    recalls = [name for name in there if name.startswith(_RECALL) and "/" not in name]
    recalls.sort(key=lambda n: int(n.removeprefix(_RECALL)))
    by_class = recalls if len(recalls) <= _FEW else ["worst_recall"]
    labelled = ("accuracy", "balanced_accuracy", *by_class, "brier_id")
    rest = tuple(name for name in _OOD_EXTRA if name not in ood_metrics)
    known, unknown = (_KNOWN_EXTRA, rest) if extra else (labelled, ood_metrics)
    shifted_metrics = () if extra else (*labelled, "errors_avoided_10", "ece")
    found = {"": known} | {s: tuple(f"{name}/{s}" for name in unknown) for s in ood}
    found |= {
        f"{SHIFTED_PREFIX}{s}": tuple(f"{name}/{s}" for name in shifted_metrics) for s in shifted
    }
    return {split: tuple(n for n in names if n in there) for split, names in found.items()}


def worst_recalls(
    rows: Sequence[Mapping[str, Any]], names: Iterable[str]
) -> Iterator[tuple[str, Cell]]:
    """Recall of the worst class of each seed, by set, where there are too many for the eye.

    Such a cell has no interval over the test rows: the smallest of many numbers varies otherwise
    than each of them.
    """
    by_set: dict[str, list[str]] = {}
    for name in names:
        if name.startswith(_RECALL):
            by_set.setdefault(name.partition("/")[2], []).append(name)
    for split, mine in by_set.items():
        if len(mine) > _FEW:
            worst = [min(row["metrics"][name] for name in mine) for row in rows]
            yield f"worst_recall/{split}".removesuffix("/"), cell_over_seeds(worst)
