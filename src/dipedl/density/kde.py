"""Kernel density estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.base import BaseEstimator

from ..features.scaling import fit_standard_scaler
from ..inputs import check_weights, validate_fit_features
from ..maths.arrays import LOG_2PI, check_positive_number
from ..protocols import atomic
from .base import LogDensityMixin

__all__ = ["KernelDensity"]

_CHUNK_BYTES = 1 << 24

_RULES: dict[str, Callable[[float, int], float]] = {
    "scott": lambda n, p: n ** (-1 / (p + 4)),
    "silverman": lambda n, p: (n * (p + 2) / 4) ** (-1 / (p + 4)),
}


class KernelDensity(LogDensityMixin, BaseEstimator):
    """Gaussian kernel density of standardised features, summed over all rows.

    ``log p(x) = log sum_i w_i N(s(x); s(x_i), h^2) - log sum_i w_i - sum log scale``, with s the
    standardisation.

    Parameters
    ----------
    bandwidth : {"scott", "silverman"} or float, default="scott"
        Standard deviation h of the kernel, in standard deviations of the features.

    Attributes
    ----------
    bandwidth_ : float
        Bandwidth used.
    scaler_ : StandardScaler
        The standardisation.
    rows_ : ndarray, shape (n, p)
        Standardised training rows of positive weight.
    log_weights_ : ndarray, shape (n,)
        Logarithms of their shares of the weight.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    Scoring visits every training row: fine to about 10,000 rows; beyond, use a Gaussian mixture or
    a flow. scikit-learn's tree bounds the contributions of far rows instead, and where all kernels
    are small what it leaves out is most of the sum: 20 nats at two standard deviations in each of
    four features.

    References
    ----------
    Scott, "Multivariate Density Estimation" (1992); Silverman, "Density Estimation" (1986).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import KernelDensity
    >>> density = KernelDensity().fit(np.linspace(-1, 1, 50)[:, None])
    >>> density.score_samples([[0.0], [5.0]]).round(1)
    array([  -0.7, -113.7])
    """

    def __init__(self, bandwidth: str | float = "scott") -> None:
        self.bandwidth = bandwidth

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        h = self.bandwidth
        if isinstance(h, str) and h not in _RULES:
            raise ValueError(
                f"bandwidth must be a number > 0 or one of {sorted(_RULES)}, got {h!r}"
            )
        if not isinstance(h, str):
            check_positive_number("bandwidth", h)

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on features X (n, p); y is ignored; `sample_weight` (n,) counts rows that often."""
        X = validate_fit_features(self, X)
        weights = check_weights(sample_weight, X)
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        self.check_parameters()
        n, h = float(len(X) if weights is None else weights.sum()), self.bandwidth
        self.bandwidth_ = _RULES[h](n, X.shape[1]) if isinstance(h, str) else float(h)
        self.scaler_ = fit_standard_scaler(X, weights)
        self.rows_ = np.asarray(self.scaler_.transform(X))
        counts = np.ones(len(X)) if weights is None else weights
        self.log_weights_ = np.log(counts / counts.sum())
        return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        step = max(1, _CHUNK_BYTES // (8 * len(self.rows_)))
        Y, parts = np.asarray(self.scaler_.transform(Z)), []
        for start in range(0, len(Y), step):
            squared = cdist(Y[start : start + step], self.rows_, "sqeuclidean")
            # inf - inf is an overflow too.
            squared[np.isnan(squared)] = np.inf
            squared *= -0.5 / self.bandwidth_**2
            squared += self.log_weights_
            parts.append(logsumexp(squared, axis=1))
        p = Z.shape[1]
        constant = p * np.log(self.bandwidth_) + p / 2 * LOG_2PI + np.log(self.scaler_.scale_).sum()
        return np.asarray(np.concatenate(parts) - constant)
