"""Features seen from the last layer: distance to its boundaries, alignment with its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Decisions
from ..maths.arrays import check_number
from .post_hoc import LastLayer, PostHoc

__all__ = ["FDBD", "NCI"]

_LEAST = 1e-12


@dataclass(eq=False, repr=False)
class FDBD(Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the negative mean distance of the features to the decision boundaries.

    .. math:: u(x) = -\frac{1}{k - 1} \sum_{c \ne \hat c}
        \frac{f_{\hat c} - f_c}{\|w_{\hat c} - w_c\| \, \|z - m\|},

    the distance of z to the boundary between the predicted class and each other one, in units of
    the distance of z to the mean m of the training rows.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.
    mean_ : ndarray, shape (p,)
        m.

    Raises
    ------
    TypeError
        As of `ReAct`.

    References
    ----------
    Liu, Qin, "Fast decision boundary based out-of-distribution detector", ICML (2024), equations 4
    to 6. It has no parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import FDBD
    >>> X, y = load_iris(return_X_y=True)
    >>> FDBD().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([-0.79, -0.38])
    """

    def _fit_to_features(self, Z: np.ndarray) -> None:
        self.mean_ = Z.mean(axis=0)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Negative relative distance to boundaries of each input X (n, d), <= 0, shape (n,)."""
        Z = self._features(X)
        logits, weight = self.head_.logits(Z), self.head_.weight
        between = np.linalg.norm(weight[:, None] - weight, axis=2)
        gaps = logits.max(axis=1, keepdims=True) - logits
        # its own class has a gap of zero, and equal weights have no boundary
        distances = gaps / np.maximum(between[logits.argmax(axis=1)], _LEAST)
        scale = np.maximum(np.linalg.norm(Z - self.mean_, axis=1), _LEAST)
        return np.asarray(-distances.sum(axis=1) / (len(weight) - 1) / scale)


@dataclass(eq=False, repr=False)
class NCI(Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the negative alignment of the features with the weights of their class.

    .. math:: u(x) = -\frac{w_{\hat c}^T (z - m)}{\|z - m\|} - \alpha \|z\|_1,

    with m the mean of the training rows: in a network near neural collapse the centred features of
    a class lie along its weights, and those of other inputs near the origin.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    alpha : float, default=1e-4
        Weight of the norm, >= 0. The paper tunes it on OOD data; this is OpenOOD's default.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.
    mean_ : ndarray, shape (p,)
        m.

    Raises
    ------
    TypeError
        As of `ReAct`.

    References
    ----------
    Liu, Qin, "Detecting out-of-distribution through the lens of neural collapse", CVPR (2025),
    section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import NCI
    >>> X, y = load_iris(return_X_y=True)
    >>> NCI().fit(X, y).uncertainty(X[[0, 70]]).round(2)
    array([-2.87, -3.26])
    """

    alpha: float = 1e-4

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_number("alpha", self.alpha, ">= 0", lambda a: a >= 0)

    def _fit_to_features(self, Z: np.ndarray) -> None:
        self.mean_ = Z.mean(axis=0)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Negative alignment of each input X (n, d), in units of the weights, shape (n,)."""
        Z = self._features(X)
        own = self.head_.weight[self.head_.logits(Z).argmax(axis=1)]
        centred = Z - self.mean_
        length = np.maximum(np.linalg.norm(centred, axis=1), _LEAST)
        aligned = np.einsum("ij,ij->i", own, centred) / length
        return np.asarray(-aligned - self.alpha * np.abs(Z).sum(axis=1))
