"""The paper's normaliser, and one that gross outliers do not move."""

from __future__ import annotations

import numpy as np
from scipy import special
from sklearn.utils.validation import check_is_fitted

from ._base import AffineNormalizer
from .quantiles import weighted_quantile

__all__ = ["RobustZScore", "ZScore"]


class ZScore(AffineNormalizer):
    """(log-density - mean) / standard deviation, the paper's normaliser.

    Attributes
    ----------
    location_, scale_ : float
        Mean and population standard deviation (ddof 0), in nats.

    References
    ----------
    Carlotti, Gligić, Farahi, appendix on underflow.

    Notes
    -----
    ``a + b`` is the normaliser fitted on the scores of both, exactly. The others are not mergeable:
    medians, ranks and budgets need the scores themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.evidence import ZScore
    >>> ZScore().fit([-4.0, -2.0, 0.0]).transform([-2.0, -100.0]).round(2)
    array([  0.  , -60.01])
    >>> both = ZScore().fit([-4.0, -2.0]) + ZScore().fit([0.0, 2.0, 3.0])
    >>> bool(np.isclose(both.location_, -0.2))
    True
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        mean = np.average(scores, weights=weights)
        variance = np.average((scores - mean) ** 2, weights=weights)
        self._set_affine(mean, np.sqrt(variance), "a standard deviation of")

    def __add__(self, other: ZScore) -> ZScore:
        """The normaliser of the scores of both."""
        if not isinstance(other, ZScore):
            return NotImplemented
        for part in (self, other):
            check_is_fitted(part, "source_")
        n = self.n_ + other.n_
        share, gap = other.n_ / n, other.location_ - self.location_
        variance = (1 - share) * self.scale_**2 + share * other.scale_**2
        merged = ZScore()
        merged.location_ = self.location_ + share * gap
        merged.scale_ = float(np.sqrt(variance + share * (1 - share) * gap**2))
        merged.n_, merged.source_ = n, f"{self.source_} and {other.source_}"
        return merged


class RobustZScore(AffineNormalizer):
    """(log-density - median) / (1.4826 MAD): a few gross outliers among the ID data do not move it.

    Attributes
    ----------
    location_, scale_ : float
        Median, and median absolute deviation scaled to a normal's standard deviation, in nats.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        median = weighted_quantile(scores, 0.5, weights)
        mad = weighted_quantile(np.abs(scores - median), 0.5, weights)
        self._set_affine(median, mad / special.ndtri(0.75), "a median absolute deviation of")
