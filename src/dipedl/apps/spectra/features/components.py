"""Principal components of spectra."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from ._rows import FluxTransformer, flux_rows

__all__ = ["PrincipalComponents"]


class PrincipalComponents(FluxTransformer):
    """Principal components by scikit-learn's PCA, stored as plain arrays.

    Differences from :class:`sklearn.decomposition.PCA`: ``fit_transform`` equals ``transform`` for
    every solver; the components are contiguous, so that a saved model has the same output to the
    last bit; too few training spectra are refused with a remedy.

    Parameters
    ----------
    n_components : int, default=500
        Number of components c.
    svd_solver : {"exact", "randomized"}, default="exact"
        "exact" needs no seed: scikit-learn's "full" for few training spectra (n at most p / 2), its
        "covariance_eigh" for more. "randomized" is its "auto" at the paper's sizes;
        faster, and inaccurate in the small components.
    random_state : int, RandomState instance or None, default=0
        Seed of the randomised solver.

    Attributes
    ----------
    components_ : ndarray (c, p)
        Orthonormal, in order of decreasing variance.
    mean_ : ndarray (p,)
        Mean of the training spectra.
    explained_variance_ : ndarray (c,)
        Variance of the training spectra along each component.
    explained_variance_ratio_ : ndarray (c,)
        The same as a share of the whole variance.
    n_features_in_ : int
        Number of pixels p.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import PrincipalComponents
    >>> X = np.outer(np.arange(5.0), [3.0, 4.0])
    >>> components = PrincipalComponents(1).fit(X)
    >>> np.abs(components.components_).round(6)
    array([[0.6, 0.8]])
    """

    def __init__(
        self, n_components: int = 500, svd_solver: str = "exact", random_state: Any = 0
    ) -> None:
        self.n_components = n_components
        self.svd_solver = svd_solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of training spectra X (n, p).

        Raises
        ------
        ValueError
            If there are not more training spectra than components, fewer pixels than components,
            or X is not finite; if the solver is not known.
        """
        if self.svd_solver not in ("exact", "randomized"):
            raise ValueError(f"svd_solver must be 'exact' or 'randomized', got {self.svd_solver!r}")
        rows = flux_rows(self, X, reset=True)
        n, pixels = rows.shape
        # n centred spectra span n - 1 directions; one more would be rounding error.
        if not 1 <= self.n_components <= min(n - 1, pixels):
            raise ValueError(
                f"n_components must lie in 1..{min(n - 1, pixels)} for n_samples = {n} training "
                f"spectra of n_features = {pixels} pixels, got {self.n_components!r}; lower it, or "
                "give more training spectra"
            )
        solver = self.svd_solver
        if solver == "exact":
            solver = "full" if 2 * n <= pixels else "covariance_eigh"
        solved = PCA(self.n_components, svd_solver=solver, random_state=self.random_state).fit(rows)
        self.components_ = np.ascontiguousarray(solved.components_)
        self.mean_ = solved.mean_
        self.explained_variance_ = solved.explained_variance_
        self.explained_variance_ratio_ = solved.explained_variance_ratio_
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Coordinates of spectra X (n, p) along the components, shape (n, c)."""
        along = flux_rows(self, X, reset=False) @ self.components_.T
        # Centred afterwards: a centred copy of all spectra would be large.
        along -= self.mean_ @ self.components_.T
        return np.asarray(along)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``pca`` and the number of each component."""
        check_is_fitted(self)
        return np.array([f"pca{i}" for i in range(len(self.components_))], dtype=object)
