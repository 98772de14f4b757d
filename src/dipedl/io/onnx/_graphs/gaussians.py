"""Gaussians and mixtures of them as parts of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....density.gaussian import GaussianDensity, GDADensity, MahalanobisDensity
from ....density.mixture import GaussianMixtureDensity
from ....gaussians.factor import BasisFactors, GaussianFactor
from ....maths.arrays import LOG_2PI
from .._nodes.builder import Tensor
from .._nodes.ops import log_sum_exp


def gaussian(density: GaussianDensity, Z: Tensor) -> Tensor:
    return _log_densities([density.factor_], Z).squeeze(1)


def discriminant(density: GDADensity, Z: Tensor) -> Tensor:
    return log_sum_exp(_log_densities(density.factors_, Z) + density.log_weights_)


def mahalanobis(density: MahalanobisDensity, Z: Tensor) -> Tensor:
    """Minus half the squared distance (n,) to the nearest class mean."""
    return -0.5 * _distances_to(density.factors_, Z).reduce("Min", 1)


def mixture(density: GaussianMixtureDensity, Z: Tensor) -> Tensor:
    """Log-density (n,) of a Gaussian mixture of standardised features."""
    scaler, fitted = density.scaler_, density.mixture_
    Z = (Z - scaler.mean_) / scaler.scale_
    p = fitted.means_.shape[1]
    whiteners, log_dets = _of_mixture(fitted, p)
    constant = np.log(fitted.weights_) - 0.5 * (p * LOG_2PI + log_dets)
    distance = _squared(Z, fitted.means_, whiteners)
    return log_sum_exp(distance * -0.5 + constant) - float(np.log(scaler.scale_).sum())


def _of_mixture(fitted: Any, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Inverse Cholesky factors, as `_squared` takes them, and log-determinants (k,)."""
    factor = np.asarray(fitted.precisions_cholesky_)
    kind = fitted.covariance_type
    if kind == "full":
        diagonals = np.diagonal(factor, axis1=1, axis2=2)
        return factor, -2 * np.log(diagonals).sum(axis=1)
    if kind == "tied":
        return factor, np.full(len(fitted.means_), -2 * np.log(np.diag(factor)).sum())
    wide = np.broadcast_to(factor.reshape(len(factor), -1), (len(factor), p))
    return wide[:, None, :], -2 * np.log(wide).sum(axis=1)


def _log_densities(factors: Sequence[GaussianFactor], Z: Tensor) -> Tensor:
    p = len(factors[0].mean)
    constant = p * LOG_2PI + np.array([f.log_det for f in factors])
    return (_distances_to(factors, Z) + constant) * -0.5


def _distances_to(factors: Sequence[GaussianFactor], Z: Tensor) -> Tensor:
    """Squared Mahalanobis distances (n, k)."""
    if isinstance(factors, BasisFactors):
        turned = (Z - factors.mean[0]) @ np.ascontiguousarray(factors.basis.T)
        return _squared(turned, factors.along, factors.variance[:, None, :] ** -0.5)
    means = np.stack([f.mean for f in factors])
    rests = [np.zeros_like(f.mean) if f.rest is None else f.rest for f in factors]
    shared = all(f.whitener is factors[0].whitener for f in factors)
    own = [factors[0]] if shared else factors
    whiteners = np.stack([w[None] if w.ndim == 1 else w.T for w in (f.array for f in own)])
    return _squared(Z, means, whiteners, np.stack(rests))


def _squared(
    Z: Tensor, means: np.ndarray, whiteners: np.ndarray, rests: np.ndarray | None = None
) -> Tensor:
    """Squared lengths (n, k) of the rows Z (n, p) less each mean (k, p), whitened.

    `whiteners` are factors to the right, (k, p, p) or one (p, p) or (1, p, p) for all, or factors
    of each column, (k, 1, p) or (1, 1, p).
    """
    D = Z.unsqueeze(0) - means[:, None, :]
    if rests is not None and rests.any():
        D = D - rests[:, None, :]
    columnwise = whiteners.ndim == 3 and whiteners.shape[1] == 1 and means.shape[1] > 1
    white = D * whiteners if columnwise else D @ whiteners
    # inf - inf is an overflow too: the row is far away.
    distances = white.reduce("SumSquare", 2).nan_to(np.inf)
    return Z.graph.op("Transpose", distances, perm=[1, 0])
