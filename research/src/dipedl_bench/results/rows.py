"""A row: what one method did with one seed, what it cost, and the receipt.

Rows of a crossed suite, see `dipedl_bench.running.cells.rows`, say "dataset" and "classifier" too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .receipt import receipt
from .scores import Scores, score


def make_row(
    head: Mapping[str, Any],
    *,
    arrays: Mapping[str, Mapping[str, np.ndarray]],
    own: Mapping[str, Any],
    parts: Mapping[str, Mapping[str, Any]],
    n_resamples: int,
) -> dict[str, Any]:
    """The row of a method and a seed; `head` says which, with the config and its hash.

    `own` is what the method itself cost: "seconds" and "cpu_seconds" ({"train", "score"}),
    "peak_memory_mb", "forward_passes", "n_parameters", and "n", the rows of each split; `parts`
    holds by role the name, hash and cost of each trained part below it.
    """
    return {
        **head,
        **numbers(score(arrays, n_resamples)),
        "n": dict(own["n"]),
        **_total_cost(own, parts),
        "own": dict(own),
        "parts": {role: dict(part) for role, part in parts.items()},
        **receipt(),
    }


def numbers(scores: Scores) -> dict[str, Any]:
    """Metrics, intervals and baselines of a row."""
    return {
        "metrics": scores.metrics,
        "intervals": {name: list(ends) for name, ends in scores.intervals.items()},
        "baselines": scores.baselines,
    }


def _total_cost(own: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Costs of a method with all its parts, as if nothing had been shared with other methods."""
    costs = [own, *parts.values()]
    added: dict[str, Any] = {
        kind: {step: round(sum(c[kind][step] for c in costs), 3) for step in ("train", "score")}
        for kind in ("seconds", "cpu_seconds")
    }
    return {
        **added,
        "peak_memory_mb": max(c["peak_memory_mb"] for c in costs),
        "forward_passes": own["forward_passes"],
        "n_parameters": sum(c["n_parameters"] or 0 for c in costs) or None,
    }


def was_resumed(row: Mapping[str, Any]) -> bool:
    """Return whether a part of a row was trained by more than one process."""
    parts = [row.get("own", {}), *row.get("parts", {}).values()]
    return any(part.get("resumed") for part in parts)
