"""k-nearest-neighbour density estimate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import gammaln
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_is_fitted, validate_data

from ._mixin import LogDensityMixin
from ._neighbors import kth_distance

__all__ = ["KNNDensity"]

_COPIES = 0.05


class KNNDensity(LogDensityMixin, BaseEstimator):
    """Density from the distance to the k-th nearest training row.

    ``log p(x) = log k - log n - log V_p - p log r_k(x)`` with V_p the volume of the unit ball. It
    ranks like the distance; as a density it does not integrate to one (its tails are too heavy).

    Parameters
    ----------
    n_neighbors : int, default=10
        Which neighbour, k; at most the number of training rows.
    n_jobs : int or None, default=None
        Processes for the search, as in scikit-learn.

    Attributes
    ----------
    center_ : ndarray, shape (p,)
        Mean of the training rows, taken off before the search.
    neighbors_ : NearestNeighbors
        The fitted index of centred rows.
    radius_floor_ : float
        Smallest positive k-th distance among the training rows (if all are zero, as for
        ``n_neighbors=1``: smallest distance of two distinct rows). No row is scored as nearer than
        this: an exact copy of a training row would have an infinite density.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    Training rows are their own neighbours: score them by cross-fitting, as `DIPClassifier` does by
    default.

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

    def __init__(self, n_neighbors: int = 10, n_jobs: int | None = None) -> None:
        self.n_neighbors = n_neighbors
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p) with n >= n_neighbors; `y` is ignored."""
        X = validate_data(self, X, dtype=np.float64)
        if not 1 <= self.n_neighbors <= len(X):
            raise ValueError(
                f"n_neighbors must lie in 1..n_samples = {len(X)}, got {self.n_neighbors!r}"
            )
        with np.errstate(over="ignore", invalid="ignore"):
            self.center_ = X.mean(axis=0)
            X = X - self.center_
            index = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
            self.neighbors_ = index.fit(X)
            radius = kth_distance(self.neighbors_, X)
        if not np.isfinite(radius).all():
            raise ValueError("the distances between the rows of X overflow; rescale the features")
        copies = self._share_of_copies(X)
        if copies > _COPIES:
            raise ValueError(
                f"{copies:.0%} of the rows of X have {self.n_neighbors} copies or more, where the "
                "density is infinite; KNNDensity needs continuous features: raise n_neighbors, or "
                "use GDADensity or KernelDensity"
            )
        self.radius_floor_ = _smallest_positive(radius) or _smallest_gap(X) or 1.0
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of the rows of X (n, p), shape (n,); -inf if a distance overflows."""
        check_is_fitted(self, "neighbors_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        p, n = X.shape[1], self.neighbors_.n_samples_fit_
        log_volume = p / 2 * np.log(np.pi) - gammaln(p / 2 + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            radius = kth_distance(self.neighbors_, X - self.center_)
        radius = np.where(np.isnan(radius), np.inf, radius)
        log_radius = np.log(np.maximum(radius, self.radius_floor_))
        return np.asarray(np.log(self.n_neighbors) - np.log(n) - log_volume - p * log_radius)

    def _share_of_copies(self, X: np.ndarray) -> float:
        """Share of the training rows whose k nearest *other* rows are all copies of them."""
        if self.n_neighbors >= len(X):
            return 0.0
        index = NearestNeighbors(n_neighbors=self.n_neighbors).fit(X)
        nearest = index.kneighbors(return_distance=False)[:, -1]
        return float((X == X[nearest]).all(axis=1).mean())


def _smallest_positive(distance: np.ndarray) -> float:
    """0 if there is none."""
    positive = distance[distance > 0]
    return float(positive.min()) if len(positive) else 0.0


def _smallest_gap(X: np.ndarray) -> float:
    """Smallest distance between two distinct rows of X (n, p); 0 if all are equal."""
    rows = np.unique(X, axis=0)
    if len(rows) == 1:
        return 0.0
    nearest = NearestNeighbors(n_neighbors=1).fit(rows).kneighbors(return_distance=False)[:, 0]
    return _smallest_positive(np.linalg.norm(rows - rows[nearest], axis=1))
