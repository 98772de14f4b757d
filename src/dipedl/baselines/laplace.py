"""Laplace approximation of the last layer of a trained network."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from ..answers import Decisions
from ..dirichlet import entropy, max_prob
from ..maths.arrays import check_choice, check_positive_number
from .post_hoc import LastLayer, PostHoc

__all__ = ["LastLayerLaplace"]

#: Bounds of the log of the prior precision.
_BOUNDS = (-15.0, 25.0)
_KINDS = {"max_prob": max_prob, "entropy": entropy}


@dataclass(eq=False, repr=False)
class LastLayerLaplace(Decisions, LastLayer, PostHoc):
    r"""A Gaussian posterior of the last layer's weights makes the probabilities less sure.

    .. math:: p(x) = \mathrm{softmax}\left(\frac{f_c(x)}{\sqrt{1 + \pi v_c(x) / 8}}\right),
        \qquad v(x) = \mathrm{diag}\, J (G \otimes A + \tau I)^{-1} J^T,

    with J the derivatives of the logits f by the weights, A the sum of :math:`z z^T` and G the mean
    of :math:`\mathrm{diag}(p) - p p^T` over the training rows: the Kronecker-factored Gauss-Newton
    matrix of the cross-entropy.

    Parameters
    ----------
    estimator : network or linear classifier, default=LogisticRegression(max_iter=1000)
        As of `ReAct`; trained by cross-entropy, with a penalty of the squared weights.
    prior_precision : float, optional
        tau > 0. None maximises the marginal likelihood of the training rows.

    Attributes
    ----------
    classes_, estimator_, n_features_in_, head_
        As of `ReAct`.
    prior_precision_ : float
        tau.
    row_basis_, class_basis_ : ndarray, shapes (p or p + 1, same) and (k, k)
        Eigenvectors of A and of G. With a bias among the weights z has a one more.
    precision_ : ndarray, shape (k, p or p + 1)
        Eigenvalues of ``G x A + tau I``.

    Raises
    ------
    TypeError
        As of `ReAct`.

    Notes
    -----
    A shift of all logits changes no probability, and no row determines it: it has the variance of
    the prior, which v contains as in the authors' code. Where tau is small, probabilities are
    pulled towards each other for all inputs.

    References
    ----------
    Daxberger et al., "Laplace redux: effortless Bayesian deep learning", NeurIPS (2021), equations
    3 to 5 and section 3 (last layer, Kronecker factors, probit, marginal likelihood); Kristiadi,
    Hein, Hennig, "Being Bayesian, even just a bit, fixes overconfidence in ReLU networks", ICML
    (2020); MacKay, "The evidence framework applied to classification networks" (1992).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.baselines import LastLayerLaplace
    >>> X, y = load_iris(return_X_y=True)
    >>> LastLayerLaplace().fit(X, y).uncertainty([X[0], X[70], 3 * X[70]]).round(2)
    array([0.5 , 0.63, 0.47])
    """

    prior_precision: float | None = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        if self.prior_precision is not None:
            check_positive_number("prior_precision", self.prior_precision)

    def _fit_to_features(self, Z: np.ndarray) -> None:
        head, logits = self.head_, self.head_.logits(Z)
        P = softmax(logits, axis=1)
        rows = self._weighted(Z)
        by_row, self.row_basis_ = np.linalg.eigh(rows.T @ rows)
        by_class, self.class_basis_ = np.linalg.eigh(np.diag(P.mean(axis=0)) - P.T @ P / len(P))
        curvature = np.outer(np.maximum(by_class, 0), np.maximum(by_row, 0))
        tau = self.prior_precision
        if tau is None:
            norm = (head.weight**2).sum() + (head.bias**2).sum()

            def loss(log_tau: float) -> float:
                """Twice the negative log marginal likelihood, less what does not depend on tau."""
                prior = np.exp(log_tau)
                determinants = np.log(curvature + prior).sum() - curvature.size * log_tau
                return float(prior * norm + determinants)

            found = minimize_scalar(loss, bounds=_BOUNDS, method="bounded")
            tau = float(np.exp(found.x))
        self.prior_precision_ = float(tau)
        self.precision_ = curvature + self.prior_precision_

    def _weighted(self, Z: np.ndarray) -> np.ndarray:
        """Return features Z (n, p), and a one for the bias if the head has any."""
        return np.column_stack([Z, np.ones(len(Z))]) if self.head_.bias.any() else Z

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of X (n, d), averaged over the posterior by probit, shape (n, k)."""
        Z = self._features(X)
        along = (self._weighted(Z) @ self.row_basis_) ** 2 @ (1 / self.precision_).T
        variances = along @ (self.class_basis_**2).T
        return np.asarray(softmax(self.head_.logits(Z) / np.sqrt(1 + pi / 8 * variances), axis=1))

    def uncertainty(self, X: Any, kind: str = "max_prob") -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        kind : {"max_prob", "entropy"}, default="max_prob"
            Of the averaged probabilities: one minus the largest, or the entropy in nats.
        """
        check_choice("kind", kind, _KINDS)
        return _KINDS[kind](self.predict_proba(X))
