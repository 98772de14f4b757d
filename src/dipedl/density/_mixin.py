"""What every density answers beside its log-densities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin, clone
from sklearn.utils.validation import check_is_fitted


class LogDensityMixin(DensityMixin):
    """scikit-learn's density mixin with a score."""

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p), shape (n,)."""
        raise TypeError(f"{type(self).__name__} must define score_samples")

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density in nats of the rows of X (n, p); y is ignored."""
        return float(self.score_samples(X).mean())

    def _blank_union(self, other: Any, fitted: str, *, same_parameters: bool = True) -> Self:
        """A copy that knows its features but nothing else, if `other` can be merged with it."""
        for part in (self, other):
            check_is_fitted(part, fitted)
        if same_parameters and self.get_params() != other.get_params():
            raise ValueError(
                f"cannot merge densities with different parameters: {self} and {other}"
            )
        blank: Self = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            mine, theirs = getattr(self, name, None), getattr(other, name, None)
            if np.asarray(mine).tolist() != np.asarray(theirs).tolist():
                raise ValueError(
                    f"cannot merge densities of different features: {mine} and {theirs}"
                )
            if mine is not None:
                setattr(blank, name, mine)
        return blank
