"""Normal scores of the ranks of one component."""

from __future__ import annotations

import numpy as np

from ...evidence import RankNormal
from ...evidence._logistic import lower_tail_unit


class NormalScores(RankNormal):
    """Normal scores of ranks, with the slope of the lower tail beyond the ranks."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        super()._learn(scores, weights)
        self.scale_ = lower_tail_unit(scores, weights, "the normal scores of a component")
