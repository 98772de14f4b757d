"""Variance of class probabilities over training sets, by the fits of the folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from ..columns import as_numbers, column, is_frame, is_pandas, replace_columns, rows_in_form_of
from .crossfit import row_hash

#: Rows that the fits are compared at, and rows that their neighbours are found among, at most.
_ROWS, _AMONG = 500, 2000


class Jackknife:
    """Probabilities that the fits of all folds give for rows that none of them has seen.

    A row of the data is held out of one fit alone; so rows are made that lie between two
    neighbours. Where features or classifier refuse these, the rows of the data stand for them, and
    the variance comes out too large for a classifier that remembers its rows.

    Parameters
    ----------
    X, Z : array-like (n, d), ndarray (n, p)
        Inputs of the fit and their features.
    w : ndarray, shape (n,), or None
        How many inputs each row stands for.
    try_rows : callable
        Asks features and classifier about rows, and raises an error if they refuse them.

    Attributes
    ----------
    X : array-like, shape (m, d)
        The rows.

    References
    ----------
    Shao, Wu, "A general theory for jackknife variance estimation", Annals of Statistics 17 (1989).
    """

    def __init__(
        self, X: Any, Z: np.ndarray, w: np.ndarray | None, try_rows: Callable[[Any], object]
    ) -> None:
        self._counts = np.ones(len(Z)) if w is None else w
        # Copies of a row count once; in an order that depends on what rows hold.
        some = np.unique(row_hash(X), return_index=True)[1][:_AMONG]
        rows = some[:_ROWS]
        self._weights = self._counts[rows]
        neighbors = NearestNeighbors(n_neighbors=min(2, len(some))).fit(Z[some])
        other = some[neighbors.kneighbors(Z[rows], return_distance=False)]
        near = np.where(other[:, 0] == rows, other[:, -1], other[:, 0])
        self.X = _safe_indexing(X, rows)
        between = rows_between(self.X, _safe_indexing(X, near))
        if between is not None:
            try:
                try_rows(between)
            except (MemoryError, OSError):
                raise
            except Exception:
                # Between two codes of a category there may be no third, and classifiers of others
                # refuse rows by errors of any type.
                pass
            else:
                self.X = between
        self._fits: list[np.ndarray] = []
        self._left_out: list[float] = []

    def watch(self, folds: Iterable[Any]) -> Iterator[Any]:
        """Yield folds; the fit of each is asked for the probabilities of the rows."""
        for fold in folds:
            self._fits.append(fold.proba(self.X))
            self._left_out.append(self._counts[fold.rows].sum() / self._counts.sum())
            yield fold

    def variance(self, proba: np.ndarray, transform: Callable[[np.ndarray], np.ndarray]) -> float:
        """Return the mean variance of the probabilities over training sets, summed over classes.

        Parameters
        ----------
        proba : ndarray, shape (m, k)
            Of the rows, by the fit to all of the data: what a single fold is compared with.
        transform : callable
            From a classifier's probabilities (m, k) of the rows to those that are predicted.
        """
        share = float(np.mean(self._left_out))
        fits = np.stack([transform(P) for P in self._fits])
        if len(fits) == 1:
            squares, factor = (fits[0] - transform(proba)) ** 2, (1 - share) / share
        else:
            # Two fits differ by the rows of their two folds: their variance is that of a fit to all
            # rows times share / (1 - share)^2.
            squares, factor = fits.var(axis=0, ddof=1), (1 - share) ** 2 / share
        return float(np.average(squares.sum(axis=1), weights=self._weights)) * factor


def rows_between(first: Any, second: Any) -> Any:
    """Return rows (m, d) between two: half-way, or of a table every other column of the second.

    None for arrays that are sparse or hold texts.
    """
    if not is_frame(first):
        a, b = as_numbers(first), as_numbers(second)
        if a is None or b is None:
            return None
        return rows_in_form_of(first, (a + b) / 2)
    columns = {j: column(second, j) for j in range(1, first.shape[1], 2)}
    if is_pandas(first):
        return replace_columns(first, {j: part.array for j, part in columns.items()})
    return type(first)([columns.get(j, column(first, j)) for j in range(first.shape[1])])
