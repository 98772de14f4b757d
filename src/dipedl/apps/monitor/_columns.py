"""How often each range or level of a column occurs, and whether a window differs from before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ...columns import column, column_texts, has_columns, is_category, missing_entries, numbers_of
from ...inputs import from_arrow
from ...writing.spelling import spellings, versions

_RANGES, _MOST_LEVELS = 10, 50
#: Ranges with fewer rows expected are tested together.
_FEWEST = 5.0


@dataclass(frozen=True, eq=False)
class ColumnBins:
    """Ranges or levels of a column, and how many reference rows are in each.

    Attributes
    ----------
    name : str
    cuts : ndarray, shape (c,)
        Of a number: ranges end at the cuts, which belong to them.
    levels : tuple of str
        Of anything else. A column of gaps alone has neither: any value is one range.
    counts : ndarray
        Reference rows in each range or level; of other levels; with a gap.
    """

    name: str
    cuts: np.ndarray
    levels: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, name: str, values: Any) -> ColumnBins:
        """Of the entries of a column, n of them."""
        numbers = _numbers(values)
        if numbers is not None:
            known = np.sort(numbers[~np.isnan(numbers)])
            inner = known[(np.arange(1, _RANGES) * len(known)) // _RANGES] if len(known) else known
            made = cls(name, np.unique(inner), (), np.zeros(0))
        else:
            texts = _texts(values)
            levels, n = np.unique(spellings(texts, versions(texts)), return_counts=True)
            kept = sorted(levels[np.argsort(-n, kind="stable")][:_MOST_LEVELS].tolist())
            made = cls(name, np.zeros(0), tuple(kept), np.zeros(0))
        return cls(name, made.cuts, made.levels, made.count(values))

    def count(self, values: Any) -> np.ndarray:
        """Rows in each range or level, of other levels, and with a gap."""
        if not self.levels and not len(self.cuts):
            gaps = missing_entries(values).sum()
            return np.array([len(values) - gaps, gaps], dtype=float)
        if self.levels:
            places = {level: i for i, level in enumerate(self.levels)}
            texts = spellings(_texts(values), self.levels)
            found = [places.get(text, len(places)) for text in texts]
            size, gaps = len(places) + 1, len(values) - len(texts)
        else:
            numbers = _numbers(np.asarray(values, dtype=object) if is_category(values) else values)
            if numbers is None:
                raise ValueError(
                    f"column {self.name!r} must hold numbers, as in the reference rows, got "
                    f"{np.asarray(values).ravel()[0]!r}; leave out or correct such rows"
                )
            known = numbers[~np.isnan(numbers)]
            found = np.searchsorted(self.cuts, known, side="left").tolist()
            size, gaps = len(self.cuts) + 1, len(numbers) - len(known)
        counts = np.bincount(np.asarray(found, dtype=int), minlength=size)
        return np.append(counts, gaps).astype(float)

    def changed(self, window: np.ndarray) -> tuple[float, float]:
        """Population stability index of the counts of a window, and the p-value of no change.

        Pearson's chi-square, with the variance of the urn of `ReferenceRanks`, as the reference is
        a sample too; and the urn itself for the ranges in which few rows are expected or none was
        in the reference, together, such as gaps and other levels. Twice the smaller p-value of the
        two.
        """
        m, n = window.sum(), self.counts.sum()
        usual = (self.counts + 0.5) / (n + 0.5 * len(self.counts))
        here = (window + 0.5) / (m + 0.5 * len(window))
        psi = float(((here - usual) * np.log(here / usual)).sum())
        rare = (m * usual < _FEWEST) | (self.counts == 0)
        p = min(_chi_square(window[~rare], self.counts[~rare]),
                _more_than_usual(window[rare].sum(), m, self.counts[rare].sum(), n))  # fmt: skip
        return psi, min(2 * p, 1.0)


def _chi_square(window: np.ndarray, counts: np.ndarray) -> float:
    if len(window) < 2 or not window.sum():
        return 1.0
    m, n = window.sum(), counts.sum()
    expected = m * counts / n
    chi = ((window - expected) ** 2 / expected).sum() / (1 + m / n)
    return float(special.chdtrc(len(window) - 1, chi))


def _more_than_usual(found: float, m: float, before: float, n: float) -> float:
    """Chance of `found` or more of m rows in ranges in which `before` of n reference rows are."""
    k = np.arange(found, m + 1)
    a, b = before + 1, n - before + 1e-9
    logs = special.betaln(a + k, b + m - k) - special.betaln(a, b)
    logs -= np.log(m + 1) + special.betaln(m - k + 1, k + 1)
    return float(min(np.exp(logs).sum(), 1.0))


def bins_of(X: Any) -> tuple[ColumnBins, ...]:
    """The columns of a table or of an array (n, d); none for anything else."""
    return tuple(ColumnBins.of(name, values) for name, values in _columns(X))


def counts_of(bins: Sequence[ColumnBins], X: Any) -> list[np.ndarray]:
    """Counts of each known column in X; columns that are not known are not looked at."""
    there = dict(_columns(X))
    lacking = [b.name for b in bins if b.name not in there]
    if lacking:
        raise ValueError(
            f"X lacks the columns {lacking[:5]}; the monitor was made for "
            f"{[b.name for b in bins][:10]}: give them, or make a monitor without columns"
        )
    return [b.count(there[b.name]) for b in bins]


def _columns(X: Any) -> list[tuple[str, Any]]:
    X = from_arrow(X)
    names = column_texts(X) if has_columns(X) else []
    return [(name, column(X, j)) for j, name in enumerate(names)]


def _numbers(values: Any) -> np.ndarray | None:
    """A column as float64 (n,), or None if it holds anything but numbers."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    if is_category(values) or kind not in "biufOU":
        return None
    if isinstance(values, np.ndarray) and kind in "biuf":
        return np.asarray(values, dtype=np.float64)
    return numbers_of(values)


def _texts(values: Any) -> list[str]:
    """The entries of a column that are not missing, as texts as they are written."""
    return [str(value) for value in np.asarray(values, dtype=object)[~missing_entries(values)]]
