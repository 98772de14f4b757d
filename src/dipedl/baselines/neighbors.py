"""Nearest training rows among features of unit length: distance to the k-th, and guidance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from ..answers import Decisions
from ..density.knn import check_neighbors, nearest_rows
from ..inputs import one_thread
from ..maths.arrays import check_integer, check_number
from ..maths.seeds import random_state_of
from .post_hoc import PostHoc, compute_logits, require_logits

__all__ = ["KNNDistance", "NNGuide"]

#: So many products at once stay in the cache of a core while the largest are sought.
_PRODUCTS = 1 << 19


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

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("n_neighbors", self.n_neighbors)

    def _check_rows(self, y: np.ndarray) -> None:
        check_neighbors(self.n_neighbors, len(y))

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


@dataclass(eq=False, repr=False)
class NNGuide(Decisions, PostHoc):
    r"""Uncertainty is the energy, guided by similarity to confident training rows.

    .. math:: u(x) = -F(x) \frac{1}{K} \sum_{i \in N} F(x_i) \cos(z, z_i), \qquad
        F(x) = \log \sum_c \exp f_c(x),

    over the K largest products :math:`F(x_i) \cos(z, z_i)` with rows of a bank, a random part of
    the training rows.

    Parameters
    ----------
    estimator : classifier with logits, default=LogisticRegression(max_iter=1000)
        As of `Energy`.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    n_neighbors : int, default=10
        K, at most the number of training rows; that of the released code.
    bank : float, default=0.01
        Share of the training rows in the bank, in (0, 1], which has K rows at least. The paper's,
        for ImageNet, and OpenOOD's.
    random_state : int, RandomState or None, default=0
        Draws the bank.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    guides_ : ndarray, shape (m, p)
        Features of unit length of the bank, times their F.

    Raises
    ------
    TypeError
        From ``fit``: the estimator has neither ``logits`` nor ``decision_function``.

    References
    ----------
    Park, Jung, Teoh, "Nearest neighbor guidance for out-of-distribution detection", ICCV (2023),
    equations 4 and 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import NNGuide
    >>> X, y = load_iris(return_X_y=True)
    >>> NNGuide(bank=1.0).fit(X, y).uncertainty(X[[0, 70]]).round(1)
    array([-57.6, -18.3])
    """

    features: Any = None
    n_neighbors: int = 10
    bank: float = 0.01
    random_state: Any = 0

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        require_logits(self.estimator)
        check_integer("n_neighbors", self.n_neighbors)
        check_number("bank", self.bank, "in (0, 1]", lambda share: 0 < share <= 1)

    def _check_rows(self, y: np.ndarray) -> None:
        check_neighbors(self.n_neighbors, len(y))

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = normalize(self._fit_features(self.features, X, y))
        logits = compute_logits(self.estimator_, X, (len(Z), len(self.classes_)))
        m = max(self.n_neighbors, round(self.bank * len(Z)))
        rows = random_state_of(self.random_state).choice(len(Z), m, replace=False)
        self.guides_ = Z[rows] * logsumexp(logits[rows], axis=1)[:, None]

    def uncertainty(self, X: Any) -> np.ndarray:
        """Negative guided log-sum of logits of each input X (n, d), shape (n,)."""
        logits, Z = self._logits(X), normalize(self._features(X))
        k, guides = self.n_neighbors, self.guides_.T
        step = max(1, _PRODUCTS // guides.shape[1])
        guidance = [
            np.partition(Z[start : start + step] @ guides, -k, axis=1)[:, -k:].mean(axis=1)
            for start in range(0, len(Z), step)
        ]
        return np.asarray(-logsumexp(logits, axis=1) * np.concatenate(guidance))
