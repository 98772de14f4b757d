"""The paper's normaliser."""

from __future__ import annotations

import numpy as np

from ._base import AffineNormalizer

__all__ = ["ZScore"]


class ZScore(AffineNormalizer):
    """(log-density - mean) / standard deviation, the paper's normaliser.

    Attributes
    ----------
    location_, scale_ : float
        Mean and population standard deviation (ddof 0), in nats.

    References
    ----------
    Carlotti, Gligić, Farahi, appendix on underflow.

    Examples
    --------
    >>> from dipedl.evidence import ZScore
    >>> ZScore().fit([-4.0, -2.0, 0.0]).transform([-2.0, -100.0]).round(2)
    array([  0.  , -60.01])
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        mean = np.average(scores, weights=weights)
        variance = np.average((scores - mean) ** 2, weights=weights)
        self._set_affine(mean, np.sqrt(variance), "a standard deviation of")
