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
    found = [_column_drift(c, frame[c.name], n, level) for c in compared]
    return tuple(sorted(found, key=lambda drift: (-drift.distance, drift.name)))


def p_value_drift(p: np.ndarray, clf: DIPClassifier) -> PValueDrift:
    """Return how far the p-values lie below an even distribution."""
    held_out, rate = clf.evidence_.held_out_.total, float(clf.evidence_.false_alarm_rate)
    distance = float(stats.kstest(p, "uniform", alternative="greater").statistic)
    return PValueDrift(
        float((p <= rate).mean()), rate, distance, _notable(distance, len(p), int(held_out), _LEVEL)
    )


def _column_drift(column: ColumnSpec, values: pd.Series, n: int, level: float) -> ColumnDrift:
    made, _ = column.read(values)
    entries, new = pd.Series(made[column.name]), list[str]()
    gaps, slack = float(entries.isna().mean()), 0.0
    if column.kind == CATEGORY:
        now = entries.astype(object).value_counts(normalize=True)
        before = pd.Series(column.shares, index=list(column.levels))
        both = pd.concat([before, now], axis=1).fillna(0.0)
        distance = float(both.diff(axis=1).iloc[:, 1].abs().sum() / 2)
        # A sum over levels is further from zero by chance than one share.
        slack = float(np.sqrt(len(both) / max(min(len(entries), n), 1)) / 2)
        usual, here = _most(before), _most(now)
        new = [str(name) for name in now.index if name not in column.levels]
    else:
        numbers = np.sort(entries[np.isfinite(entries)])
        below = np.searchsorted(numbers, column.cuts, side="right") / max(len(numbers), 1)
        distance = float(np.abs(below - column.shares).max()) if len(numbers) else 0.0
        usual = _range(np.asarray(column.cuts)[np.searchsorted(column.shares, _ENDS)])
        here = _range(observed_quantiles(numbers, _ENDS)) if len(numbers) else "only gaps"
    distance = max(distance, abs(gaps - column.missing))
    changed = _notable(distance - slack, len(entries), n, level)
    names = (column.name, column.kind)
    return ColumnDrift(
        *names, distance, changed, usual, here, gaps, column.missing, tuple(new[:_MOST_NEW])
    )


def _range(ends: np.ndarray) -> str:
    return " to ".join(number_text(end) for end in ends)


def _most(shares: pd.Series) -> str:
    largest = shares.sort_values(ascending=False).head(_MOST_NEW)
    return ", ".join(f"{name} {share:.0%}" for name, share in largest.items()) or "only gaps"


def _notable(distance: float, m: int, n: int, level: float) -> bool:
    """Return whether a difference of shares is large, and more than chance (Kolmogorov)."""
    chance = np.sqrt(np.log(2 / level) / 2 * (1 / max(m, 1) + 1 / max(n, 1)))
    return bool(distance >= _LARGE and distance > chance)
