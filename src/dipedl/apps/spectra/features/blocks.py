"""Six statistics of each block of a spectrum."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ....maths.arrays import check_integer
from ._rows import FluxTransformer, flux_rows, row_slices

__all__ = ["BlockStatistics"]

_STATISTICS = ("mean", "variance", "argmax", "argmin", "max", "min")


class BlockStatistics(FluxTransformer):
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
        pixels = flux_rows(self, X, reset=True).shape[1]
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
        """Statistics of spectra X (n, p), shape (n, 6 n_blocks), in the type of X."""
        rows = flux_rows(self, X, reset=False)
        blocks = -(-rows.shape[1] // self.block_size_)
        found = np.empty((len(rows), len(_STATISTICS), blocks), rows.dtype)
        for part in row_slices(rows):
            _describe(rows[part], self.block_size_, found[part])
        return found.reshape(len(rows), -1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """``block_``, the statistic and the number of the block, in the order of the columns."""
        check_is_fitted(self)
        names = [f"block_{name}_{i}" for name in _STATISTICS for i in range(self.n_blocks)]
        return np.array(names, dtype=object)


def _describe(flux: np.ndarray, size: int, out: np.ndarray) -> None:
    """Write the statistics of rows (n, p) to `out` (n, 6, blocks)."""
    whole = flux.shape[1] // size
    _of_equal_blocks(flux[:, : whole * size].reshape(len(flux), whole, size), out[:, :, :whole])
    rest = flux[:, None, whole * size :]
    if rest.size:
        _of_equal_blocks(rest, out[:, :, whole:])
        out[:, 2:4, whole:] += whole * size


def _of_equal_blocks(blocks: np.ndarray, out: np.ndarray) -> None:
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
