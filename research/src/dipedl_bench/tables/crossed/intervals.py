"""Coverage of intervals, in suites whose class probabilities are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...results.known_truth import BY_CONFIDENCE, BY_DENSITY, LEVELS
from .pairs import Column, Crossed

#: A third of the rows counts as covered from here on.
_COVERED = 0.8
HEADS = (
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


def interval_columns(found: Crossed) -> list[Column]:
    """Methods that say how far a class probability may be off; none where none is known."""
    return [
        column
        for column in found.columns
        if np.isfinite(found.values(column.name, "coverage_95")).any()
    ]


def interval_rows(found: Crossed) -> list[list[str]]:
    """Title and numbers of each method of `interval_columns`."""
    return [[c.title, *interval_row(found, c.name)] for c in interval_columns(found)]


def interval_row(found: Crossed, method: str) -> list[str]:
    """Means over the lines of a method, as `HEADS` says; of coverages the quartiles too.

    Widths and scores are those of 95 % intervals; where a method has not run on every line, our
    numbers on its lines stand beside its own.
    """
    coverages = [_values(found, method, f"coverage_{level}") for level in LEVELS]
    there = np.isfinite(coverages[0])
    score, correlation = (
        [_two(_values(found, name, metric)[there].mean()) for name in (method, found.ours)]
        for metric in ("interval_score_95", "error_correlation")
    )
    return [
        str(there.sum()),
        *(_with_quartiles(values[there]) for values in coverages),
        *(_share(found, method, names) for names in (BY_DENSITY, BY_CONFIDENCE)),
        _mean(found, method, "width_95"),
        *score,
        *correlation,
        _mean(found, method, "coverage_95/far"),
        _mean(found, method, "interval_score_95/far"),
    ]


def problem_rows(found: Crossed) -> tuple[list[str], list[list[str]]]:
    """Coverage of 95 % intervals of the bare method and of ours, by data set and classifier."""
    kinds = list(dict.fromkeys(pair.classifier for pair in found.known()))
    by_place = {(pair.dataset, pair.classifier): pair for pair in found.known()}
    rows = []
    for dataset in dict.fromkeys(pair.dataset for pair in found.known()):
        pairs = (by_place.get((dataset, kind)) for kind in kinds)
        cells = (
            [found.value(pair, name, "coverage_95") for name in (found.bare, found.ours)]
            if pair
            else []
            for pair in pairs
        )
        rows.append([dataset, *(" → ".join(map(_two, cell)) for cell in cells)])
    return ["data", *kinds], rows


def coverage_of(found: Crossed, method: str) -> list[float]:
    """Mean coverage at each of `LEVELS`."""
    return [float(np.nanmean(_values(found, method, f"coverage_{level}"))) for level in LEVELS]


def _values(found: Crossed, method: str, metric: str) -> np.ndarray:
    return found.values(method, metric, found.known())


def _mean(found: Crossed, method: str, metric: str) -> str:
    return _two(np.nanmean(_values(found, method, metric)))


def _two(value: float) -> str:
    """Two decimals, or nothing for what is not there."""
    return "" if np.isnan(value) else f"{value:.2f}"


def _with_quartiles(values: np.ndarray) -> str:
    low, high = np.quantile(values, [0.25, 0.75])
    return f"{values.mean():.2f} ({low:.2f} to {high:.2f})"


def _share(found: Crossed, method: str, names: Sequence[str]) -> str:
    """Share of the thirds of all lines that are covered."""
    values = np.concatenate([_values(found, method, f"coverage_95_{name}") for name in names])
    return f"{(values[np.isfinite(values)] >= _COVERED).mean():.0%}"
