"""The pipeline from flux to the paper's 806 features, standardised or as published."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler

from .blocks import BlockStatistics
from .components import PrincipalComponents
from .energy import EnergyNormalizer
from .line_means import LineMeans
from .smoothing import SavitzkyGolay

__all__ = ["spectral_features"]

_PRESETS = ("standardised", "published")


def spectral_features(
    preset: str = "standardised",
    *,
    wavelength: np.ndarray | None = None,
    n_components: int = 500,
    random_state: Any = 0,
) -> Pipeline:
    """An unfitted pipeline from flux (n, p) to features (n, n_components + 306), float32.

    Energy normalisation, Savitzky-Golay smoothing, then side by side: principal components, mean
    flux at six lines, six statistics of 50 blocks. Fit it on training spectra alone.

    Parameters
    ----------
    preset : {"standardised", "published"}, default="standardised"
        "published" is the paper's code: an even window, which shifts all but the ends by half a
        pixel, randomised principal components, and unscaled columns, from variances of 1e-8 to
        positions up to 3000. "standardised" smooths with a centred window, has exact
        principal components, and gives every column zero mean and unit variance over the training
        spectra; a column that is constant there is only centred.
    wavelength : ndarray (p,), optional
        Wavelengths of the pixels in Angstrom, increasing; None is `paper_grid`.
    n_components : int, default=500
        Number of principal components, below the number of training spectra.
    random_state : int, RandomState instance or None, default=0
        Seed of the randomised solver ("published"); the exact one needs none.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        Steps ``energy``, ``smoothing``, ``features`` (a union of ``pca``, ``lines`` and
        ``blocks``), and ``scaling`` if standardised.

    Raises
    ------
    ValueError
        If the preset is not known. ``fit`` and ``transform`` raise it for spectra that are not
        finite, constant or without positive flux, and unless there are more training spectra than
        components.

    Notes
    -----
    ``transform`` allocates two float32 arrays of the size of the input.

    Examples
    --------
    >>> from dipedl.apps.spectra import paper_grid, spectral_features
    >>> import numpy as np
    >>> flux = np.random.default_rng(0).uniform(1, 2, (40, 3000)).astype(np.float32)
    >>> features = spectral_features(n_components=20).fit(flux[:30])
    >>> features.transform(flux).shape
    (40, 326)
    >>> list(features.get_feature_names_out()[[0, 19, 20, 26, 325]])
    ['pca0', 'pca19', 'line_Hα', 'block_mean_0', 'block_min_49']
    """
    if preset not in _PRESETS:
        raise ValueError(f"preset must be one of {list(_PRESETS)}, got {preset!r}")
    healthy = preset == "standardised"
    # "randomized" is what scikit-learn's default becomes at the paper's sizes. Its small components
    # are inaccurate, and scaling to unit variance would amplify the error.
    solver = "exact" if healthy else "randomized"
    pca = PrincipalComponents(n_components, svd_solver=solver, random_state=random_state)
    parts = [("pca", pca), ("lines", LineMeans(wavelength)), ("blocks", BlockStatistics())]
    union = FeatureUnion(parts, verbose_feature_names_out=False)
    smoothing = SavitzkyGolay(centred=healthy)
    steps = [("energy", EnergyNormalizer()), ("smoothing", smoothing), ("features", union)]
    return Pipeline([*steps, ("scaling", StandardScaler())] if healthy else steps)
