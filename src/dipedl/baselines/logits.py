"""Scores of the logits: their free energy, and the largest of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from ..answers import Decisions
from ..maths.arrays import check_positive_number
from .post_hoc import PostHoc, require_logits

__all__ = ["Energy", "MaxLogit"]


@dataclass(eq=False, repr=False)
class Energy(Decisions, PostHoc):
    """Uncertainty is the free energy of the logits, ``E(x) = -T log sum_c exp(f_c(x) / T)``.

    Logits come from ``estimator.logits`` or else from ``estimator.decision_function``. The one
    margin f of a classifier of two classes stands for the logits (-f/2, f/2), the symmetric pair.

    Parameters
    ----------
    estimator : classifier with logits, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    temperature : float, default=1.0
        T > 0.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.

    Raises
    ------
    TypeError
        From ``fit``: the estimator has neither ``logits`` nor ``decision_function``.

    Notes
    -----
    Probabilities do not determine the energy: a constant added to all logits changes it.

    References
    ----------
    Liu et al., "Energy-based out-of-distribution detection", NeurIPS (2020), equation 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import Energy
    >>> X, y = load_iris(return_X_y=True)
    >>> Energy().fit(X, y).uncertainty(X[[0, 70]]).round(1)
    array([-7.4, -2.5])
    """

    temperature: float = 1.0

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_positive_number("temperature", self.temperature)
        require_logits(self.estimator)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Free energy of each input X (n, d), in units of the logits, shape (n,)."""
        logits = self._logits(X)
        return np.asarray(-self.temperature * logsumexp(logits / self.temperature, axis=1))


class MaxLogit(Decisions, PostHoc):
    """Uncertainty is the negative of the largest logit, ``-max_c f_c(x)``.

    Parameters
    ----------
    estimator : classifier with logits, default=LogisticRegression(max_iter=1000)
        As of `Energy`.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.

    Raises
    ------
    TypeError
        From ``fit``: the estimator has neither ``logits`` nor ``decision_function``.

    References
    ----------
    Hendrycks et al., "Scaling out-of-distribution detection for real-world settings", ICML (2022),
    section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import MaxLogit
    >>> X, y = load_iris(return_X_y=True)
    >>> MaxLogit().fit(X, y).uncertainty(X[[0, 70]]).round(1)
    array([-7.3, -1.9])
    """

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        require_logits(self.estimator)

    def uncertainty(self, X: Any) -> np.ndarray:
        """``-max_c f_c(x)`` of each input X (n, d), in units of the logits, shape (n,)."""
        return np.asarray(-self._logits(X).max(axis=1))
