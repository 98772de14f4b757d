"""No normalisation at all."""

from __future__ import annotations

import numpy as np

from ._base import BaseNormalizer

__all__ = ["Identity"]


class Identity(BaseNormalizer):
    """The raw log-density: evidence is ``n * gamma * p(x)``, Definition 3.1 to the letter."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        pass

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return scores
