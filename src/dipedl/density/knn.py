"""k-nearest-neighbour density estimate."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors

from ..calibration.crossfit import row_hash
from ..fitting import all_or_nothing
from ..inputs import validate_fit_features
from ..maths.array_namespace import drop_mask
from ..maths.seeds import seed
from .base import LogDensityMixin
from .neighbors import approximate_rows, import_faiss, nearest_rows, sort_by_distance

__all__ = ["KNNDensity"]

_COPIES = 0.05
_PROBES = 1000
_INDEXES = ("exact", "faiss")
#: Up to so many rows products of all are faster than a tree, and with more features always.
_PRODUCTS, _TREE_FEATURES = 10_000, 15


class KNNDensity(LogDensityMixin, BaseEstimator):
    """Density from the distance to the k-th nearest training row.

    ``log p(x) = log k - log n - log V_p - p log r_k(x)`` with V_p the volume of the unit ball. It
    ranks like the distance; as a density it does not integrate to one (its tails are too heavy).

    Parameters
    ----------
    n_neighbors : int, default=10
        Which neighbour among the training rows, k; at most their number.
    n_jobs : int or None, default=None
        Processes for the search in a tree, as in scikit-learn. Matrix products and faiss take the
        threads that ``OMP_NUM_THREADS`` names.
    index : {"exact", "faiss"}, default="exact"
        "exact" searches all rows: a tree for more than 10,000 rows of up to 15 features, else
        matrix products in float32, and float64 for the rows that these leave possible. "faiss"
        (extra ``ann``) searches the cells of an inverted file that lie near: its answers are
        approximate.
    probe : float, default=0.1
        Share of the cells that "faiss" searches, in (0, 1]. More finds more of the neighbours and
        takes longer; "exact" has no use for it.
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
        The fitted index of these rows, centred, also where faiss searches them.
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

    Memory is 8 n p bytes for the rows; faiss takes about 4 n p more. A neighbour that faiss misses
    is replaced by one farther away, so a score can only be too low; which one is missed may hang on
    the last digit of a distance in float32, and so on the rows asked with. The index of faiss is
    not part of a saved or pickled model: the rows are, and it is built again, alike, when first
    asked.

    References
    ----------
    Loftsgaarden, Quesenberry, Ann. Math. Statist. 36 (1965); Sun et al., "Out-of-distribution
    detection with deep nearest neighbors", ICML (2022); Jégou, Douze, Schmid, "Product quantization
    for nearest neighbor search", IEEE TPAMI 33 (2011), section IV, the inverted file.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import KNNDensity
    >>> density = KNNDensity(2).fit(np.arange(5.0)[:, None])
    >>> density.score_samples([[2.5], [102.5]]).round(2)
    array([-1.61, -6.21])
    """

    normalized = False

    def __init__(
        self,
        n_neighbors: int = 10,
        n_jobs: int | None = None,
        index: str = "exact",
        probe: float = 0.1,
        max_rows: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.index = index
        self.probe = probe
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p), n >= n_neighbors; labels y (n,) only share out `max_rows`.

        Raises
        ------
        ValueError
            If a parameter or a number of X is out of range, or more than 5 % of the rows have
            `n_neighbors` copies or more.
        ImportError
            If faiss is asked for and missing; names the extra.
        """
        with all_or_nothing(self):
            X = validate_fit_features(self, X)
            self._check_parameters(len(X))
            self.row_numbers_ = self._draw(X, drop_mask("y", y))
            # A ball that holds k of n rows holds k m / n of m drawn; one alone is too noisy.
            share = len(self.row_numbers_) / len(X)
            self.n_neighbors_ = max(min(2, self.n_neighbors), round(self.n_neighbors * share))
            X = X[self.row_numbers_]
            keys = row_hash(X)
            self._check_copies(keys)
            self.center_ = X.mean(axis=0)
            X = X - self.center_
            self.neighbors_ = self._exact(X, self.n_neighbors_)
            some = np.argsort(keys, kind="stable")[:_PROBES]
            self.radius_floor_ = (
                _smallest_positive(self._nearest(X[some])[0][:, -1])
                or self._smallest_gap(X, keys)
                or 1.0
            )
            return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        radius = np.maximum(self._nearest(self._centre(Z))[0][:, -1], self.radius_floor_)
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
        distances, rows = self._nearest(self._centre(self._check_rows(X)))
        return distances, self.row_numbers_[rows]

    def for_own_rows(self) -> Self:
        """Return the fitted density as it scores rows of its fit: none is its own neighbour.

        Itself where faiss searches, or a part of the rows is kept.
        """
        k = self.n_neighbors_ + 1
        if self.index == "faiss" or k <= self.n_neighbors or k > len(self.row_numbers_):
            return self
        density = copy(self)
        density.neighbors_ = copy(self.neighbors_).set_params(n_neighbors=k)
        return density

    @property
    def log_constant_(self) -> float:
        """``log k - log n - log V_p``, in nats."""
        n, p = self.neighbors_._fit_X.shape
        log_volume = p / 2 * np.log(np.pi) - gammaln(p / 2 + 1)
        return float(np.log(self.n_neighbors_) - np.log(n) - log_volume)

    def _centre(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.asarray(X - self.center_)

    def _check_parameters(self, n: int) -> None:
        if not 1 <= self.n_neighbors <= n:
            raise ValueError(
                f"n_neighbors must lie in 1..n_samples = {n}, got {self.n_neighbors!r}"
            )
        if self.max_rows is not None and not self.max_rows >= self.n_neighbors:
            raise ValueError(
                f"max_rows must be None or at least n_neighbors = {self.n_neighbors}, "
                f"got {self.max_rows!r}"
            )
        if self.index not in _INDEXES:
            raise ValueError(f"index must be one of {_INDEXES}, got {self.index!r}")
        if not 0 < self.probe <= 1:
            raise ValueError(f"probe must lie in (0, 1], got {self.probe!r}")
        if self.index == "faiss":
            import_faiss()

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
        # faiss searches for itself: a tree beside it would be a waste.
        tree = self.index == "exact" and len(X) > _PRODUCTS and X.shape[1] <= _TREE_FEATURES
        algorithm = "auto" if tree else "brute"
        return NearestNeighbors(n_neighbors=k, algorithm=algorithm, n_jobs=self.n_jobs).fit(X)

    def _nearest(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and numbers of the kept rows that are nearest to centred X, (n, k)."""
        if self.index != "faiss":
            return nearest_rows(self.neighbors_, X)
        found = approximate_rows(self.neighbors_, X, self.n_neighbors_, self.probe)
        return sort_by_distance(self.neighbors_, X, found)

    def _check_copies(self, keys: np.ndarray) -> None:
        """Refuse data of which many rows have their k nearest other rows at distance zero."""
        counts = np.unique(keys, return_counts=True)[1]
        share = counts[counts > self.n_neighbors_].sum() / len(keys)
        if share > _COPIES:
            raise ValueError(
                f"{share:.0%} of the rows of X have {self.n_neighbors_} copies or more, where the "
                "density is infinite; KNNDensity needs continuous features: raise n_neighbors "
                f"(the commonest row comes {counts.max()} times), drop repeated rows, or use "
                "GDADensity or KernelDensity. After L2 normalisation rows of one direction are "
                "copies, and rows of zeros too"
            )

    def _smallest_gap(self, X: np.ndarray, keys: np.ndarray) -> float:
        """Return the smallest distance of distinct rows, or from a thousand; 0 if all are equal."""
        rows = X[np.unique(keys, return_index=True)[1]]
        if len(rows) == 1:
            return 0.0
        index, some = self._exact(rows, 2), rows[:_PROBES]
        return _smallest_positive(nearest_rows(index, some)[0].ravel())


def _smallest_positive(distance: np.ndarray) -> float:
    """Return the smallest positive distance; 0 if there is none."""
    positive = distance[distance > 0]
    return float(positive.min()) if len(positive) else 0.0
