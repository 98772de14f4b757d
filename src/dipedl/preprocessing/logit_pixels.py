"""Logits of pixels, for densities on the real line."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..maths.arrays import check_integer, check_number

__all__ = ["LogitPixels"]

ROUNDING = 1e-6


class LogitPixels(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Logit of each pixel in [0, 1], at the middle of its grey level.

    ``y = logit(lam + (1 - 2 lam) ((L - 1) x + 1/2) / L)``: the input of the
    flow in the DIP-EDL paper, with the mean of the dequantisation noise in place of a draw, so that
    a score depends on the image only. Black and white are far from grey: ink on a pixel that is
    always black is many standard deviations away.

    Parameters
    ----------
    levels : int, default=256
        Number L of grey levels, at least 2.
    lam : float, default=1e-6
        Distance from 0 and 1, in [0, 1/2).

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels d.

    See Also
    --------
    dipedl.networks.Dequantization : the same with noise and Jacobian, for flows.

    References
    ----------
    Dinh, Sohl-Dickstein, Bengio, "Density estimation using Real NVP", ICLR 2017, sec. 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.preprocessing import LogitPixels
    >>> LogitPixels().fit_transform(np.array([[0.0, 1.0]])).round(3)
    array([[-6.236,  6.236]])
    """

    def __init__(self, levels: int = 256, lam: float = 1e-6) -> None:
        self.levels = levels
        self.lam = lam

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check pixels X (n, d); there is nothing to learn.

        Raises
        ------
        ValueError
            If X is not finite or leaves [0, 1], or a parameter is out of its range.
        """
        check_integer("levels", self.levels, 2)
        check_number("lam", self.lam, "in [0, 1/2)", lambda lam: 0 <= lam < 0.5)
        self._check_rows(X, reset=True)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Logits of pixels X (n, d), shape (n, d), float64."""
        check_is_fitted(self)
        cell = ((self.levels - 1) * self._check_rows(X, reset=False) + 0.5) / self.levels
        inside = self.lam + (1 - 2 * self.lam) * cell
        return np.asarray(np.log(inside) - np.log1p(-inside))

    def _check_rows(self, X: Any, reset: bool) -> np.ndarray:
        X = np.asarray(validate_data(self, X, dtype=np.float64, reset=reset))
        low, high = float(X.min()), float(X.max())
        if low < -ROUNDING or high > 1 + ROUNDING:
            raise ValueError(
                f"X must hold pixels in [0, 1], got values from {low:g} to {high:g}; "
                "divide images of 0..255 by 255"
            )
        return np.asarray(X.clip(0, 1))
