"""Cost of a method: the last columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..results.rows import was_resumed


@dataclass(frozen=True)
class Cost:
    """Cost of a method per seed with all its parts, as if it shared none; means over seeds.

    Seeds whose training was resumed are left out where there are others: part of it was done twice.
    Wall seconds to train and to predict all splits, processor seconds over all cores of training
    and of both, the largest memory of the process over seeds (MiB), passes of a network per
    prediction, and the number of trained parameters.
    """

    train_seconds: float
    score_seconds: float
    train_cpu_seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    forward_passes: int
    n_parameters: int | None


def cost_of(rows: Sequence[Mapping[str, Any]]) -> Cost:
    """Means over the rows of a method, one per seed."""
    rows = [row for row in rows if not was_resumed(row)] or rows

    def mean(kind: str, *steps: str) -> float:
        return float(np.mean([sum(row[kind][step] for step in steps) for row in rows]))

    return Cost(
        train_seconds=mean("seconds", "train"),
        score_seconds=mean("seconds", "score"),
        train_cpu_seconds=mean("cpu_seconds", "train"),
        cpu_seconds=mean("cpu_seconds", "train", "score"),
        peak_memory_mb=max(row["peak_memory_mb"] for row in rows),
        forward_passes=rows[-1]["forward_passes"],
        n_parameters=rows[-1]["n_parameters"],
    )


def spent(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean processor seconds by step of a method in a cell, one row per seed.

    With "rows", the rows fitted on over those scored.
    """
    steps = rows[-1]["cpu_seconds"]
    means = {step: float(np.mean([row["cpu_seconds"][step] for row in rows])) for step in steps}
    sizes = rows[-1]["n"]
    return {**means, "rows": sizes["train"] / sizes["test"]}
