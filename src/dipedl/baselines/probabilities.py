"""Scores of the predicted class probabilities: the largest one (MSP), and their entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers import Decisions
from ..dirichlet import entropy, max_prob
from .post_hoc import PostHoc

__all__ = ["MaxSoftmax", "PredictiveEntropy"]


class MaxSoftmax(Decisions, PostHoc):
    """Uncertainty is one minus the largest class probability, ``1 - max_c p_c(x)``.

    It is the sum of the other probabilities: the difference from one would be zero, a tie, for
    every probability above 1 - 1e-16.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels.
    estimator_ : classifier
        The fitted classifier.
    n_features_in_ : int
        Number of inputs d.

    References
    ----------
    Hendrycks, Gimpel, "A baseline for detecting misclassified and out-of-distribution examples in
    neural networks", ICLR (2017), section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import MaxSoftmax
    >>> X, y = load_iris(return_X_y=True)
    >>> MaxSoftmax().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([0.02, 0.44])
    """

    def uncertainty(self, X: Any) -> np.ndarray:
        """``1 - max_c p_c(x)`` of each input X (n, d), in [0, 1 - 1/k], shape (n,)."""
        return max_prob(self.predict_proba(X))


class PredictiveEntropy(Decisions, PostHoc):
    """Uncertainty is the entropy of the prediction, ``-sum_c p_c(x) log p_c(x)``.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.

    References
    ----------
    Shannon, "A mathematical theory of communication" (1948), section 6; as a score for
    out-of-distribution inputs: Lakshminarayanan et al., NeurIPS (2017), section 3.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import PredictiveEntropy
    >>> X, y = load_iris(return_X_y=True)
    >>> PredictiveEntropy().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([0.09, 0.7 ])
    """

    def uncertainty(self, X: Any) -> np.ndarray:
        """Entropy in nats of the prediction for each input X (n, d), in [0, log k], shape (n,)."""
        return entropy(self.predict_proba(X))
