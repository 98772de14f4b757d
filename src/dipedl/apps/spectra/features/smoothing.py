"""Savitzky-Golay smoothing of spectra."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.ndimage import correlate1d
from sklearn.base import OneToOneFeatureMixin

from ....maths.arrays import check_integer
from ._rows import FluxTransformer, flux_rows, row_slices

__all__ = ["SavitzkyGolay"]


class SavitzkyGolay(OneToOneFeatureMixin, FluxTransformer):
    """Savitzky-Golay filter of each spectrum: a polynomial fitted to the pixels of a window.

    Parameters
    ----------
    window : int, default=10
        Number of pixels w of the window.
    polyorder : int, default=3
        Degree of the polynomial, below `window`.
    centred : bool, default=False
        Effect of an even window. False is as published: the window of pixel t reaches from
        ``t - w/2 + 1`` to ``t + w/2``, so the value belongs to ``t + 1/2``. True takes a window of
        ``w + 1`` pixels, which is symmetric about its pixel and shifts nothing. An odd window is
        centred either way.

    Attributes
    ----------
    window_ : int
        Number of pixels of the window used.
    taps_ : ndarray (`window_`,)
        Weights of the pixels of a window, in their order.
    edges_ : ndarray (2, `window_` // 2, `window_`)
        Weights that give the first and the last ``window_ // 2`` pixels from the first and the
        last `window_` ones.
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    The first and the last ``w // 2`` pixels come from the polynomials of the first and the last
    window, at the pixels themselves (``mode="interp"`` of :func:`scipy.signal.savgol_filter`): with
    an even window as published the ends are not shifted and the rest is, by 0.85 Angstrom on the
    paper's grid.

    Pixels must be equally spaced. Sums are taken in float64.

    References
    ----------
    Savitzky, Golay, "Smoothing and differentiation of data by simplified least squares
    procedures", Analytical Chemistry 36 (1964).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import SavitzkyGolay
    >>> ramp = np.arange(16.0)[None, :]
    >>> SavitzkyGolay().fit_transform(ramp)[0, 3:8].round(6)
    array([3. , 4. , 5.5, 6.5, 7.5])
    >>> SavitzkyGolay(centred=True).fit_transform(ramp)[0, 3:8].round(6)
    array([3., 4., 5., 6., 7.])
    """

    def __init__(self, window: int = 10, polyorder: int = 3, centred: bool = False) -> None:
        self.window = window
        self.polyorder = polyorder
        self.centred = centred

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the weights for the number of pixels of spectra X (n, p).

        Raises
        ------
        TypeError, ValueError
            If a parameter is out of its range, a pixel is not finite, or p is less than the window.
        """
        check_integer("window", self.window, 1)
        check_integer("polyorder", self.polyorder, 0)
        if self.polyorder >= self.window:
            raise ValueError(
                f"polyorder must be below window={self.window}, got {self.polyorder}; "
                "widen the window"
            )
        size = self.window + (self.centred and self.window % 2 == 0)
        flux_rows(self, X, reset=True, min_pixels=size)
        half = size // 2
        middle = (size - 1) / 2
        self.window_ = size
        self.taps_ = _weights(size, self.polyorder, np.array([middle]))[0]
        ends = (np.arange(half), np.arange(size - half, size))
        self.edges_ = np.stack([_weights(size, self.polyorder, at) for at in ends])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Smoothed spectra X (n, p), shape (n, p), in the type of X."""
        rows = flux_rows(self, X, reset=False)
        size, half = self.window_, self.window_ // 2
        # The window of an even size reaches one pixel further to the right.
        origin = -1 if size % 2 == 0 else 0
        smooth = np.empty(rows.shape, rows.dtype)
        for part in row_slices(rows):
            flux, out = rows[part], smooth[part]
            correlate1d(flux, self.taps_, axis=1, output=out, mode="constant", origin=origin)
            if half:
                out[:, :half] = flux[:, :size] @ self.edges_[0].T
                out[:, -half:] = flux[:, -size:] @ self.edges_[1].T
        return smooth


def _weights(size: int, polyorder: int, at: np.ndarray) -> np.ndarray:
    """Weights (m, size) that give, from `size` pixels, their polynomial at the positions `at`."""
    middle = (size - 1) / 2
    # In units of the half-window, so that powers stay small.
    unit = max(middle, 1.0)
    powers = np.vander((np.arange(size) - middle) / unit, polyorder + 1)
    return np.vander((at - middle) / unit, polyorder + 1) @ np.linalg.pinv(powers)
