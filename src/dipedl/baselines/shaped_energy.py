"""Energies of the logits of reshaped features or weights: ReAct, ASH, SCALE and DICE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..answers import Decisions
from ..maths.arrays import check_number
from .post_hoc import LastLayer, PostHoc

__all__ = ["ASH", "DICE", "SCALE", "ReAct"]


class _Percentile:
    """A score with a share of features or weights, in per cent."""

    percentile: float

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_number("percentile", self.percentile, "in (0, 100)", lambda p: 0 < p < 100)


@dataclass(eq=False, repr=False)
class ReAct(_Percentile, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the energy of the logits of features that are cut off from above.

    .. math:: u(x) = -\log \sum_c \exp f_c, \qquad f = W \min(z, t) + b,

    with the threshold t a percentile of all features of all training rows.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        A network with a linear last layer, or a classifier with ``coef_``, whose features are its
        inputs; last in a pipeline, those of its last step. A copy is fitted; one in
        `sklearn.frozen.FrozenEstimator` is used as it is.
    percentile : float, default=90.0
        Of the features, in (0, 100). The paper's, for ImageNet, where it was tuned on noise.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    head_ : LinearHead
        The features, and W and b.
    threshold_ : float
        t.

    Raises
    ------
    TypeError
        From ``fit``: the logits of the estimator are no linear function of its features.

    Notes
    -----
    Labels and probabilities are those of the classifier, whose features are not cut off.

    References
    ----------
    Sun, Guo, Li, "ReAct: out-of-distribution detection with rectified activations", NeurIPS (2021),
    equations 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import ReAct
    >>> X, y = load_iris(return_X_y=True)
    >>> ReAct().fit(X, y).uncertainty(X[[0, 70]]).round(1)
    array([-7.4, -2.5])
    """

    percentile: float = 90.0

    def _fit_to_features(self, Z: np.ndarray) -> None:
        self.threshold_ = float(np.percentile(Z, self.percentile))

    def uncertainty(self, X: Any) -> np.ndarray:
        """Energy of the logits of cut features for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        return self.head_.energy(np.minimum(Z, self.threshold_))


@dataclass(eq=False, repr=False)
class ASH(_Percentile, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the energy of the logits of features, the largest of which are kept and grow.

    .. math:: u(x) = -\log \sum_c \exp f_c, \qquad f = W z' e^{S / S'} + b,

    where z' are the features of x, all but the largest set to zero, and S and S' are the sums of z
    and z'. This is the variant that the paper calls ASH-S.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    percentile : float, default=90.0
        Percentage of the features of an input that are set to zero, in (0, 100). The paper's, for
        ImageNet; OpenOOD's too.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.

    Raises
    ------
    TypeError
        As of `ReAct`.

    Notes
    -----
    The sums are of the positive features: those after a ReLU all are, and of others the published
    ratio may have any size and sign. Nothing is learned beside the head; the shaped features are
    those of the last layer, after pooling.

    Inputs whose features are spread over many grow most. In the authors' wide networks these are
    the known ones. Where known inputs use few features, as in a small network trained to the end,
    they are the unknown ones, and the score ranks the wrong way: look at it before you rely on it.

    References
    ----------
    Djurisic, Bozanic, Ashok, Liu, "Extremely simple activation shaping for out-of-distribution
    detection", ICLR (2023), algorithm 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import ASH
    >>> X, y = load_iris(return_X_y=True)
    >>> ASH(percentile=50).fit(X, y).uncertainty([X[0], X[0] / 3]).round()
    array([-14., -11.])
    """

    percentile: float = 90.0

    def uncertainty(self, X: Any) -> np.ndarray:
        """Energy of the logits of shaped features for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        ordered, m = _sort_largest_last(Z, self.percentile)
        least = ordered[:, [-m]]
        is_kept = Z >= least
        # of features that equal the least the first are kept
        tied = np.flatnonzero(is_kept.sum(axis=1) > m)
        surplus = is_kept[tied].sum(axis=1, keepdims=True) - m
        is_least = Z[tied] == least[tied]
        last_first = is_least[:, ::-1].cumsum(axis=1)[:, ::-1]
        is_kept[tied] &= ~is_least | (last_first > surplus)
        return self.head_.energy(np.where(is_kept, Z, 0.0) * _growth(Z, ordered[:, -m:]))


@dataclass(eq=False, repr=False)
class SCALE(_Percentile, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the energy of the logits of features that all grow by one factor.

    .. math:: u(x) = -\log \sum_c \exp f_c, \qquad f = W z e^{S / S'} + b,

    with S the sum of the features z of x and S' that of the largest of them: `ASH` that sets
    nothing to zero.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    percentile : float, default=85.0
        Percentage of the features of an input that S' leaves out, in (0, 100). The paper's, for
        ImageNet; OpenOOD's too.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.

    Raises
    ------
    TypeError
        As of `ReAct`.

    Notes
    -----
    Sums are of the positive features, and the ranking depends on the network, as of `ASH`.

    References
    ----------
    Xu, Chen, Franchi, Yao, "Scaling for training time and post-hoc out-of-distribution detection
    enhancement", ICLR (2024), equations 4 and 5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import SCALE
    >>> X, y = load_iris(return_X_y=True)
    >>> SCALE(percentile=50).fit(X, y).uncertainty([X[0], X[0] / 3]).round()
    array([-6., -7.])
    """

    percentile: float = 85.0

    def uncertainty(self, X: Any) -> np.ndarray:
        """Energy of the logits of scaled features for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        ordered, m = _sort_largest_last(Z, self.percentile)
        return self.head_.energy(Z * _growth(Z, ordered[:, -m:]))


def _sort_largest_last(Z: np.ndarray, percentile: float) -> tuple[np.ndarray, int]:
    """Return the features of each row with the m largest last, shape (n, p), and m."""
    p = Z.shape[1]
    m = max(1, p - round(p * percentile / 100))
    return np.partition(Z, p - m, axis=1), m


def _growth(Z: np.ndarray, largest: np.ndarray) -> np.ndarray:
    """Return ``exp(S / S')`` of features Z (n, p) and the largest of each row, shape (n, 1)."""
    all_sum, kept_sum = (np.maximum(part, 0).sum(axis=1, keepdims=True) for part in (Z, largest))
    ratio = np.divide(all_sum, kept_sum, out=np.ones_like(all_sum), where=kept_sum > 0)
    return np.asarray(np.exp(ratio))


@dataclass(eq=False, repr=False)
class DICE(_Percentile, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the energy of the logits of the weights that contribute most.

    .. math:: u(x) = -\log \sum_c \exp f_c, \qquad f = (M \odot W) z + b,

    where M is one for the largest mean contributions :math:`W_{cj} E[z_j]` to a logit, over the
    training rows, and zero for the others.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    percentile : float, default=90.0
        Percentage of the weights that are set to zero, in (0, 100). The paper's for CIFAR-10, where
        it was tuned on noise, and OpenOOD's.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.
    sparse_head_ : LinearHead
        The head with the weights that are kept.

    Raises
    ------
    TypeError
        As of `ReAct`.

    References
    ----------
    Sun, Li, "DICE: leveraging sparsification for out-of-distribution detection", ECCV (2022),
    equations 2 to 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import DICE
    >>> X, y = load_iris(return_X_y=True)
    >>> DICE(percentile=50).fit(X, y).uncertainty(X[[0, 70]]).round(1)
    array([-13.2, -12.9])
    """

    percentile: float = 90.0

    def _fit_to_features(self, Z: np.ndarray) -> None:
        contribution = self.head_.weight * Z.mean(axis=0)
        kept = contribution > np.percentile(contribution, self.percentile)
        self.sparse_head_ = replace(self.head_, weight=np.where(kept, self.head_.weight, 0.0))

    def uncertainty(self, X: Any) -> np.ndarray:
        """Energy of the sparse logits for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        return self.sparse_head_.energy(Z)
