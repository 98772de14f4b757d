"""What every density answers beside its log-densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import DensityMixin


class LogDensityMixin(DensityMixin):
    """scikit-learn's density mixin with a score."""

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density in nats of each row of X (n, p), shape (n,)."""
        raise TypeError(f"{type(self).__name__} must define score_samples")

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density in nats of the rows of X (n, p); y is ignored."""
        return float(self.score_samples(X).mean())
