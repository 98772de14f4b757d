"""ECOD, an outlier score from the tails of each feature, as a density to compare with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

__all__ = ["ECOD"]


class ECOD(BaseEstimator):
    r"""Negated outlier score from the tail probabilities of each feature, in nats.

    With the shares l_j(x) and r_j(x) of training rows whose feature j is at most, or at least, x_j
    (x itself counted among them), the outlier score is the largest of three sums over j:
    :math:`-\log l_j`, :math:`-\log r_j`, and that of the longer tail of feature j, the left one if
    its skewness is negative. PyOD counts tails among the training rows and all rows of a call, here
    the score of a row depends on no other; PyOD also takes the largest for each feature by itself.

    Attributes
    ----------
    sorted_ : ndarray of shape (p, n)
        Training values of each feature, ascending.
    left_ : ndarray of shape (p,)
        True for features with negative skewness.

    References
    ----------
    Li, Zhao, Hu, Botta, Ionescu, Chen, "ECOD: Unsupervised Outlier Detection Using Empirical
    Cumulative Distribution Functions", IEEE TKDE (2022), algorithm 1.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the training rows X (n, p), sorted by each feature."""
        X = np.asarray(X, dtype=np.float64)
        self.sorted_ = np.sort(X.T, axis=1)
        self.left_ = ((X - X.mean(axis=0)) ** 3).sum(axis=0) < 0
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Negated outlier score of each row of X (m, p), shape (m,); higher is more typical."""
        columns, n = np.asarray(X, dtype=np.float64).T, self.sorted_.shape[1]
        pairs = list(zip(self.sorted_, columns, strict=True))
        at_most = np.array([np.searchsorted(row, x, side="right") for row, x in pairs])
        below = np.array([np.searchsorted(row, x, side="left") for row, x in pairs])
        left, right = np.log((at_most + 1) / (n + 1)), np.log((n - below + 1) / (n + 1))
        longer = np.where(self.left_[:, None], left, right)
        return np.asarray(np.min([part.sum(axis=0) for part in (left, right, longer)], axis=0))
