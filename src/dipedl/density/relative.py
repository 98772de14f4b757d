"""Log-ratio of a density and a background density."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from ..fitting import all_or_nothing
from ..inputs import check_weights, validate_fit_features
from .base import (
    LogDensityMixin,
    add_rows,
    as_density,
    clone_with_selected,
    fit_density,
    is_estimator,
    log_density,
    merge_densities,
    requires_labels,
)
from .gaussian import GaussianDensity
from .gda import GDADensity

__all__ = ["RelativeDensity"]


def _parts_have(density: RelativeDensity, method: str) -> bool:
    """Return True, or raise AttributeError that names the first given part without `method`."""
    for part in (density.density, density.background):
        if part is not None and not (is_estimator(part) and hasattr(part, method)):
            raise AttributeError(f"{part} has no {method}, which all parts need")
    return True


class RelativeDensity(LogDensityMixin, BaseEstimator):
    """Log-density minus that of a background, which takes off what all inputs have in common.

    ``s(x) = log p(x) - log p0(x)``: a log-ratio in nats, not a log-density; nothing makes it
    integrate to one.

    Parameters
    ----------
    density : density estimator, optional
        p, the foreground; None is ``GDADensity("tied")``. A copy is fitted; one in
        `sklearn.frozen.FrozenEstimator` is used as it is.
    background : density estimator, optional
        p0; None is ``GaussianDensity()``, of the same rows without their labels. A frozen one may
        come from other rows: a broader collection, or perturbed inputs.

    Attributes
    ----------
    density_, background_ : density estimator
        The fitted parts.
    n_features_in_ : int
        Number of features p.

    Notes
    -----
    With the defaults this is the relative Mahalanobis score: with M_c and M_0 the squared
    Mahalanobis distances to class c and to the mean of all rows,
    ``s(x) = log mean_c exp(-(M_c - M_0) / 2) + constant``.

    A ratio sees only what tells the classes from the background. Along a direction in which the
    class means agree it stays the same, however far the row; a row that is far in such a direction
    alone is not flagged. Where the foreground is zero, or either distance overflows, the score is
    ``-inf``.

    `partial_fit`, ``+`` and weights are there if both parts have them.

    References
    ----------
    Ren et al., "Likelihood ratios for out-of-distribution detection", NeurIPS (2019), equation 3;
    Ren, Fort, Liu, Roy, Padhy, Lakshminarayanan, "A simple fix to Mahalanobis distance for
    improving near-OOD detection", arXiv:2106.09022 (2021), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl.density import RelativeDensity
    >>> X = np.array([[-5.0], [-4.0], [4.0], [5.0]])
    >>> density = RelativeDensity().fit(X, [0, 0, 1, 1])
    >>> density.score_samples([[4.5], [0.0]]).round(1)
    array([  2. , -38.3])
    """

    normalized = False

    def __init__(self, density: Any = None, background: Any = None) -> None:
        self.density = density
        self.background = background

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit both parts on features X (n, p), with labels y (n,) for those that take them.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Features.
        y : array-like, shape (n,), optional
            Labels; the default foreground needs them.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often; refused if a part does not take weights.
        """
        with all_or_nothing(self):
            X = validate_fit_features(self, X)
            weights = check_weights(sample_weight, X)
            foreground, background = self._templates()
            self.density_ = fit_density(as_density(foreground), X, y, weights)
            self.background_ = fit_density(as_density(background), X, y, weights)
            return self

    @available_if(lambda self: _parts_have(self, "partial_fit"))  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Add rows to what both parts were fitted on; the arguments are those of `GDADensity`."""
        with all_or_nothing(self):
            first = not hasattr(self, "density_")
            X = validate_fit_features(self, X, reset=first)
            # Of copies, as rows are added in place and the second part may refuse them.
            fitted = None if first else [deepcopy(self.density_), deepcopy(self.background_)]
            parts = fitted or [as_density(template) for template in self._templates()]
            self.density_, self.background_ = (
                add_rows(part, X, y, classes, sample_weight) for part in parts
            )
            return self

    @available_if(lambda self: _parts_have(self, "__add__"))  # type: ignore[untyped-decorator]
    def __add__(self, other: RelativeDensity) -> RelativeDensity:
        """The density fitted on the rows of both."""
        if not isinstance(other, RelativeDensity):
            return NotImplemented
        merged = self._blank_union(other, "density_", same_parameters=False)
        merged.density_ = merge_densities(self.density_, other.density_)
        merged.background_ = merge_densities(self.background_, other.background_)
        return merged

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy with the settings that each part has selected on all rows."""
        foreground, background = self._templates()
        unfitted: Self = clone(self).set_params(
            density=clone_with_selected(self.density_, foreground),
            background=clone_with_selected(self.background_, background),
        )
        return unfitted

    def log_density(self, Z: np.ndarray) -> np.ndarray:
        """Return the log-ratio in nats of features Z (n, p) that were checked before, (n,)."""
        foreground, background = log_density(self.density_, Z), log_density(self.background_, Z)
        # Both are -inf where distances overflow: there a row is far from everything.
        finite = np.isfinite(foreground) & np.isfinite(background)
        score = np.full(len(Z), -np.inf)
        return np.asarray(np.subtract(foreground, background, out=score, where=finite))

    def __sklearn_tags__(self) -> Tags:
        """Labels are required if a part requires them; the default foreground does."""
        tags = super().__sklearn_tags__()
        foreground = self.density is None or requires_labels(self.density)
        tags.target_tags.required = foreground or requires_labels(self.background)
        return tags

    def _templates(self) -> tuple[Any, Any]:
        """Return foreground and background before they are cloned and fitted."""
        foreground = GDADensity("tied") if self.density is None else self.density
        return foreground, GaussianDensity() if self.background is None else self.background
