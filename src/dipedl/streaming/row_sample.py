"""A sample of rows by a hash of their content: the same rows whatever the order and the parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from ..calibration.crossfit import row_hash

_SPACE = 2.0**64


def row_keys(X: Any, labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """A 64-bit key of each row and its label, uniform and equal for copies alone, shape (n,).

    Parameters
    ----------
    X, labels : array-like, shape (n, d), and ndarray, shape (n,)
        Rows, or the one column that names them.
    seed : int, default=0
        Keys of different seeds are independent.
    """
    names, which = np.unique(labels.astype(str), return_inverse=True)
    of_labels = row_hash(names.astype(object)[:, None], seed + 1)[which]
    mixed = row_hash(X, seed) ^ of_labels * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def in_share(keys: np.ndarray, share: float) -> np.ndarray:
    """Return which keys (n,) belong to the lowest share of all, shape (n,)."""
    return np.asarray(keys.astype(np.float64) < share * _SPACE)


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows with the lowest keys of all that came; ``a + b`` is that of the rows of both.

    Copies have equal keys: one is kept, with their number. Which rows are kept depends on what
    came, and neither on its order nor on its parts.

    Attributes
    ----------
    keys, labels, counts : ndarray, shape (m,)
        By ascending key; `counts` is how many rows, or what weight, a row stands for.
    rows : dict
        What is kept of the rows, by name; each with m entries.
    most, each, share : int, int and float
        Kept are so many rows of the lowest keys, if they are in this share of all keys; and so many
        of each class.
    """

    keys: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    rows: dict[str, Any]
    most: int
    each: int = 0
    share: float = 1.0

    @classmethod
    def of(
        cls,
        keys: np.ndarray,
        labels: np.ndarray,
        rows: dict[str, Any],
        most: int,
        *,
        each: int = 0,
        share: float = 1.0,
    ) -> Self:
        """The sample of n rows."""
        some = cls(keys, labels, np.ones(len(keys)), rows, most, each, share)
        return some._distinct().parted()[0]

    def __len__(self) -> int:
        return len(self.keys)

    def __add__(self, other: Self) -> Self:
        """The sample of the rows of both."""
        return self.merged(other)[0]

    def merged(self, other: Self) -> tuple[Self, Self]:
        """The sample of the rows of both, and the rows that are in it no more."""
        mine, theirs = ((s.most, s.each, s.share, [*s.rows]) for s in (self, other))
        if mine != theirs:
            raise ValueError(
                f"cannot merge samples that were drawn in two ways, {mine} and {theirs} (most, "
                "each, share, parts): draw both in the same way"
            )
        both = replace(
            self,
            keys=np.concatenate([self.keys, other.keys]),
            labels=np.concatenate([self.labels, other.labels]),
            counts=np.concatenate([self.counts, other.counts]),
            rows={name: self._joined([self.rows[name], other.rows[name]]) for name in self.rows},
        )
        return both._distinct().parted()

    def parted(self) -> tuple[Self, Self]:
        """The rows that are kept of distinct ones, and the others."""
        kept = (np.arange(len(self)) < self.most) & in_share(self.keys, self.share)
        for label in np.unique(self.labels) if self.each else ():
            kept[np.flatnonzero(self.labels == label)[: self.each]] = True
        return self.taken(np.flatnonzero(kept)), self.taken(np.flatnonzero(~kept))

    def taken(self, at: np.ndarray) -> Self:
        """Some of the rows, by their places."""
        rows = {name: _safe_indexing(part, at) for name, part in self.rows.items()}
        return replace(
            self, keys=self.keys[at], labels=self.labels[at], counts=self.counts[at], rows=rows
        )

    def _distinct(self) -> Self:
        """The rows by ascending key, copies counted."""
        keys, first, which = np.unique(self.keys, return_index=True, return_inverse=True)
        counts = np.bincount(which, self.counts, minlength=len(keys))
        return replace(self.taken(first), keys=keys, counts=counts)

    @staticmethod
    def _joined(parts: list[Any]) -> Any:
        return np.concatenate(parts)
