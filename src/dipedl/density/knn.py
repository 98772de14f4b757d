"""k-nearest-neighbour density estimate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from ..calibration.crossfit import row_hash
from ._approximate import approximate_neighbors, import_faiss
from ._mixin import LogDensityMixin
from ._neighbors import distances_to

__all__ = ["KNNDensity"]

_COPIES = 0.05
_PROBES = 1000
_INDEXES = ("exact", "faiss")


class KNNDensity(LogDensityMixin, BaseEstimator):
    """Density from the distance to the k-th nearest training row.

    ``log p(x) = log k - log n - log V_p - p log r_k(x)`` with V_p the volume of the unit ball. It
    ranks like the distance; as a density it does not integrate to one (its tails are too heavy).

    Parameters
    ----------
    n_neighbors : int, default=10
        Which neighbour, k; at most the number of training rows.
    n_jobs : int or None, default=None
        Processes for the exact search, as in scikit-learn. faiss takes the threads that
        ``OMP_NUM_THREADS`` names.
    index : {"exact", "faiss"}, default="exact"
        "exact" searches all rows: a tree for up to 15 features, matrix products for more. "faiss"
        (extra ``ann``) searches the cells of an inverted file that lie near: its answers are
        approximate.
    probe : float, default=0.1
        Share of the cells that "faiss" searches, in (0, 1]. More finds more of the neighbours and
        takes longer; "exact" has no use for it.

    Attributes
    ----------
    center_ : ndarray, shape (p,)
        Mean of the training rows, taken off before the search.
    neighbors_ : NearestNeighbors
        The fitted index of centred rows, also where faiss searches them.
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
    ) -> None:
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs
        self.index = index
        self.probe = probe

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p) with n >= n_neighbors; `y` is ignored.

        Raises
        ------
        ValueError
            If a parameter is out of range, distances overflow, or more than 5 % of the rows have
            `n_neighbors` copies or more.
        ImportError
            If faiss is asked for and missing; names the extra.
        """
        X = validate_data(self, X, dtype=np.float64)
        self._check_parameters(len(X))
        keys = row_hash(X)
        self._check_copies(keys)
        with np.errstate(over="ignore", invalid="ignore"):
            self.center_ = X.mean(axis=0)
            X = X - self.center_
            longest = np.einsum("ij,ij->i", X, X).max()
        if not longest < np.finfo(np.float64).max / 4:
            raise ValueError("the distances between the rows of X overflow; rescale the features")
        self.neighbors_ = self._exact(X, self.n_neighbors)
        some = np.argsort(keys, kind="stable")[:_PROBES]
        self.radius_floor_ = (
            _smallest_positive(self._kth_distance(X[some])) or self._smallest_gap(X, keys) or 1.0
        )
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of the rows of X (n, p), shape (n,); -inf if a distance overflows."""
        X = self._centred(X)
        p, n = X.shape[1], self.neighbors_.n_samples_fit_
        log_volume = p / 2 * np.log(np.pi) - gammaln(p / 2 + 1)
        radius = np.maximum(self._kth_distance(X), self.radius_floor_)
        return np.asarray(np.log(self.n_neighbors) - np.log(n) - log_volume - p * np.log(radius))

    def neighbors(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Which training rows the rows of X (n, p) are judged by.

        Returns
        -------
        distances : ndarray, shape (n, n_neighbors)
            Euclidean distances, in the unit of the features; ``inf`` where one overflows.
        rows : ndarray of int, shape (n, n_neighbors)
            Numbers of the training rows, nearest first. A training row is its own neighbour.
        """
        X = self._centred(X)
        rows = self._nearest(X)
        distances = self._distances(X, rows)
        order = np.argsort(distances, axis=1, kind="stable")
        return np.take_along_axis(distances, order, 1), np.take_along_axis(rows, order, 1)

    def _centred(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "neighbors_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(over="ignore"):
            return np.asarray(X - self.center_)

    def _check_parameters(self, n: int) -> None:
        if not 1 <= self.n_neighbors <= n:
            raise ValueError(
                f"n_neighbors must lie in 1..n_samples = {n}, got {self.n_neighbors!r}"
            )
        if self.index not in _INDEXES:
            raise ValueError(f"index must be one of {_INDEXES}, got {self.index!r}")
        if not 0 < self.probe <= 1:
            raise ValueError(f"probe must lie in (0, 1], got {self.probe!r}")
        if self.index == "faiss":
            import_faiss()

    def _exact(self, X: np.ndarray, k: int) -> NearestNeighbors:
        # faiss searches for itself: a tree beside it would be a waste.
        algorithm = "auto" if self.index == "exact" else "brute"
        return NearestNeighbors(n_neighbors=k, algorithm=algorithm, n_jobs=self.n_jobs).fit(X)

    def _nearest(self, X: np.ndarray) -> np.ndarray:
        """Numbers of the nearest training rows of centred X, shape (n, n_neighbors)."""
        if self.index == "faiss":
            return approximate_neighbors(self.neighbors_, X, self.n_neighbors, self.probe)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.neighbors_.kneighbors(X, return_distance=False))

    def _distances(self, X: np.ndarray, rows: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            distances = distances_to(self.neighbors_._fit_X, X, rows)
        return np.where(np.isnan(distances), np.inf, distances)

    def _kth_distance(self, X: np.ndarray) -> np.ndarray:
        """Distance of centred X to its k-th neighbour, shape (n,)."""
        return self._distances(X, self._nearest(X)[:, -1:])[:, 0]

    def _check_copies(self, keys: np.ndarray) -> None:
        """Refuse data of which many rows have their k nearest other rows at distance zero."""
        counts = np.unique(keys, return_counts=True)[1]
        share = counts[counts > self.n_neighbors].sum() / len(keys)
        if share > _COPIES:
            raise ValueError(
                f"{share:.0%} of the rows of X have {self.n_neighbors} copies or more, where the "
                "density is infinite; KNNDensity needs continuous features: raise n_neighbors "
                f"(the commonest row comes {counts.max()} times), drop repeated rows, or use "
                "GDADensity or KernelDensity. After L2 normalisation rows of one direction are "
                "copies, and rows of zeros too"
            )

    def _smallest_gap(self, X: np.ndarray, keys: np.ndarray) -> float:
        """Smallest distance between two distinct rows of X, or from a thousand; 0 if all equal."""
        rows = X[np.unique(keys, return_index=True)[1]]
        if len(rows) == 1:
            return 0.0
        index, some = self._exact(rows, 2), rows[:_PROBES]
        nearest = index.kneighbors(some, return_distance=False)
        return _smallest_positive(distances_to(rows, some, nearest).ravel())


def _smallest_positive(distance: np.ndarray) -> float:
    """0 if there is none."""
    positive = distance[distance > 0]
    return float(positive.min()) if len(positive) else 0.0
