"""Mahalanobis distance to the nearest class mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gaussians.by_class import squared_distances
from ..gaussians.shrinkage import Shrinkage
from ..inputs import FLOATS, require_fitted, validate_features
from .gda import GDADensity

__all__ = ["MahalanobisDensity"]


class MahalanobisDensity(GDADensity):
    """Squared Mahalanobis distance to the nearest class mean, as a score.

    ``s(x) = -min_c (x - m_c)^T C_c^-1 (x - m_c) / 2``: the exponent of the nearest class's
    Gaussian, in nats, without its log-determinant. No density: it does not integrate to one.

    Parameters
    ----------
    covariance_type : {"tied", "full", "diag", "shared-basis"}, default="tied"
        One covariance of the residuals from the class means, as published; one per class, where a
        wide class is as near as a narrow one at the same number of standard deviations; a diagonal
        per class; or one along a shared basis.
    shrinkage : None, float, tuple of float or {"oas", "ledoit-wolf"}, default="oas"
        As in `GDADensity`.

    Attributes
    ----------
    classes_, moments_, shrinkage_, target_, n_features_in_
        As in `GDADensity`.

    See Also
    --------
    GDADensity : the whole Gaussians, mixed.
    RelativeDensity : takes off the distance to the mean of all rows; with this one as foreground it
        is the relative Mahalanobis score as published, up to a constant.
    dipedl.baselines.Mahalanobis : the distance on the features of a classifier.

    References
    ----------
    Lee et al., "A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks", NeurIPS (2018), equations 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import MahalanobisDensity
    >>> X = np.array([[-1.0], [1.0], [9.0], [11.0]])
    >>> density = MahalanobisDensity(shrinkage=None).fit(X, [0, 0, 1, 1])
    >>> density.score_samples([[10.0], [12.0]])
    array([-0., -2.])
    """

    normalized = False
    #: A minimum has no weights; the parent asks.
    class_weights = "equal"

    def __init__(
        self,
        covariance_type: str = "tied",
        shrinkage: Shrinkage | tuple[float, ...] = "oas",
    ) -> None:
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage

    def score_samples(self, X: Any) -> np.ndarray:
        """Minus half the squared distance of each row of X (n, p) to the nearest mean, (n,)."""
        return np.asarray(-0.5 * self.squared_distance(X).min(axis=1))

    def squared_distance(self, X: Any) -> np.ndarray:
        """Squared Mahalanobis distance of each row of X (n, p) to each class mean, (n, k)."""
        require_fitted(self, "moments_")
        return squared_distances(self._factors(), validate_features(self, X, FLOATS))
