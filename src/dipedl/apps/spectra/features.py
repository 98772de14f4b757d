"""Features of spectra: normalisation, smoothing, components, lines, blocks, and their pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.signal import savgol_filter
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from ...maths.arrays import check_choice, check_integer, check_number
from .resampling import increasing_grid
from .spectra import LINES, PAPER_LINES, paper_grid

__all__ = [
    "BlockStatistics",
    "EnergyNormalizer",
    "LineMeans",
    "PrincipalComponents",
    "SavitzkyGolay",
    "spectral_features",
]

# Few rows, so that they fit the cache in float64; a whole array is never converted.
_VALUES_AT_ONCE = 2**18
#: Added to the energy, as published.
_EPS = 1e-8
_STATISTICS = ("mean", "variance", "argmax", "argmin", "max", "min")
_PRESETS = ("standardised", "published")


class _FluxTransformer(TransformerMixin, BaseEstimator):
    """A transformer of flux that keeps its type."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _row_slices(X: np.ndarray) -> Iterator[slice]:
    """Slices that cover the rows of X (n, p) in order, each of about 2 MiB in float64."""
    yield from gen_batches(len(X), max(1, _VALUES_AT_ONCE // X.shape[1]))


def _flux_rows(estimator: Any, X: Any, *, reset: bool, min_pixels: int = 1) -> np.ndarray:
    """X as finite rows (n, p) of float32 or float64, with as many columns as in fit."""
    if not reset:
        check_is_fitted(estimator)
    rows = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        ensure_min_features=min_pixels,
    )
    for part in _row_slices(rows):
        bad = ~np.isfinite(rows[part])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"X must be finite, got {rows[part][row, column]} (NaN or inf) in row "
                f"{part.start + row}, column {column}; fill masked pixels from their neighbours, "
                "or drop the row"
            )
    return np.asarray(rows)


class EnergyNormalizer(OneToOneFeatureMixin, _FluxTransformer):
    """Divide each spectrum by its energy: ``x / (|x| + 1e-8)``, with the Euclidean norm.

    Nothing is learned; each row is normalised on its own. A spectrum whose norm is not above 1e-8
    is refused, since it would vanish: flux in erg / s / cm2 / A must be multiplied by 1e17 first.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check spectra X (n, p); there is nothing to learn.

        Raises
        ------
        ValueError
            If a pixel is not finite, a spectrum is constant, has no positive total flux or an
            energy that is not above 1e-8.
        """
        # A spectrum of one pixel is always constant.
        rows = _flux_rows(self, X, reset=True, min_pixels=2)
        for part in _row_slices(rows):
            _energy(rows[part].astype(np.float64), part.start)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Spectra X (n, p) over their energies, shape (n, p), float32."""
        rows = _flux_rows(self, X, reset=False)
        normalized = np.empty(rows.shape, np.float32)
        for part in _row_slices(rows):
            flux = rows[part].astype(np.float64)
            flux /= (_energy(flux, part.start) + _EPS)[:, None]
            normalized[part] = flux
        return normalized

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _energy(flux: np.ndarray, first: int) -> np.ndarray:
    """Euclidean norms (n,) of rows (n, p), numbered from `first`; refuses empty spectra."""
    with np.errstate(over="ignore", invalid="ignore"):
        energy = np.sqrt(np.einsum("ij,ij->i", flux, flux))
        total = flux.sum(axis=1)
    refused = {
        "overflows: rescale the flux": ~np.isfinite(energy),
        f"is not above {_EPS}: rescale the flux, or drop the spectrum if it is empty": (
            energy <= _EPS
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


class SavitzkyGolay(OneToOneFeatureMixin, _FluxTransformer):
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
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    The filter is :func:`scipy.signal.savgol_filter`: the first and the last ``w // 2`` pixels come
    from the polynomials of the first and the last window, at the pixels themselves. With an even
    window as published the ends are not shifted and the rest is, by 0.85 Angstrom on the paper's
    grid.

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
        _flux_rows(self, X, reset=True, min_pixels=size)
        self.window_ = size
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Smoothed spectra X (n, p), shape (n, p), in the type of X."""
        rows = _flux_rows(self, X, reset=False)
        smooth = np.empty(rows.shape, rows.dtype)
        for part in _row_slices(rows):
            flux = rows[part].astype(np.float64)
            smooth[part] = savgol_filter(flux, self.window_, self.polyorder, axis=1)
        return smooth


@dataclass(eq=False, repr=False)
class PrincipalComponents(_FluxTransformer):
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

    n_components: int = 500
    svd_solver: str = "exact"
    random_state: Any = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of training spectra X (n, p).

        Raises
        ------
        ValueError
            If there are not more training spectra than components, fewer pixels than components,
            or X is not finite; if the solver is not known.
        """
        check_choice("svd_solver", self.svd_solver, ("exact", "randomized"))
        rows = _flux_rows(self, X, reset=True)
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
        along = _flux_rows(self, X, reset=False) @ self.components_.T
        # Centred afterwards: a centred copy of all spectra would be large.
        along -= self.mean_ @ self.components_.T
        return np.asarray(along)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``pca`` and the number of each component."""
        check_is_fitted(self)
        return np.array([f"pca{i}" for i in range(len(self.components_))], dtype=object)


@dataclass(eq=False, repr=False)
class LineMeans(_FluxTransformer):
    """Mean flux of the pixels within a few Angstrom of each line.

    Parameters
    ----------
    wavelength : ndarray (p,), optional
        Wavelengths of the pixels in Angstrom, increasing; None is `paper_grid`.
    lines : sequence of str or float, default=PAPER_LINES
        Names out of ``dipedl.apps.spectra.spectra.LINES``, or wavelengths in Angstrom.
    half_width : float, default=3.0
        Largest distance of a pixel from its line, in Angstrom.

    Attributes
    ----------
    windows_ : ndarray (len(lines), 2), int64
        First pixel of each line, and the one after its last.
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    The windows stay at rest wavelengths, as published: they fit the lines of stars, not those of
    redshifted galaxies and quasars.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import LineMeans, paper_grid
    >>> flux = paper_grid()[None, :]
    >>> means = LineMeans().fit(flux)
    >>> means.transform(flux).round(1)
    array([[6563.1, 4861.7, 4340.4, 4101.5, 5183.9, 5889.7]])
    >>> means.get_feature_names_out()[:2]
    array(['line_Hα', 'line_Hβ'], dtype=object)
    """

    wavelength: np.ndarray | None = None
    lines: Sequence[str | float] = PAPER_LINES
    half_width: float = 3.0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the pixels of each line, for spectra X (n, p).

        Raises
        ------
        ValueError
            If the grid does not fit X, is not increasing, or has no pixel at a line; if a line has
            no known name.
        """
        check_number("half_width", self.half_width, "finite and >= 0", lambda x: x >= 0)
        rows = _flux_rows(self, X, reset=True)
        grid = paper_grid()
        if self.wavelength is not None:
            grid = increasing_grid("wavelength", self.wavelength)
        if len(grid) != rows.shape[1]:
            own = self.wavelength is not None
            by_default = "" if own else " (wavelength=None means the paper's grid)"
            raise ValueError(
                f"wavelength must hold one wavelength for each of the {rows.shape[1]} pixels of X, "
                f"got {len(grid)}{by_default}; give wavelength= the grid of X, or resample X"
            )
        unknown = [line for line in self.lines if isinstance(line, str) and line not in LINES]
        if unknown:
            raise ValueError(f"lines must be out of {list(LINES)} or wavelengths, got {unknown}")
        named = (LINES[line] if isinstance(line, str) else line for line in self.lines)
        at = np.fromiter(named, np.float64, len(self.lines))
        first = np.searchsorted(grid, at - self.half_width, side="left")
        after = np.searchsorted(grid, at + self.half_width, side="right")
        if len(at) == 0 or (first == after).any():
            missing = [line for line, i, j in zip(self.lines, first, after, strict=True) if i == j]
            raise ValueError(
                f"lines must have a pixel within {self.half_width:g} Angstrom, got none for "
                f"{missing} on the grid {grid[0]:g}-{grid[-1]:g} Angstrom; choose other lines, or "
                "a larger half_width"
            )
        self.windows_ = np.stack([first, after], axis=1).astype(np.int64)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Mean flux of spectra X (n, p) at each line, shape (n, len(lines)), in the type of X."""
        rows = _flux_rows(self, X, reset=False)
        means = np.empty((len(rows), len(self.windows_)), rows.dtype)
        for column, (first, after) in enumerate(self.windows_):
            means[:, column] = rows[:, first:after].mean(axis=1, dtype=np.float64)
        return means

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``line_`` and the name or the wavelength of each line."""
        check_is_fitted(self)
        return np.array([f"line_{line}" for line in self.lines], dtype=object)


class BlockStatistics(_FluxTransformer):
    """Mean, variance, positions of maximum and minimum, maximum and minimum of each block.

    The p pixels are cut into blocks of ``ceil(p / n_blocks)``; the last one may be shorter.

    Parameters
    ----------
    n_blocks : int, default=50
        Number of blocks b.

    Attributes
    ----------
    block_size_ : int
        Number of pixels of a block.
    n_features_in_ : int
        Number of pixels p.

    Notes
    -----
    As published: grouped by statistic (b means, then b variances, ...), variances divide by the
    number of pixels, positions count from the first pixel of the spectrum, and of equal pixels the
    first counts. Positions go to thousands while variances of normalised flux are about 1e-8: scale
    the columns for a network.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.apps.spectra import BlockStatistics
    >>> blocks = BlockStatistics(n_blocks=2)
    >>> blocks.fit_transform(np.array([[1.0, 3.0, 8.0, 6.0]]))
    array([[2., 7., 1., 1., 1., 2., 0., 3., 3., 8., 1., 6.]])
    >>> blocks.get_feature_names_out()[:3]
    array(['block_mean_0', 'block_mean_1', 'block_variance_0'], dtype=object)
    """

    def __init__(self, n_blocks: int = 50) -> None:
        self.n_blocks = n_blocks

    def fit(self, X: Any, y: Any = None) -> Self:
        """Set the blocks from the number of columns of spectra X (n, p).

        Raises
        ------
        TypeError, ValueError
            If `n_blocks` is no positive integer, or p pixels do not fill so many blocks.
        """
        check_integer("n_blocks", self.n_blocks, 1)
        pixels = _flux_rows(self, X, reset=True).shape[1]
        size = -(-pixels // self.n_blocks)
        filled = -(-pixels // size)
        if filled != self.n_blocks:
            raise ValueError(
                f"n_blocks={self.n_blocks} blocks of {size} pixels cannot be filled with the "
                f"{pixels} pixels of X; choose n_blocks={filled}"
            )
        self.block_size_ = size
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the statistics of spectra X (n, p), shape (n, 6 n_blocks), in the type of X."""
        rows = _flux_rows(self, X, reset=False)
        blocks = -(-rows.shape[1] // self.block_size_)
        found = np.empty((len(rows), len(_STATISTICS), blocks), rows.dtype)
        for part in _row_slices(rows):
            _write_statistics(rows[part], self.block_size_, found[part])
        return found.reshape(len(rows), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``block_``, the statistic and the number of the block, in the order of the columns."""
        check_is_fitted(self)
        names = [f"block_{name}_{i}" for name in _STATISTICS for i in range(self.n_blocks)]
        return np.array(names, dtype=object)


def _write_statistics(flux: np.ndarray, size: int, out: np.ndarray) -> None:
    """Write the statistics of rows (n, p) to `out` (n, 6, blocks)."""
    whole = flux.shape[1] // size
    _write_equal_blocks(flux[:, : whole * size].reshape(len(flux), whole, size), out[:, :, :whole])
    rest = flux[:, None, whole * size :]
    if rest.size:
        _write_equal_blocks(rest, out[:, :, whole:])
        out[:, 2:4, whole:] += whole * size


def _write_equal_blocks(blocks: np.ndarray, out: np.ndarray) -> None:
    """Write the statistics of blocks (n, b, size) to `out` (n, 6, b)."""
    start = blocks.shape[2] * np.arange(blocks.shape[1])
    # Centred in float64: variances of normalised flux are near the resolution of float32.
    values = blocks.astype(np.float64)
    mean = values.mean(axis=2)
    values -= mean[:, :, None]
    out[:, 0] = mean
    out[:, 1] = np.einsum("nbs,nbs->nb", values, values) / blocks.shape[2]
    out[:, 2] = start + blocks.argmax(axis=2)
    out[:, 3] = start + blocks.argmin(axis=2)
    out[:, 4] = blocks.max(axis=2)
    out[:, 5] = blocks.min(axis=2)


def spectral_features(
    preset: str = "standardised",
    *,
    wavelength: np.ndarray | None = None,
    n_components: int = 500,
    random_state: Any = 0,
) -> Pipeline:
    """Return an unfitted pipeline from flux (n, p) to features (n, n_components + 306), float32.

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
    check_choice("preset", preset, _PRESETS)
    centred = preset == "standardised"
    # "randomized" is what scikit-learn's default becomes at the paper's sizes. Its small components
    # are inaccurate, and scaling to unit variance would amplify the error.
    solver = "exact" if centred else "randomized"
    pca = PrincipalComponents(n_components, svd_solver=solver, random_state=random_state)
    parts = [("pca", pca), ("lines", LineMeans(wavelength)), ("blocks", BlockStatistics())]
    union = FeatureUnion(parts, verbose_feature_names_out=False)
    smoothing = SavitzkyGolay(centred=centred)
    steps = [("energy", EnergyNormalizer()), ("smoothing", smoothing), ("features", union)]
    return Pipeline([*steps, ("scaling", StandardScaler())] if centred else steps)
