"""Distance to the k-th nearest training row, among L2-normalised features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from ..answers import Decisions
from ..density.knn import nearest_rows
from ..inputs import one_thread
from ..maths.arrays import check_integer
from .post_hoc import PostHoc

__all__ = ["KNNDistance"]


@dataclass(eq=False, repr=False)
class KNNDistance(Decisions, PostHoc):
    """Uncertainty is the distance to the k-th nearest training row, of features of unit length.

    ``u(x) = |z - z_(k)|`` with ``z = h(x) / |h(x)|`` for features h, and z_(k) its k-th nearest
    among those of the training rows.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    n_neighbors : int, default=50
        Which neighbour, k; at most the number of training rows. The paper takes 50 for CIFAR-10.
    n_jobs : int or None, default=None
        Processes for the search, as in scikit-learn.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    neighbors_ : NearestNeighbors
        The index of the normalised features of the training rows.

    Notes
    -----
    Features that are all zero stay zero, at distance one from the others. A
    training row counts as its own first neighbour.

    References
    ----------
    Sun et al., "Out-of-distribution detection with deep nearest neighbors", ICML (2022),
    section 3, algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import KNNDistance
    >>> X, y = load_iris(return_X_y=True)
    >>> KNNDistance(n_neighbors=10).fit(X, y).uncertainty([X[0], X[0, ::-1]]).round(2)
    array([0.02, 0.87])
    """

    features: Any = None
    n_neighbors: int = 50
    n_jobs: int | None = None

    def _check_parameters(self, y: np.ndarray) -> None:
        if check_integer("n_neighbors", self.n_neighbors) > len(y):
            raise ValueError(
                f"n_neighbors must lie in 1..n_samples = {len(y)}, got {self.n_neighbors!r}"
            )

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = normalize(self._fit_features(self.features, X, y))
        index = NearestNeighbors(n_neighbors=self.n_neighbors, n_jobs=self.n_jobs)
        self.neighbors_ = index.fit(Z)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Distance of each input X (n, d) to its k-th neighbour, in [0, 2], shape (n,)."""
        Z = normalize(self._features(X))
        with one_thread(Z, blas=True):
            return nearest_rows(self.neighbors_, Z)[0][:, -1]

    def readable_density(self, X: Any) -> tuple[Any, np.ndarray, Any]:
        """Return the density behind the score, what it sees of X (n, p), and its transformer."""
        return _Neighbours(self.neighbors_), normalize(self._features(X)), self.features_

    @staticmethod
    def _test_params() -> dict[str, Any]:
        """Arguments for the public conformance checks, whose classes have few rows."""
        return {"n_neighbors": 5}


@dataclass(frozen=True, eq=False)
class _Neighbours:
    """The index, as cards read it."""

    neighbors_: NearestNeighbors

    @property
    def n_neighbors_(self) -> int:
        return int(self.neighbors_.n_neighbors)

    def neighbors(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances to the nearest training rows of features Z (n, p), and their numbers."""
        distances, rows = self.neighbors_.kneighbors(Z)
        return distances, rows
