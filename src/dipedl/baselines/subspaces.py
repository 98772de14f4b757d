"""Distance of the features to a principal subspace: residual, ViM, and kernel PCA (CoP, CoRP)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.preprocessing import normalize

from ..answers import Decisions
from ..gaussians.moments import Moments
from ..maths.arrays import check_integer, check_number
from .post_hoc import LastLayer, LinearHead, PostHoc

__all__ = ["CoP", "CoRP", "Residual", "ViM"]

_CHUNK = 4096
_ROUNDING = 1e-9
#: Share of the largest singular value of a last layer below which others are rounding: the weights
#: of a multinomial logistic regression sum to zero over the classes, networks compute in float32.
_NO_RANK = 1e-6


class _Subspace:
    """Directions of the features beyond the principal subspace about the origin of the logits."""

    n_components: int | None
    head_: LinearHead

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 0)

    def _fit_to_features(self, Z: np.ndarray) -> None:
        p = Z.shape[1]
        D = self.n_components
        if D is None:
            D = p // 2 if p < 768 else 512 if p < 2048 else 1000
        if D >= p:
            raise ValueError(f"n_components must be below n_features = {p}, got {D}")
        self.origin_ = -np.linalg.pinv(self.head_.weight, _NO_RANK) @ self.head_.bias
        centred = Z - self.origin_
        # eigenvalues ascend: the last D span the principal subspace
        self.residual_ = np.linalg.eigh(centred.T @ centred)[1][:, : p - D]

    def _distance(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm((Z - self.origin_) @ self.residual_, axis=1))


@dataclass(eq=False, repr=False)
class Residual(_Subspace, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the distance of the features to a principal subspace of the training rows.

    .. math:: u(x) = \|R R^T (z - o)\|, \qquad o = -W^+ b,

    with R the directions beyond the first of largest second moment about o, the origin of the
    features for which all logits vanish.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    n_components : int, optional
        Dimension of the principal subspace, below p. None is the paper's rule, 1000 for 2048
        features or more and 512 below that; below 768 features, which it does not treat, half.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.
    origin_ : ndarray, shape (p,)
        o.
    residual_ : ndarray, shape (p, p - n_components)
        R, orthonormal columns.

    Raises
    ------
    TypeError
        As of `ReAct`.

    References
    ----------
    Wang, Li, Feng, Zhang, "ViM: out-of-distribution with virtual-logit matching", CVPR (2022),
    section 4.1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import Residual
    >>> X, y = load_iris(return_X_y=True)
    >>> Residual().fit(X, y).uncertainty([X[0], X[0, ::-1]]).round(1)
    array([0. , 3.4])
    """

    n_components: int | None = None

    def uncertainty(self, X: Any) -> np.ndarray:
        """Distance of each input X (n, d) in units of the features, >= 0, shape (n,)."""
        return self._distance(self._features(X))


@dataclass(eq=False, repr=False)
class ViM(_Subspace, Decisions, LastLayer, PostHoc):
    r"""Uncertainty is the residual as one more logit, less the log-sum of the others.

    .. math:: u(x) = \alpha \|R R^T (z - o)\| - \log \sum_c \exp f_c,

    with R and o as of `Residual`, and :math:`\alpha` the mean of the largest logits of the training
    rows over the mean of their residuals. It ranks as the probability of the virtual logit.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`.
    n_components : int, optional
        As of `Residual`.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_, origin_, residual_
        As of `Residual`.
    alpha_ : float
        Units of the logits per unit of the features.

    Raises
    ------
    TypeError
        As of `ReAct`.

    References
    ----------
    Wang, Li, Feng, Zhang, "ViM: out-of-distribution with virtual-logit matching", CVPR (2022),
    section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import ViM
    >>> X, y = load_iris(return_X_y=True)
    >>> ViM().fit(X, y).uncertainty([X[0], X[0, ::-1]]).round(1)
    array([-6.8, 48.9])
    """

    n_components: int | None = None

    def _fit_to_features(self, Z: np.ndarray) -> None:
        super()._fit_to_features(Z)
        mean = self._distance(Z).mean()
        if mean <= _ROUNDING * np.linalg.norm(Z - self.origin_, axis=1).mean():
            raise ValueError(
                "features of the training rows must leave the principal subspace, got residuals "
                "of zero; lower n_components"
            )
        self.alpha_ = float(self.head_.logits(Z).max(axis=1).mean() / mean)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Virtual logit less the log-sum of the logits for each input X (n, d), shape (n,)."""
        Z = self._features(X)
        return np.asarray(self.alpha_ * self._distance(Z) + self.head_.energy(Z))


class _Reconstruction:
    """Principal directions of mapped features, and the error of what they reconstruct."""

    features: Any
    explained_variance: float
    _fit_features: Callable[..., np.ndarray]
    _features: Callable[..., np.ndarray]
    _map: Callable[..., np.ndarray]

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        share = self.explained_variance
        check_number("explained_variance", share, "in (0, 1)", lambda v: 0 < v < 1)

    def _fit_score(self, X: Any, y: np.ndarray) -> None:
        Z = self._fit_features(self.features, X, y)
        self._fit_map(Z)
        moments = reduce(add, (Moments.of(self._map(part)) for part in _chunks(Z)))
        if moments.thin:  # fewer rows than dimensions
            _, root, rows = np.linalg.svd(moments.scatter, full_matrices=False)
            variances, directions = root**2, rows.T
        else:
            ascending, directions = np.linalg.eigh(moments.covariance)
            variances, directions = ascending[::-1], directions[:, ::-1]
        shares = np.cumsum(variances) / variances.sum()
        q = int(np.searchsorted(shares, self.explained_variance)) + 1
        self.mean_, self.components_ = moments.mean, directions[:, :q].copy()

    def _fit_map(self, Z: np.ndarray) -> None:
        """Fit the map of features Z (n, p), if anything is to be learned."""

    def uncertainty(self, X: Any) -> np.ndarray:
        """Error of reconstruction of each input X (n, d), in [0, 2], shape (n,)."""
        errors = []
        for part in _chunks(self._features(X)):
            centred = self._map(part) - self.mean_
            # by Pythagoras: what is reconstructed and what is not are orthogonal
            both = (centred, centred @ self.components_)
            squares = [np.einsum("ij,ij->i", of, of) for of in both]
            errors.append(squares[0] - squares[1])
        return np.asarray(np.sqrt(np.maximum(np.concatenate(errors), 0.0)))


@dataclass(eq=False, repr=False)
class CoP(_Reconstruction, Decisions, PostHoc):
    r"""Uncertainty is the error of reconstructing the direction of the features by PCA.

    .. math:: u(x) = \|(I - U U^T)(\phi(z) - m)\|, \qquad \phi(z) = z / \|z\|,

    with m the mean and U the first principal directions of :math:`\phi` over the training rows.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        A copy is fitted; one in `sklearn.frozen.FrozenEstimator` is used as it is.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    explained_variance : float, default=0.85
        Share of the variance that the directions of U have at least, in (0, 1). The released code's
        for a ResNet-18 on CIFAR-10; the paper tunes it for each network.

    Attributes
    ----------
    classes_, estimator_, n_features_in_
        As of `MaxSoftmax`.
    features_ : transformer or None
        The fitted features; None takes X as it is.
    mean_, components_ : ndarray, shapes (p,) and (p, q)
        m and U.

    References
    ----------
    Fang, Tao, Lv, He, Huang, Yang, "Kernel PCA for out-of-distribution detection", NeurIPS (2024),
    section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import CoP
    >>> X, y = load_iris(return_X_y=True)
    >>> CoP().fit(X, y).uncertainty([X[0], X[0, ::-1]]).round(2)
    array([0.  , 0.84])
    """

    features: Any = None
    explained_variance: float = 0.85

    def _map(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(normalize(Z))


@dataclass(eq=False, repr=False)
class CoRP(_Reconstruction, Decisions, PostHoc):
    r"""`CoP` in the space of a Gaussian kernel, by random Fourier features.

    .. math:: \phi(z) = \sqrt{2 / M} \cos(V z / \|z\| + a),

    with M rows of V from :math:`N(0, 2 \gamma I)` and a uniform on a circle: products of
    :math:`\phi` approach :math:`\exp(-\gamma |z / \|z\| - z' / \|z'\||^2)`.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, default=LogisticRegression(max_iter=1000)
        As of `CoP`.
    features : transformer, "passthrough" or None, default=None
        As of `DDU`.
    explained_variance : float, default=0.8
        As of `CoP`.
    gamma : float, default=2.0
        Of the kernel, > 0.
    n_fourier : int, default=2048
        M. All three are the released code's for a ResNet-18 on CIFAR-10; the paper tunes them for
        each network.
    random_state : int, RandomState or None, default=0
        Draws V and a.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, features_, mean_, components_
        As of `CoP`.
    fourier_ : RBFSampler
        V and a.

    References
    ----------
    Fang, Tao, Lv, He, Huang, Yang, "Kernel PCA for out-of-distribution detection", NeurIPS (2024),
    section 4; Rahimi, Recht, "Random features for large-scale kernel machines", NeurIPS (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import CoRP
    >>> X, y = load_iris(return_X_y=True)
    >>> near, far = CoRP(n_fourier=256).fit(X, y).uncertainty([X[0], X[0, ::-1]])
    >>> bool(near < 0.1 < 0.5 < far)
    True
    """

    features: Any = None
    explained_variance: float = 0.8
    gamma: float = 2.0
    n_fourier: int = 2048
    random_state: Any = 0

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        super().check_parameters()
        check_number("gamma", self.gamma, "> 0", lambda g: g > 0)
        check_integer("n_fourier", self.n_fourier)

    def _fit_map(self, Z: np.ndarray) -> None:
        fourier = RBFSampler(
            gamma=self.gamma, n_components=self.n_fourier, random_state=self.random_state
        )
        self.fourier_ = fourier.fit(Z[:1])

    def _map(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray(self.fourier_.transform(normalize(Z)))


def _chunks(Z: np.ndarray) -> list[np.ndarray]:
    return [Z[start : start + _CHUNK] for start in range(0, len(Z), _CHUNK)]
