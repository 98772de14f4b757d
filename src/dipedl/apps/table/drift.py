"""Differences of rows from those of the fit: column by column, and by their p-values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from ...classifier import DIPClassifier
from ...writing.numbers import number_text
from .columns import CATEGORY, ColumnSpec, observed_quantiles

#: A difference counts if it is no chance (at 1 %, over all columns) and as large as this.
_LEVEL, _LARGE = 0.01, 0.1
_MOST_NEW = 3
_ENDS = (0.05, 0.95)


@dataclass(frozen=True)
class ColumnDrift:
    """Difference of a column from the fit.

    `distance` is the largest difference of shares below a value, or half of the summed differences
    of the shares of levels: 0 is equal, 1 is disjoint.
    """

    name: str
    kind: str
    distance: float
    changed: bool
    usual: str
    here: str
    missing: float
    missing_before: float
    new: tuple[str, ...] = ()


@dataclass(frozen=True)
class PValueDrift:
    """The p-values of rows: even between 0 and 1, or larger, if the rows are like those of the fit.

    They may be larger, since no held-out row scores higher than the final model scores it.
    """

    below: float
    rate: float
    distance: float
    changed: bool


def column_drifts(
    columns: Iterable[ColumnSpec], frame: pd.DataFrame, n: int
) -> tuple[ColumnDrift, ...]:
    """Columns by their difference from the n rows of the fit, the largest first."""
    compared = [c for c in columns if c.shares and c.name in frame]
    level = _LEVEL / max(len(compared), 1)
    found = [
        (_levels if c.kind == CATEGORY else _numbers)(c, frame[c.name], n, level) for c in compared
    ]
    return tuple(sorted(found, key=lambda drift: (-drift.distance, drift.name)))


def p_value_drift(p: np.ndarray, clf: DIPClassifier) -> PValueDrift:
    """Return how far the p-values lie below an even distribution."""
    held_out, rate = clf.evidence_.held_out_.total, float(clf.evidence_.false_alarm_rate)
    distance = float(stats.kstest(p, "uniform", alternative="greater").statistic)
    return PValueDrift(
        float((p <= rate).mean()), rate, distance, _notable(distance, len(p), int(held_out), _LEVEL)
    )


def _numbers(column: ColumnSpec, values: pd.Series, n: int, level: float) -> ColumnDrift:
    made, _ = column.read(values)
    numbers = made[column.name]
    gaps = float(np.isnan(numbers).mean())
    numbers = np.sort(numbers[np.isfinite(numbers)])
    here = np.searchsorted(numbers, column.cuts, side="right") / max(len(numbers), 1)
    distance = float(np.abs(here - column.shares).max()) if len(numbers) else 0.0
    tested = max(distance, abs(gaps - column.missing))
    return ColumnDrift(
        column.name,
        column.kind,
        tested,
        _notable(tested, len(values), n, level),
        _range(np.asarray(column.cuts)[np.searchsorted(column.shares, _ENDS)]),
        _range(observed_quantiles(numbers, _ENDS)) if len(numbers) else "only gaps",
        gaps,
        column.missing,
    )


def _range(ends: np.ndarray) -> str:
    return " to ".join(number_text(end) for end in ends)


def _levels(column: ColumnSpec, values: pd.Series, n: int, level: float) -> ColumnDrift:
    made, _ = column.read(values)
    texts = pd.Series(made[column.name]).astype(object)
    gaps = float(texts.isna().mean())
    here = texts.value_counts(normalize=True)
    before = pd.Series(column.shares, index=list(column.levels))
    both = pd.concat([before, here], axis=1).fillna(0.0)
    distance = float(both.diff(axis=1).iloc[:, 1].abs().sum() / 2)
    new = [str(name) for name in here.index if name not in column.levels]
    tested = max(distance, abs(gaps - column.missing))
    # A sum over levels is further from zero by chance than one share.
    slack = np.sqrt(len(both) / max(min(len(texts), n), 1)) / 2
    return ColumnDrift(
        column.name,
        column.kind,
        tested,
        _notable(tested - slack, len(texts), n, level),
        _most(before),
        _most(here),
        gaps,
        column.missing,
        tuple(new[:_MOST_NEW]),
    )


def _most(shares: pd.Series) -> str:
    largest = shares.sort_values(ascending=False).head(_MOST_NEW)
    return ", ".join(f"{name} {share:.0%}" for name, share in largest.items()) or "only gaps"


def _notable(distance: float, m: int, n: int, level: float) -> bool:
    """Return whether a difference of shares is large, and more than chance (Kolmogorov)."""
    chance = np.sqrt(np.log(2 / level) / 2 * (1 / max(m, 1) + 1 / max(n, 1)))
    return bool(distance >= _LARGE and distance > chance)
