"""Windows of the stream: what differs from the reference in each, at a false discovery rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ._accuracy import Estimate, Sums
from ._columns import ColumnBins
from ._ranks import ReferenceRanks


@dataclass(frozen=True)
class Window:
    """Some rows of the stream in one look.

    Attributes
    ----------
    first, last : int
        Rows of the stream, from 1.
    distance : float
        Kolmogorov and Smirnov's, of the p-values from those of the reference; at the cuts alone,
        and of lower p-values alone where the reference comes from cross-fitting.
    p_value : float
        Of no difference in the p-values.
    differs : bool
        Whether they differ, at the rate of false discoveries.
    changed : tuple of (str, float)
        Columns that differ, at the same rate, with their population stability index; the largest
        first. Below 0.1 a change is small, above 0.25 large, by a rule of thumb.
    uncertainty, flagged : float
        Means.
    estimated_accuracy, accuracy : Estimate or None
        Without labels, and of the labelled rows.
    """

    first: int
    last: int
    distance: float
    p_value: float
    differs: bool
    changed: tuple[tuple[str, float], ...]
    uncertainty: float
    flagged: float
    estimated_accuracy: Estimate | None
    accuracy: Estimate | None


@dataclass(frozen=True, eq=False)
class OpenWindow:
    """Counts of the rows since the last window: they add.

    Attributes
    ----------
    ranks : ndarray, shape (K,)
        Rows in each range of `ReferenceRanks`.
    sums : ndarray, shape (2,)
        Of uncertainty and of alarms.
    columns : list of ndarray
        Rows in the ranges of each column.
    accuracy : Sums
    """

    ranks: np.ndarray
    sums: np.ndarray
    columns: list[np.ndarray]
    accuracy: Sums

    def __len__(self) -> int:
        return int(self.ranks.sum())

    def __add__(self, other: OpenWindow) -> OpenWindow:
        columns = [a + b for a, b in zip(self.columns, other.columns, strict=True)]
        return OpenWindow(
            self.ranks + other.ranks,
            self.sums + other.sums,
            columns,
            self.accuracy + other.accuracy,
        )

    def close(
        self,
        last: int,
        reference: ReferenceRanks,
        bins: Sequence[ColumnBins],
        bias: tuple[float, float],
        rate: float,
    ) -> Window:
        """The window that ends with row `last`, tested at a false discovery rate.

        `bias` of the confidence, with its variance, is that of the reference.
        """
        m = len(self)
        distance, p = _kolmogorov(self.ranks, reference)
        tests = [bin_.changed(counts) for bin_, counts in zip(bins, self.columns, strict=True)]
        found = discoveries(np.array([p, *(test[1] for test in tests)]), rate)
        changed = [
            (b.name, psi) for b, (psi, _), on in zip(bins, tests, found[1:], strict=True) if on
        ]
        changed.sort(key=lambda one: -one[1])
        u, flagged = (self.sums / m).tolist()
        accuracy = self.accuracy.estimated(*bias), self.accuracy.accuracy
        first, differs = last - m + 1, bool(found[0])
        return Window(first, last, distance, p, differs, tuple(changed), u, flagged, *accuracy)


def discoveries(p: np.ndarray, rate: float) -> np.ndarray:
    """Which of m hypotheses with p-values (m,) are rejected at a false discovery rate, (m,).

    References
    ----------
    Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", *JRSS B* 57, 1995.
    """
    order = np.argsort(p, kind="stable")
    good = np.flatnonzero(p[order] <= rate * np.arange(1, len(p) + 1) / len(p))
    found = np.zeros(len(p), dtype=bool)
    if len(good):
        found[order[: good[-1] + 1]] = True
    return found


def _kolmogorov(counts: np.ndarray, reference: ReferenceRanks) -> tuple[float, float]:
    """Largest difference of cumulative shares, and its two-sample p-value.

    Rows that are more typical count if the reference is fresh: those of cross-fitting are a little
    less typical than new rows. Cuts between which nothing is compared make the p-value larger, if
    anything.
    """
    sizes = reference.sizes
    m, n = counts.sum(), sizes.sum() - 1
    more = np.cumsum(counts) / m - np.cumsum(sizes) / sizes.sum()
    distance = float((np.abs(more) if reference.both else more.clip(0)).max())
    scaled = distance * np.sqrt(m * n / (m + n))
    p = special.kolmogorov(scaled) if reference.both else np.exp(-2 * scaled**2)
    return distance, float(p)
