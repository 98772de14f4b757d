"""One Gaussian for all rows."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ..fitting import all_or_nothing
from ..gaussians.factor import (
    LEDOIT_WOLF,
    GaussianFactor,
    Shrinkage,
    explain_rows,
    factorise,
    mean_variance,
    rank,
    shrinkage_intensity,
)
from ..gaussians.moments import Moments
from ..inputs import FLOATS, check_weights, validate_fit_features
from .base import LogDensityMixin

__all__ = ["GaussianDensity"]

_DIAGONAL = {"full": False, "diag": True}


class GaussianDensity(LogDensityMixin, BaseEstimator):
    """Gaussian density with mergeable moments.

    ``log p(x) = -(p log 2 pi + log det C + (x - m)^T C^-1 (x - m)) / 2``.

    Parameters
    ----------
    covariance_type : {"full", "diag"}, default="full"
        Form of the covariance.
    shrinkage : None, float or {"oas", "ledoit-wolf"}, default="oas"
        Shrinkage of the covariance towards ``trace / p`` times the identity. With None a singular
        covariance is refused.

    Attributes
    ----------
    moments_ : Moments
        Everything learned; ``a + b`` merges two fitted densities.
    shrinkage_ : float
        Shrinkage intensity used.
    n_features_in_ : int
        Number of features p.

    See Also
    --------
    GDADensity : one Gaussian per class.

    References
    ----------
    Ledoit, Wolf (2004); Chen, Wiesel, Eldar, Hero, "Shrinkage algorithms for MMSE covariance
    estimation", IEEE TSP 58 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import GaussianDensity
    >>> X = np.array([[0.0], [2.0]])
    >>> GaussianDensity().fit(X).score_samples(np.array([[1.0], [3.0]])).round(3)
    array([-0.919, -2.919])
    """

    _dtypes: Any = FLOATS
    _factor_: GaussianFactor | None

    def __init__(self, covariance_type: str = "full", shrinkage: Shrinkage = "oas") -> None:
        self.covariance_type = covariance_type
        self.shrinkage = shrinkage

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit on features X (n, p); y is ignored; `sample_weight` (n,) counts rows that often."""
        with all_or_nothing(self):
            X = validate_fit_features(self, X, dtype=FLOATS)
            self._set_moments(self._moments_of(X, sample_weight))
            self.factor_  # noqa: B018  refuses a singular covariance
            return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add the rows of X (n, p) to those fitted before; any chunking gives the same density."""
        with all_or_nothing(self):
            first = not hasattr(self, "moments_")
            X = validate_fit_features(self, X, reset=first, dtype=FLOATS)
            new = self._moments_of(X, sample_weight)
            self._set_moments(new if first else self.moments_ + new)
            return self

    def __add__(self, other: GaussianDensity) -> GaussianDensity:
        """The density fitted on the rows of both."""
        if not isinstance(other, GaussianDensity):
            return NotImplemented
        merged = self._blank_union(other, "moments_")
        merged._set_moments(self.moments_ + other.moments_)
        return merged

    def with_moments(self, moments: Moments) -> Self:
        """Return a copy as fitted on rows of these moments."""
        density = copy(self)
        density._set_moments(moments)
        return density

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the shrinkage that all rows settled on."""
        unfitted: Self = clone(self)
        if isinstance(self.shrinkage, str):
            unfitted.set_params(shrinkage=self.shrinkage_)
        return unfitted

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-density in nats of features Z (n, p) that were checked before, (n,)."""
        return self.factor_.log_density(Z)

    def explain_rows(self, X: Any, top: int = 5) -> list[dict[str, Any]]:
        """For each row of X (n, p), its distance and the `top` features that make it far.

        As `GDADensity.explain_rows`, without a class.
        """
        X, factor = self._check_rows(X), self.factor_
        return list(explain_rows(factor.mean, factor.contributions(X), X, top))

    @property
    def factor_(self) -> GaussianFactor:
        """Mean and factor of the covariance."""
        # Lazy, so that a stream of small chunks pays for one factorisation, not for one a chunk.
        if self._factor_ is None:
            target = mean_variance(self.moments_)
            self._factor_ = factorise(self.moments_, self.shrinkage_, target, "GaussianDensity")
        return self._factor_

    @property
    def rank_(self) -> int:
        """Rank of the covariance before shrinkage (of features scaled to unit variance)."""
        check_is_fitted(self, "moments_")
        return rank(self.moments_)

    def _moments_of(self, X: np.ndarray, sample_weight: Any) -> Moments:
        if self.covariance_type not in _DIAGONAL:
            raise ValueError(
                f"covariance_type must be one of {sorted(_DIAGONAL)}, got {self.covariance_type!r}"
            )
        weights = check_weights(sample_weight, X)
        diagonal, higher = _DIAGONAL[self.covariance_type], self.shrinkage == LEDOIT_WOLF
        return Moments.of(X, weights, diagonal=diagonal, higher=higher)

    def _set_moments(self, moments: Moments) -> None:
        self.moments_ = moments
        self.shrinkage_ = shrinkage_intensity(moments, self.shrinkage)
        self._factor_ = None
