"""Density of the k nearest neighbours, and their exact search."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import gammaln
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

from ..calibration.crossfit import row_hash
from ..inputs import one_thread
from ..maths.arrays import check_integer
from ..maths.seeds import seed
from ..protocols import atomic
from .base import LogDensityMixin, check_rows, check_training_rows

__all__ = ["KNNDensity"]

_COPIES = 0.05
_PROBES = 1000
#: Up to so many rows products of all are faster than a tree, and with more features always.
_PRODUCTS, _TREE_FEATURES = 10_000, 15
_CHUNK_BYTES = 1 << 22
#: Inputs that are decided at once; those whose products with all rows are made at once, at least,
#: and bytes of these: what stays in the cache.
_DECIDED_ROWS, _PRODUCT_ROWS, _PRODUCT_BYTES = 2000, 80, 5 << 19
#: For so few inputs blocks do not pay.
_FEW_ROWS = 8
#: A look at all rows of a block takes so much longer than at the lowest key; groups at least.
_DETAIL, _GROUPS = 5, 64
_ROUNDING = float(np.finfo(np.float32).eps)
#: Below this float32 has no full precision.
_SMALLEST = float(np.finfo(np.float32).tiny)

#: Rows of each fitted NearestNeighbors in float32, with the factor that scales them: outside the
#: model, so that they are neither pickled nor saved.
_SCALED: WeakKeyDictionary[NearestNeighbors, tuple[np.ndarray, float]] = WeakKeyDictionary()


@dataclass(eq=False, repr=False)
class KNNDensity(LogDensityMixin, BaseEstimator):
    """Density from the distance to the k-th nearest training row.

    ``log p(x) = log k - log n - log V_p - p log r_k(x)`` with V_p the volume of the unit ball. It
    ranks like the distance; as a density it does not integrate to one (its tails are too heavy).

    Parameters
    ----------
    n_neighbors : int, default=10
        Which neighbour among the training rows, k; at most their number.
    max_rows : int or None, default=None
        Rows to keep at most; of more, each class keeps its share, and k that of all rows (at least
        2). Which ones depends on what they hold, not on their order. None keeps all.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of rows; None is 0.

    Attributes
    ----------
    center_ : ndarray, shape (p,)
        Mean of the rows that are kept, taken off before the search.
    row_numbers_ : ndarray of int
        Which of the training rows are kept.
    n_neighbors_ : int
        Which neighbour among these; k if all are kept.
    neighbors_ : NearestNeighbors
        The fitted index of these rows, centred.
    radius_floor_ : float
        Smallest positive k-th distance among the training rows, or among a thousand of them (if all
        are zero, as for ``n_neighbors=1``: smallest distance to a distinct row). No row is scored
        as nearer than this: an exact copy of a training row would have an infinite density.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    Training rows are their own neighbours: score them by cross-fitting, as `DIPClassifier` does by
    default.

    With L2-normalised features, ``make_pipeline(Normalizer(), KNNDensity(50))``, this is deep
    nearest neighbours. Rows of one direction are copies then, and so are rows of zeros, which stay
    zero, at distance one from the others.

    The search is exact: in a tree for more than 10,000 rows of up to 15 features, else by matrix
    products in float32, and in float64 for the rows that these leave possible. The products take
    the threads that ``OMP_NUM_THREADS`` names. Memory is 8 n p bytes for the rows.

    References
    ----------
    Loftsgaarden, Quesenberry, Ann. Math. Statist. 36 (1965); Sun et al., "Out-of-distribution
    detection with deep nearest neighbors", ICML (2022).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import KNNDensity
    >>> density = KNNDensity(2).fit(np.arange(5.0)[:, None])
    >>> density.score_samples([[2.5], [102.5]]).round(2)
    array([-1.61, -6.21])
    """

    normalized = False

    n_neighbors: int = 10
    max_rows: int | None = None
    random_state: Any = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        k, size = check_integer("n_neighbors", self.n_neighbors), self.max_rows
        if size is not None and check_integer("max_rows", size) < k:
            raise ValueError(f"max_rows must be None or at least n_neighbors = {k}, got {size!r}")

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p), n >= n_neighbors; labels y (n,) only share out `max_rows`.

        Raises
        ------
        ValueError
            If a parameter or a number of X is out of range, or more than 5 % of the rows have
            `n_neighbors` copies or more.
        """
        rows = check_training_rows(self, X, y, None)
        with one_thread(rows[0], blas=True):
            return self.fit_checked(*rows)

    def fit_checked(self, Z: np.ndarray, y: Any, w: Any = None) -> Self:
        """Fit on features Z (n, p) and labels (n,) or None that were checked before; no weights."""
        self.check_parameters()
        n, k = len(Z), self.n_neighbors
        check_neighbors(k, n)
        self.row_numbers_ = self._draw(Z, y)
        # A ball that holds k of n rows holds k m / n of m drawn; one alone is too noisy.
        self.n_neighbors_ = max(min(2, k), round(k * (len(self.row_numbers_) / n)))
        X = Z[self.row_numbers_]
        keys = row_hash(X)
        counts = np.unique(keys, return_counts=True)[1]
        copied = counts[counts > self.n_neighbors_].sum() / len(keys)
        if copied > _COPIES:
            raise ValueError(
                f"{copied:.0%} of the rows of X have {self.n_neighbors_} copies or more, where the "
                "density is infinite; KNNDensity needs continuous features: raise n_neighbors "
                f"(the commonest row comes {counts.max()} times), drop repeated rows, or use "
                "GDADensity or KernelDensity. After L2 normalisation rows of one direction are "
                "copies, and rows of zeros too"
            )
        self.center_ = X.mean(axis=0)
        X = X - self.center_
        self.neighbors_ = self._exact(X, self.n_neighbors_)
        some = np.argsort(keys, kind="stable")[:_PROBES]
        floor = _smallest_positive(nearest_rows(self.neighbors_, X[some])[0][:, -1])
        if not floor and len(distinct := X[np.unique(keys, return_index=True)[1]]) > 1:
            index = self._exact(distinct, 2)
            floor = _smallest_positive(nearest_rows(index, distinct[:_PROBES])[0])
        self.radius_floor_ = floor or 1.0
        return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        distances, _ = nearest_rows(self.neighbors_, Z - self.center_)
        radius = np.maximum(distances[:, -1], self.radius_floor_)
        return np.asarray(self.log_constant_ - Z.shape[1] * np.log(radius))

    def neighbors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Find the training rows that the rows of X (n, p) are judged by.

        Returns
        -------
        distances : ndarray, shape (n, `n_neighbors_`)
            Euclidean distances, in the unit of the features; ``inf`` where one overflows.
        rows : ndarray of int, shape (n, `n_neighbors_`)
            Numbers of the training rows, nearest first. A training row is its own neighbour.
        """
        Z = check_rows(self, X) - self.center_
        with one_thread(Z, blas=True):
            distances, rows = nearest_rows(self.neighbors_, Z)
        return distances, self.row_numbers_[rows]

    def exclude_self(self) -> Self:
        """Return the fitted density as it scores rows of its fit: none is its own neighbour.

        Itself where a part of the rows is kept.
        """
        k, numbers = self.n_neighbors_ + 1, self.row_numbers_
        # Of rows of which a part is kept the numbers have gaps.
        if k > len(numbers) or numbers[-1] >= len(numbers) or k <= self.n_neighbors:
            return self
        density = copy(self)
        density.neighbors_ = copy(self.neighbors_).set_params(n_neighbors=k)
        return density

    def leave_one_out(self, Z: np.ndarray, y: Any, w: Any) -> np.ndarray | None:
        """Return `log_density` of rows Z (n, p) of the fit, by their neighbours among all others.

        Shape (n,), with the constant of the fit to all, which is lower by ``log(n / (n - 1))``.
        None where a part of the rows is kept. Labels and weights are ignored.
        """
        density = self.exclude_self()
        return None if density is self else density.log_density(Z)

    @property
    def log_constant_(self) -> float:
        """``log k - log n - log V_p``, in nats."""
        return _log_constant(self.n_neighbors_, *self.neighbors_._fit_X.shape)

    def _draw(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Draw the numbers of the rows to keep; each class keeps its share.

        They are taken at equal steps in the order of class and hash: copies, which lie together
        there, keep their share too.
        """
        n, size = len(X), self.max_rows
        if size is None or n <= size:
            return np.arange(n)
        keys = row_hash(X, seed(self.random_state))
        classes = np.zeros(n, int) if y is None else np.unique(y, return_inverse=True)[1]
        order = np.lexsort((keys, classes))
        return np.sort(order[(2 * np.arange(size) + 1) * n // (2 * size)])

    def _exact(self, X: np.ndarray, k: int) -> NearestNeighbors:
        tree = len(X) > _PRODUCTS and X.shape[1] <= _TREE_FEATURES
        return NearestNeighbors(n_neighbors=k, algorithm="auto" if tree else "brute").fit(X)


@cache
def _log_constant(k: int, n: int, p: int) -> float:
    log_volume = p / 2 * np.log(np.pi) - gammaln(p / 2 + 1)
    return float(np.log(k) - np.log(n) - log_volume)


def _smallest_positive(distance: np.ndarray) -> float:
    """Return the smallest positive distance; 0 if there is none."""
    positive = distance[distance > 0]
    return float(positive.min()) if len(positive) else 0.0


def check_neighbors(n_neighbors: int, n: int) -> None:
    """Raise ValueError for more neighbours than there are rows, n."""
    if n_neighbors > n:
        raise ValueError(f"n_neighbors must lie in 1..n_samples = {n}, got {n_neighbors!r}")


@np.errstate(all="ignore")
def nearest_rows(index: NearestNeighbors, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances to the k nearest rows in `index` of each row of X (n, p), and their numbers.

    Both (n, k), nearest first; ``inf`` where a distance overflows.
    """
    if index._fit_method != "brute":
        return sort_by_distance(index, X, index.kneighbors(X, return_distance=False))
    n, k = len(X), index.n_neighbors
    distances, rows = np.empty((n, k)), np.empty((n, k), dtype=np.intp)
    for part in _slices(n, _DECIDED_ROWS):
        who, which = _candidates(index, X[part])
        distances[part], rows[part] = _decide(index._fit_X, X[part], who, which, k)
    return distances, rows


def sort_by_distance(
    index: NearestNeighbors, X: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sorted distances from row i of X (n, p) to the rows ``rows[i]`` of `index`, and these.

    A search by ``|x|^2 - 2 x.t + |t|^2`` rounds: it would give a training row a positive distance
    to itself. Here distances are taken directly.
    """
    distances = np.empty(rows.shape)
    for part in _slices(len(X), _CHUNK_BYTES // (8 * X.shape[1] * rows.shape[1])):
        distances[part] = _lengths(X[part, None] - index._fit_X[rows[part]])
    order = np.argsort(distances, axis=1, kind="stable")
    return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)


def _lengths(gaps: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(np.einsum("...j,...j->...", gaps, gaps))
    return np.where(np.isnan(lengths), np.inf, lengths)


def _slices(n: int, step: int) -> Iterator[slice]:
    step = max(1, step)
    return (slice(start, start + step) for start in range(0, n, step))


def _rows_and_scale(index: NearestNeighbors) -> tuple[np.ndarray, float]:
    """Return m rows t times `scale`, no longer than one, as ``(-2 t, |t|^2)``, and `scale`.

    In float32, shape (m, p + 1).
    """
    if index not in _SCALED:
        rows = index._fit_X
        scale = 1 / (float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max())) or 1.0)
        scaled = rows * scale
        columns = np.column_stack([-2 * scaled, np.einsum("ij,ij->i", scaled, scaled)])
        _SCALED[index] = columns.astype(np.float32), scale
    return _SCALED[index]


def _candidates(index: NearestNeighbors, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of one of n inputs X (n, p) and one of m rows: all that may be nearest.

    Two arrays of row numbers, in order. A pair has a product, its key, in float32; a row whose key
    is too high for one of the k nearest, for all that float32 rounds, is left out.
    """
    rows, scale = _rows_and_scale(index)
    queries, lengths, shrink = _queries(X, scale)
    m, n, k = len(rows), len(X), index.n_neighbors
    if n <= _FEW_ROWS:
        keys = queries @ rows.T
        limit = _limit(_kth_at_most(keys, k), shrink, lengths, X.shape[1])
        who, which = np.nonzero(keys <= limit[:, None])
        return who, which
    size = max(1, int(min((m / (_DETAIL * k)) ** 0.5, m / max(_GROUPS, 16 * k))))
    count = -(-m // size)
    step = min(n, max(_PRODUCT_ROWS, _PRODUCT_BYTES // (4 * m)))
    products = np.empty((size * count, step), dtype=np.float32)
    products[m:] = np.inf
    pairs = []
    for part in _slices(n, step):
        columns = np.ascontiguousarray(queries[part].T)
        keys = products[:, : columns.shape[1]]
        np.matmul(rows, columns, out=keys[:m])
        keys = keys.reshape(size, count, -1)
        lowest = np.ascontiguousarray(keys.min(axis=0).T)
        limit = _limit(_kth_at_most(lowest, k), shrink[part], lengths[part], X.shape[1])
        who, block = np.divmod(np.flatnonzero(lowest <= limit[:, None]), count)
        near = keys[:, block, who] <= limit[who]
        place, pair = np.divmod(np.flatnonzero(near), len(who))
        pairs.append(np.sort((part.start + who[pair]) * m + place * count + block[pair]))
    return np.divmod(np.concatenate(pairs), m)


def _queries(X: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``s (x, 1)`` of scaled inputs, s so that none is longer than one; their lengths; s."""
    X = X * scale
    shrink = 1 / (np.maximum(np.abs(X).max(axis=1), 1.0) * np.sqrt(X.shape[1]))
    X = X * shrink[:, None]
    # Infinitely far from every row: which ones are nearest does not matter.
    endless = ~np.isfinite(X).all(axis=1)
    X[endless], shrink[endless] = 0.0, 1.0
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X)) / shrink
    queries = np.empty((len(X), X.shape[1] + 1), dtype=np.float32)
    queries[:, :-1], queries[:, -1] = X, shrink
    return queries, lengths, shrink


def _kth_at_most(lowest: np.ndarray, k: int) -> np.ndarray:
    """Return for each of n inputs a number that k keys do not exceed, close to the k-th, (n,).

    The `lowest` keys of many blocks (n, blocks) are distinct keys: the k-th lowest of these will
    do, and of enough of them, or of groups of them, it is close to that of all rows.
    """
    n, count = lowest.shape
    size = max(1, count // max(_GROUPS, 16 * k))
    groups = lowest[:, : count // size * size].reshape(n, size, -1).min(axis=1)
    return np.sort(groups, axis=1)[:, k - 1].astype(np.float64)


def _limit(kth: np.ndarray, shrink: np.ndarray, lengths: np.ndarray, p: int) -> np.ndarray:
    """Return the largest key of a row among the k nearest, for all that float32 rounds, (n,).

    A key is ``s (|t|^2 - 2 x.t)``; the product of p + 1 terms errs by no more than
    ``c s (2 |x| |t| + |t|^2)``. A row among the nearest is no longer than one, nor than the r with
    ``(r - |x|)^2 = d^2 + c (2 |x| r + r^2)``, d the distance that the k-th key shows.
    """
    c = (p + 8) * _ROUNDING
    squared = np.maximum(kth / shrink + lengths**2, 0.0)
    root = np.sqrt(c * (3 + c) * lengths**2 + (1 - c) * squared)
    longest = np.fmin(1.0, ((1 + c) * lengths + root) / (1 - c))
    error = c * longest * (2 * lengths + longest) * shrink
    limit = kth + 2 * (error + p * _SMALLEST)
    return np.asarray(np.nextafter(limit.astype(np.float32), np.float32(np.inf)))


def _decide(
    rows: np.ndarray, X: np.ndarray, who: np.ndarray, which: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answer of `nearest_rows` from pairs of a row of X and one of `rows`."""
    distances = np.empty(len(who))
    for part in _slices(len(who), _CHUNK_BYTES // (8 * X.shape[1])):
        gaps = X.take(who[part], axis=0)
        gaps -= rows.take(which[part], axis=0)
        distances[part] = _lengths(gaps)
    first = np.searchsorted(who, np.arange(len(X)))
    place = np.arange(len(who)) - first[who]
    padded = np.full((len(X), place.max() + 1), np.inf)
    padded[who, place] = distances
    chosen = first[:, None] + np.argsort(padded, axis=1, kind="stable")[:, :k]
    return distances[chosen], which[chosen]
