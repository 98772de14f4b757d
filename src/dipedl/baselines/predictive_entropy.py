"""Entropy of the predicted class probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers import Decisions
from ..dirichlet import entropy
from .post_hoc import PostHoc

__all__ = ["PredictiveEntropy"]


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
