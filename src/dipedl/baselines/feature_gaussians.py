"""Scores of the features under Gaussians of the classes: DDU and Mahalanobis distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..answers import Decisions
from ..density.gaussian import GDADensity, MahalanobisDensity
from .post_hoc import PostHoc

__all__ = ["DDU", "Mahalanobis", "RelativeMahalanobis"]


@dataclass(eq=False, repr=False)
class DDU(Decisions, PostHoc):
    """Uncertainty is the negative log-density of the features under one Gaussian per class.

    ``u(x) = -log sum_c pi_c N(z; m_c, C_c)`` with z the features of x and pi_c the class
    frequencies: Gaussian discriminant analysis (GDA) on a trained network.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    features : transformer, "passthrough" or None, default=None
        None uses the estimator's own ``transform`` (a network's features), or X if the estimator
        has none; a transformer is fitted on X.
    shrinkage : None, float, tuple of float or {"oas", "ledoit-wolf"}, default="oas"
        Of each covariance, see `GDADensity`. The paper adds the smallest jitter that makes the
        covariance factorise instead.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    density_ : GDADensity
        The Gaussians.

    Notes
    -----
    The paper's network has residual connections and spectral normalisation; that is the
    estimator's choice.

    References
    ----------
    Mukhoti et al., "Deep deterministic uncertainty: a new simple baseline", CVPR (2023),
    section 3 and algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import DDU
    >>> X, y = load_iris(return_X_y=True)
    >>> u = DDU().fit(X, y).uncertainty([X[0], 3 * X[0]])
    >>> bool(u[1] > 100 + u[0])
    True
    """

    features: Any = None
    shrinkage: float | tuple[float, ...] | str | None = "oas"

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = self._fit_features(self.features, X, y)
        self.density_ = GDADensity("full", self.shrinkage, "empirical").fit(Z, y)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Negative log-density in nats of the features of each input X (n, d), shape (n,)."""
        Z = self._features(X)
        return -self.density_.score_samples(Z)


@dataclass(eq=False, repr=False)
class Mahalanobis(Decisions, PostHoc):
    r"""Uncertainty is the squared Mahalanobis distance of the features to the nearest class mean.

    .. math:: u(x) = \min_c (z - m_c)^T C^{-1} (z - m_c), \quad z = z(x),

    with one covariance C for all classes, of the residuals from the class means.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    shrinkage : None, float or {"oas", "ledoit-wolf"}, default="oas"
        Of the covariance, see `GDADensity`. None is the paper's, and is refused where the
        covariance is singular, such as with a dead unit among the features.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    density_ : MahalanobisDensity
        Class means and tied covariance.

    Notes
    -----
    The score of one layer, without the perturbation of the input and the logistic regression over
    layers: those are tuned on out-of-distribution data.

    References
    ----------
    Lee et al., "A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks", NeurIPS (2018), equations 1 and 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import Mahalanobis
    >>> X, y = load_iris(return_X_y=True)
    >>> Mahalanobis().fit(X, y).uncertainty([X[0], 3 * X[0]]).round()
    array([  0., 755.])
    """

    features: Any = None
    shrinkage: float | str | None = "oas"

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = self._fit_features(self.features, X, y)
        self.density_ = MahalanobisDensity("tied", self.shrinkage).fit(Z, y)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Squared distance of each input X (n, d) to the nearest class mean, >= 0, shape (n,)."""
        Z = self._features(X)
        return np.asarray(self.density_.squared_distance(Z).min(axis=1))


@dataclass(eq=False, repr=False)
class RelativeMahalanobis(Decisions, PostHoc):
    r"""Uncertainty is the Mahalanobis distance to the nearest class less that to all rows (RMD).

    .. math:: u(x) = \min_c (z - m_c)^T C^{-1} (z - m_c) - (z - m_0)^T C_0^{-1} (z - m_0),

    with one covariance C for all classes, and mean and covariance of all rows, m_0 and C_0: what
    all inputs have in common cancels.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    shrinkage : None, float or {"oas", "ledoit-wolf"}, default="oas"
        Of both covariances, as of `Mahalanobis`; None is the paper's.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    density_, background_ : MahalanobisDensity
        Class means and tied covariance; mean and covariance of all rows.

    References
    ----------
    Ren, Fort, Liu, Roy, Padhy, Lakshminarayanan, "A simple fix to Mahalanobis distance for
    improving near-OOD detection", arXiv:2106.09022 (2021), equations 2 and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import RelativeMahalanobis
    >>> X, y = load_iris(return_X_y=True)
    >>> RelativeMahalanobis().fit(X, y).uncertainty([X[0], X[[0, 70]].mean(axis=0)]).round()
    array([-2., 17.])
    """

    features: Any = None
    shrinkage: float | str | None = "oas"

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = self._fit_features(self.features, X, y)
        self.density_ = MahalanobisDensity("tied", self.shrinkage).fit(Z, y)
        self.background_ = MahalanobisDensity("tied", self.shrinkage).fit(Z, np.zeros(len(Z)))

    def uncertainty(self, X: Any) -> np.ndarray:
        """Difference of squared distances for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        nearest = self.density_.squared_distance(Z).min(axis=1)
        return np.asarray(nearest - self.background_.squared_distance(Z)[:, 0])
