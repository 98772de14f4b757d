"""Gaussian mixture fitted by expectation maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture

from ..features.scaling import fit_standard_scaler
from ..inputs import validate_fit_features
from ..maths.arrays import check_integer
from ..protocols import atomic
from .base import LogDensityMixin

__all__ = ["GaussianMixtureDensity"]


@dataclass(eq=False, repr=False)
class GaussianMixtureDensity(LogDensityMixin, BaseEstimator):
    """Gaussian mixture without labels: scikit-learn's EM on standardised features.

    ``log p(x) = logsumexp_j [log w_j + log N(s(x); m_j, C_j)] - sum log scale``, with s the
    standardisation, so that `reg_covar` means the same for features in any unit.

    Parameters
    ----------
    n_components : int, default=8
        Number of Gaussians.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        As in scikit-learn.
    reg_covar : float, default=1e-3
        Added to the diagonal of the covariances of standardised features.
    n_init : int, default=1
        Number of starts.
    random_state : int, RandomState instance or None, default=None
        Seed of the initialisation.

    Attributes
    ----------
    scaler_ : StandardScaler
        The standardisation.
    mixture_ : GaussianMixture
        The fitted mixture of standardised features.
    n_features_in_ : int
        Number of features p.

    References
    ----------
    Dempster, Laird, Rubin, JRSS B 39 (1977); `sklearn.mixture.GaussianMixture`.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import GaussianMixtureDensity
    >>> X = np.r_[np.linspace(-1, 1, 20), np.linspace(9, 11, 20)][:, None]
    >>> density = GaussianMixtureDensity(2, random_state=0).fit(X)
    >>> bool(np.diff(density.score_samples([[5.0], [10.0]]))[0] > 10)
    True
    """

    n_components: int = 8
    covariance_type: str = "full"
    reg_covar: float = 1e-3
    n_init: int = 1
    random_state: Any = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("n_components", self.n_components)

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on features X (n, p) with n >= n_components; `y` is ignored."""
        X = validate_fit_features(self, X, ensure_min_samples=2)
        self.check_parameters()
        if len(X) < self.n_components:
            raise ValueError(
                f"n_components must not exceed n_samples = {len(X)}, got {self.n_components}"
            )
        self.scaler_ = fit_standard_scaler(X)
        mixture = GaussianMixture(**self.get_params(deep=False))
        self.mixture_ = mixture.fit(np.asarray(self.scaler_.transform(X)))
        return self

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        score = self.mixture_.score_samples(np.asarray(self.scaler_.transform(Z)))
        score = np.where(np.isnan(score), -np.inf, score)
        return np.asarray(score - np.log(self.scaler_.scale_).sum())
