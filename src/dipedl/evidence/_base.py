"""What the normalisers share: input checks and the source of the statistics."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from ..fitting.all_or_nothing import all_or_nothing
from ..inputs import check_weights, require_fitted
from ..maths.array_namespace import unmasked
from ..maths.evidence import affine

SOURCE = "the log-densities given to fit"


class BaseNormalizer(BaseEstimator):
    """A strictly increasing map from log-density to z, learned from ID log-densities.

    ``source_`` says which data the statistics came from, ``n_`` how many (sum of weights).
    """

    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = SOURCE,
    ) -> Self:
        """Learn the statistics from ID log-densities (n,), with optional weights (n,) >= 0."""
        with all_or_nothing(self):
            scores, weights = weighted_scores(log_density, sample_weight)
            require_finite(scores, type(self).__name__, source)
            self._learn(scores, weights)
            return self._learned(weights, source)

    def transform(self, log_density: np.ndarray) -> np.ndarray:
        """Normalised log-density z, shape (n,); strictly increasing in `log_density`."""
        require_fitted(self, "source_")
        return self._apply(np.asarray(log_density, dtype=np.float64))

    def _learned(self, weights: np.ndarray, source: str) -> Self:
        self.n_ = float(weights.sum())
        self.source_ = source
        return self

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _learn")

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _apply")


class AffineNormalizer(BaseNormalizer):
    """``z = (log-density - location_) / scale_``, both in nats."""

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(affine(scores, self.location_, self.scale_))

    def _set_affine(self, location: float, scale: float, measure: str) -> None:
        require_spread(location, scale, type(self).__name__, measure)
        self.location_, self.scale_ = float(location), float(scale)


def weighted_scores(
    log_density: np.ndarray, sample_weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and weights as float64 (n,); those of weight zero are dropped."""
    scores = np.asarray(unmasked("log_density", log_density), dtype=np.float64)
    if scores.ndim != 1 or not len(scores):
        raise ValueError(f"log_density must be a non-empty 1-d array, got shape {scores.shape}")
    checked = check_weights(sample_weight, scores)
    weights = np.ones(len(scores)) if checked is None else checked
    return scores[weights > 0], weights[weights > 0]


def require_finite(scores: np.ndarray, name: str, source: str) -> None:
    """Raise ValueError unless every score is finite."""
    if not np.isfinite(scores).all():
        raise ValueError(
            f"log_density must be finite to fit {name}, got "
            f"{scores[~np.isfinite(scores)][0]} from {source}; "
            "use a density with unbounded support"
        )


def require_spread(location: float, scale: float, name: str, measure: str) -> None:
    """Raise ValueError unless `scale` is more than rounding error of scores near `location`."""
    if not scale > 1e-12 * max(1.0, abs(location)):
        raise ValueError(
            f"log_density must vary to fit {name}, got {measure} {scale:.3g}; "
            "the density gives every input the same score: use normalizer=Identity()"
        )
