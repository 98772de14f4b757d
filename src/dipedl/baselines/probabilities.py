"""Scores of the predicted class probabilities: the largest, entropies, distance to templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..dirichlet import entropy, max_prob
from ..maths.arrays import check_integer, check_number
from .post_hoc import PostHoc

__all__ = ["GEN", "KLMatching", "MaxSoftmax", "PredictiveEntropy"]

_TINY = np.finfo(np.float64).tiny


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


@dataclass(eq=False, repr=False)
class GEN(Decisions, PostHoc):
    r"""Uncertainty is the generalised entropy of the prediction.

    .. math:: u(x) = \sum_{j=1}^{M} p_{(j)}^\gamma (1 - p_{(j)})^\gamma,

    over the M largest class probabilities. A small power gives weight to small probabilities, which
    the Shannon entropy hardly sees.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    gamma : float, default=0.1
        Power, in (0, 1].
    n_largest : int, default=100
        M; all classes where there are fewer. Both are the paper's, for ImageNet, and OpenOOD's.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.

    References
    ----------
    Liu, Lochman, Zach, "GEN: pushing the limits of softmax-based out-of-distribution detection",
    CVPR (2023), equations 2 and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import GEN
    >>> X, y = load_iris(return_X_y=True)
    >>> GEN().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([1.5 , 2.28])
    """

    gamma: float = 0.1
    n_largest: int = 100

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_number("gamma", self.gamma, "in (0, 1]", lambda g: 0 < g <= 1)
        check_integer("n_largest", self.n_largest)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Generalised entropy of the prediction for each input X (n, d), >= 0, shape (n,)."""
        P = np.sort(self.predict_proba(X), axis=1)[:, ::-1]
        others = 1 - P
        # as a difference from one, what the largest leaves would be 0 for every confident row
        others[:, 0] = max_prob(P)
        terms = (P * others)[:, : self.n_largest]
        return np.asarray((terms**self.gamma).sum(axis=1))


class KLMatching(Decisions, PostHoc):
    r"""Uncertainty is the least divergence of the prediction from the typical one of a class.

    .. math:: u(x) = \min_c KL(p(x) \| d_c),

    with :math:`d_c` the mean prediction of the training rows that are predicted to be of class c.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    templates_ : ndarray, shape (k, k)
        The d_c; certainty where no row is predicted to be of class c.

    Notes
    -----
    The paper takes validation rows; here all scores are fitted to the rows of ``fit``.

    References
    ----------
    Hendrycks et al., "Scaling out-of-distribution detection for real-world settings", ICML (2022),
    section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import KLMatching
    >>> X, y = load_iris(return_X_y=True)
    >>> KLMatching().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([0.  , 0.28])
    """

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        P = self.predict_proba(X)
        predicted = P.argmax(axis=1)
        templates = np.eye(len(self.classes_))
        for c in np.unique(predicted):
            templates[c] = P[predicted == c].mean(axis=0)
        self.templates_ = templates

    def uncertainty(self, X: Any) -> np.ndarray:
        """Least divergence in nats of the prediction for each input X (n, d), shape (n,)."""
        check_is_fitted(self, "templates_")
        P = self.predict_proba(X)
        # finite where a class that a template rules out is predicted
        cross = -P @ np.log(np.maximum(self.templates_, _TINY)).T
        divergence = cross.min(axis=1) - entr(P).sum(axis=1)
        return np.asarray(np.maximum(divergence, 0.0))
