"""Maximum softmax probability (MSP)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..answers import Decisions
from ..dirichlet import max_prob
from .post_hoc import PostHoc

__all__ = ["MaxSoftmax"]


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
