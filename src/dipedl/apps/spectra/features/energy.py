"""Normalisation of spectra to equal energy, which removes brightness and distance."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import Tags

from ._rows import FluxTransformer, flux_rows, row_slices

__all__ = ["EnergyNormalizer"]


class EnergyNormalizer(OneToOneFeatureMixin, FluxTransformer):
    """Divide each spectrum by its energy: ``x / (|x| + eps)``, with the Euclidean norm.

    Nothing is learned; each row is normalised on its own.

    Parameters
    ----------
    eps : float, default=1e-8
        Added to the norm, as published. A spectrum whose norm is not above it is refused, since
        it would vanish: flux in erg / s / cm2 / A must be multiplied by 1e17 first.

    Attributes
    ----------
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    A spectrum without information is refused and its row named: zero or constant flux, or a total
    flux that is not positive (too much sky subtracted).

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import EnergyNormalizer
    >>> EnergyNormalizer().fit_transform(np.array([[3.0, 4.0], [30.0, 40.0]])).round(3)
    array([[0.6, 0.8],
           [0.6, 0.8]], dtype=float32)
    """

    def __init__(self, eps: float = 1e-8) -> None:
        self.eps = eps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check spectra X (n, p); there is nothing to learn.

        Raises
        ------
        ValueError
            If a pixel is not finite, a spectrum is constant, has no positive total flux or an
            energy that is not above `eps`, or `eps` is negative.
        """
        if not 0 <= self.eps < np.inf:
            raise ValueError(f"eps must be finite and >= 0, got {self.eps!r}")
        # A spectrum of one pixel is always constant.
        rows = flux_rows(self, X, reset=True, min_pixels=2)
        for part in row_slices(rows):
            _energy(rows[part].astype(np.float64), self.eps, part.start)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Spectra X (n, p) over their energies, shape (n, p), float32."""
        rows = flux_rows(self, X, reset=False)
        normalized = np.empty(rows.shape, np.float32)
        for part in row_slices(rows):
            flux = rows[part].astype(np.float64)
            flux /= (_energy(flux, self.eps, part.start) + self.eps)[:, None]
            normalized[part] = flux
        return normalized

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _energy(flux: np.ndarray, eps: float, first: int) -> np.ndarray:
    """Euclidean norms (n,) of rows (n, p), numbered from `first`; refuses empty spectra."""
    with np.errstate(over="ignore", invalid="ignore"):
        energy = np.sqrt(np.einsum("ij,ij->i", flux, flux))
        total = flux.sum(axis=1)
    refused = {
        "overflows: rescale the flux": ~np.isfinite(energy),
        f"is not above eps={eps!r}: rescale the flux, or drop the spectrum if it is empty": (
            energy <= eps
        ),
        "is that of a constant: drop the spectrum": flux.max(axis=1) == flux.min(axis=1),
    }
    for what, rows in refused.items():
        if rows.any():
            row = int(np.argmax(rows))
            raise ValueError(f"the energy {energy[row]:g} of row {first + row} of X {what}")
    if (total <= 0).any():
        row = int(np.argmax(total <= 0))
        raise ValueError(
            f"Negative values in data: row {first + row} of X must have a positive total flux, "
            f"got {total[row]:g}; drop the spectrum, or subtract less sky"
        )
    return np.asarray(energy)
