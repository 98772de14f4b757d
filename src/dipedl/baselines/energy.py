"""Free energy of the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..inputs import validate_inputs
from ..maths.arrays import check_positive_number
from .post_hoc import PostHoc

__all__ = ["Energy"]


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

    def _check_parameters(self, y: np.ndarray) -> None:
        check_positive_number("temperature", self.temperature)
        if self.estimator is None or hasattr(self.estimator, "logits"):
            return
        if not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                "estimator must have a method logits or decision_function, "
                f"got {self.estimator!r}: probabilities do not determine an energy; "
                "use MaxSoftmax or PredictiveEntropy"
            )

    def uncertainty(self, X: Any) -> np.ndarray:
        """Free energy of each input X (n, d), in units of the logits, shape (n,)."""
        check_is_fitted(self, "estimator_")
        X = validate_inputs(self, X)
        logits = _logits(self.estimator_, X, (X.shape[0], len(self.classes_)))
        return np.asarray(-self.temperature * logsumexp(logits / self.temperature, axis=1))


def _logits(estimator: Any, X: Any, shape: tuple[int, int]) -> np.ndarray:
    """Logits of X, of the given shape (n, k)."""
    function = estimator.logits if hasattr(estimator, "logits") else estimator.decision_function
    logits = np.asarray(function(X), dtype=np.float64)
    if logits.ndim == 1:
        logits = np.column_stack([-logits / 2, logits / 2])
    if logits.shape != shape:
        raise ValueError(
            f"logits of the estimator must have shape {shape}, one per class, got {logits.shape}; "
            "give a support vector machine decision_function_shape='ovr'"
        )
    if not np.isfinite(logits).all():
        raise ValueError(
            "logits of the estimator must be finite, got NaN or inf; check its fit and scaling"
        )
    return logits
