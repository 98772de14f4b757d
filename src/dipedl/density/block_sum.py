"""One density for each block of columns, such as each layer of a network, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from ..calibration.crossfit import splits
from ..protocols import atomic
from .base import (
    LogDensityMixin,
    check_rows,
    check_training_rows,
    fit_copy,
    is_estimator,
    log_density,
    requires_labels,
)
from .gaussian import GDADensity

__all__ = ["BlockSumDensity"]

_ALIKE = 1e-12


@dataclass(eq=False, repr=False)
class BlockSumDensity(LogDensityMixin, BaseEstimator):
    """Sum over blocks of columns of the log-density of each block.

    ``s(x) = sum_b log p_b(x_b)``; with `cv`, ``s(x) = sum_b (log p_b(x_b) - m_b) / s_b`` with mean
    and standard deviation of held-out log-densities of block b, so that a wide block weighs no more
    than a narrow one.

    Parameters
    ----------
    blocks : sequence of int, optional
        Widths of consecutive blocks, which add up to the number of columns, such as those of
        `dipedl.networks.LayerFeatures.widths_`. None makes every column a block.
    density : density estimator, optional
        Fitted on each block; None is ``GDADensity()``.
    cv : None, int or cross-validation splitter, default=None
        None adds log-densities as they are. A number of folds, or a splitter, standardises each
        block by its scores of rows that its density was not fitted on; that many more fits.

    Attributes
    ----------
    densities_ : list of density estimator
        The fitted density of each block.
    blocks_ : list of slice
        Columns of each block.
    center_, scale_ : ndarray, shape (b,)
        Mean and standard deviation taken for each block, in nats; 0 and 1 without `cv`.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    The sum is a log-density where blocks are independent, which layers of one network are not: what
    two layers both show is counted twice. It ranks; it is not calibrated. Labels, if the density
    takes them, are mixed within each block: the sum does not know that two blocks must agree on
    the class. With `cv` the sum has no unit and does not integrate to one, and a row of weight two
    lies in one fold, where two copies would be spread.

    References
    ----------
    Lee et al., "A simple unified framework for detecting out-of-distribution samples and
    adversarial attacks", NeurIPS (2018), section 2.2, with equal weights: theirs are fitted on
    out-of-distribution data.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import BlockSumDensity, GaussianDensity
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> density = BlockSumDensity([3, 2], GaussianDensity()).fit(X)
    >>> left, right = GaussianDensity().fit(X[:, :3]), GaussianDensity().fit(X[:, 3:])
    >>> bool(np.isclose(density.score(X), left.score(X[:, :3]) + right.score(X[:, 3:])))
    True
    """

    blocks: Sequence[int] | None = None
    density: Any = None
    cv: Any = None

    @property
    def normalized(self) -> bool:
        """True if it integrates to one: the blocks' density does, and nothing is standardised."""
        own = getattr(self.density, "normalized", True) if is_estimator(self.density) else True
        return self.cv is None and bool(own)

    @atomic
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit one density per block on features X (n, p), with labels y (n,) if it takes them.

        Raises
        ------
        ValueError
            If the blocks do not fit the columns, or with `cv` a block's held-out scores are all
            alike or not finite.
        """
        X, y, weights = check_training_rows(self, X, y, sample_weight)
        self.blocks_ = _slices(self.blocks, X.shape[1])
        self.densities_ = self._fit_blocks(X, y, weights)
        self.center_, self.scale_ = np.zeros(len(self.blocks_)), np.ones(len(self.blocks_))
        if self.cv is not None:
            self.center_, self.scale_ = self._held_out_scale(X, y, weights)
        return self

    def block_scores(self, X: Any) -> np.ndarray:
        """Return the term of each block in the sum for each row of X (n, p), shape (n, b)."""
        return self._terms(check_rows(self, X))

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the sum of the terms of features Z (n, p) that were checked before, (n,)."""
        return np.asarray(self._terms(Z).sum(axis=1))

    def _terms(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray((self._scores(self.densities_, Z) - self.center_) / self.scale_)

    def __sklearn_tags__(self) -> Tags:
        """Labels are required if the density requires them."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.density is None or requires_labels(self.density)
        return tags

    def _fit_blocks(self, X: np.ndarray, y: Any, weights: np.ndarray | None) -> list[Any]:
        template, densities = GDADensity() if self.density is None else self.density, []
        for block in self.blocks_:
            try:
                densities.append(fit_copy(template, X[:, block], y, weights))
            except ValueError as error:
                constant = block.start + np.flatnonzero(np.ptp(X[:, block], axis=0) == 0)
                why = f" (columns {constant[:5].tolist()} are constant)" if len(constant) else ""
                raise ValueError(
                    f"the block of columns {block.start} to {block.stop - 1} cannot be fitted"
                    f"{why}: {error}"
                ) from error
        return densities

    def _scores(self, densities: list[Any], X: np.ndarray) -> np.ndarray:
        pairs = zip(densities, self.blocks_, strict=True)
        return np.column_stack([log_density(density, X[:, block]) for density, block in pairs])

    def _held_out_scale(
        self, X: np.ndarray, y: Any, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of each block's held-out scores, shapes (b,)."""
        used = np.arange(len(X)) if weights is None else np.flatnonzero(weights > 0)
        labels = np.zeros(len(X), dtype=int) if y is None else y
        parts, rows = [], []
        for train, held_out in splits(self.cv, X[used], labels[used], used)[0]:
            train, held_out = used[train], used[held_out]
            w = None if weights is None else weights[train]
            densities = self._fit_blocks(X[train], None if y is None else labels[train], w)
            parts.append(self._scores(densities, X[held_out]))
            rows.append(held_out)
        scores = np.concatenate(parts)
        counts = None if weights is None else weights[np.concatenate(rows)]
        with np.errstate(invalid="ignore"):
            center = np.average(scores, axis=0, weights=counts)
            scale = np.sqrt(np.average((scores - center) ** 2, axis=0, weights=counts))
        bad = np.flatnonzero(~(np.isfinite(scale) & (scale > _ALIKE * (1 + np.abs(center)))))
        if len(bad):
            raise ValueError(
                f"held-out scores of blocks {bad.tolist()} are all alike or not finite, so they "
                "cannot be standardised; leave those blocks out, or use cv=None"
            )
        return center, scale


def _slices(blocks: Any, p: int) -> list[slice]:
    """Return the column slices of the blocks, checked against the number of columns p."""
    widths: list[Any] = [1] * p if blocks is None else [*blocks] if np.iterable(blocks) else [None]
    if not all(isinstance(width, int | np.integer) and width > 0 for width in widths):
        raise TypeError(f"blocks must be a sequence of widths > 0, such as [3, 2], got {blocks!r}")
    if sum(widths) != p:
        raise ValueError(
            f"the widths in blocks must add up to the {p} columns of X, got {sum(widths)}: {widths}"
        )
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for end, width in zip(ends, widths, strict=True)]
