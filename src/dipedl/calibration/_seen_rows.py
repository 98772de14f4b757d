"""Whether rows that are given as held out were among the rows of the fit."""

from __future__ import annotations

import numpy as np
from scipy import stats

_KEPT = 1000
#: Share of new rows beyond what chance explains, and the level of the test for more.
_MORE, _LEVEL = 0.05, 1e-3


def smallest(keys: np.ndarray) -> np.ndarray:
    """The thousand smallest hashes of rows, ascending: a sample of the rows by content."""
    return np.sort(keys)[:_KEPT]


def share_of_copies(kept: np.ndarray) -> float:
    """Return the share of rows that have a copy, by the hashes `kept` of `smallest`."""
    counts = np.unique(kept, return_counts=True)[1]
    return float(counts[counts > 1].sum() / max(len(kept), 1))


def share_seen(keys: np.ndarray, kept: np.ndarray | None) -> float:
    """Share of the rows with hashes `keys` (m,) that were given to a fit; 0 if that may be chance.

    `kept` are the smallest hashes of the rows of the fit, None if they are unknown. New rows repeat
    old ones about as often as those repeat one another.
    """
    if kept is None:
        return 0.0
    known = keys if len(kept) < _KEPT else keys[keys <= kept[-1]]
    seen = np.isin(known, kept)
    by_chance = min(1.0, share_of_copies(kept) + _MORE)
    surprising = stats.binom.sf(seen.sum() - 1, len(seen), by_chance) < _LEVEL
    return float(seen.mean()) if surprising else 0.0
