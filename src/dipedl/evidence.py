"""From log-density to log-evidence: free functions for the maths, tiny classes that normalise.

A normaliser maps a log-density in nats to a dimensionless z; the pseudo-count is then
``n * gamma * exp(z)``.
"""

from __future__ import annotations

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._validation import check_weights

__all__ = [
    "Identity",
    "RankNormal",
    "RobustZScore",
    "ZScore",
    "alarm_threshold",
    "log_evidence",
    "weighted_quantile",
]


def log_evidence(
    z: np.ndarray, n: float, gamma: float = 1.0, max_evidence: float | None = None
) -> np.ndarray:
    """Log pseudo-count ``log(n * gamma) + z``, shape (n,).

    Parameters
    ----------
    z : ndarray, shape (n,)
        Normalised log-density; ``-inf`` where the density is zero.
    n : float
        Number of training samples (sum of their weights), > 0.
    gamma : float, default=1.0
        Scale of the evidence, > 0.
    max_evidence : float, optional
        Largest pseudo-count, > 0. Points above it tie.

    References
    ----------
    Carlotti, Gligić, Farahi, Definition 3.1 and the appendix on underflow.
    """
    for name, number in (("n", n), ("gamma", gamma)):
        if not (np.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be finite and > 0, got {number!r}")
    value = np.log(n) + np.log(gamma) + np.asarray(z, dtype=np.float64)
    return np.asarray(value if max_evidence is None else np.minimum(value, np.log(max_evidence)))


def weighted_quantile(values: np.ndarray, q: float, weights: np.ndarray | None = None) -> float:
    """Smallest element with at least the share `q` in (0, 1] of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    w = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)[order]
    cumulative = np.cumsum(w)
    # A hair below: q * total must not jump to the next element by the last bit of the sum.
    position = np.searchsorted(cumulative, q * cumulative[-1] * (1 - 1e-12), side="left")
    return float(np.asarray(values)[order][min(position, len(values) - 1)])


def alarm_threshold(
    log_density: np.ndarray, rate: float, weights: np.ndarray | None = None
) -> float:
    """Log-density below which an input is flagged, so that at most `rate` of ID inputs are.

    With N held-out ID scores the threshold is the ``floor(rate * (N + 1))``-th smallest, and
    ``-inf`` (nothing is flagged) if that is zero: a new exchangeable ID score lies strictly below
    it with probability at most `rate`.

    Parameters
    ----------
    log_density : ndarray, shape (n,)
        Log-densities of ID inputs that the density was not fitted on.
    rate : float
        False-alarm rate in (0, 1).
    weights : ndarray, shape (n,), optional
        How many inputs each score stands for.

    References
    ----------
    Vovk, Gammerman, Shafer, "Algorithmic Learning in a Random World" (2005), on split conformal
    prediction.
    """
    total = float(len(log_density) if weights is None else np.sum(weights))
    rank = np.floor(rate * (total + 1) * (1 + 1e-12))
    return weighted_quantile(log_density, rank / total, weights) if rank >= 1 else -np.inf


class _Normalizer(BaseEstimator):
    """What the normalisers share: input checks and the source of the statistics.

    Attributes
    ----------
    source_ : str
        Which data the statistics came from.
    n_ : float
        How many log-densities (sum of weights) they came from.
    """

    def fit(
        self,
        log_density: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        source: str = "the log-densities given to fit",
    ) -> _Normalizer:
        """Learn the statistics from ID log-densities (n,), with optional weights (n,) >= 0."""
        scores = np.asarray(log_density, dtype=np.float64)
        if scores.ndim != 1 or not len(scores):
            raise ValueError(f"log_density must be a non-empty 1-d array, got shape {scores.shape}")
        if not np.isfinite(scores).all():
            raise ValueError(
                f"log_density must be finite to fit {type(self).__name__}, got "
                f"{scores[~np.isfinite(scores)][0]} from {source}; "
                "use a density with unbounded support"
            )
        checked = check_weights(sample_weight, scores)
        weights = np.ones(len(scores)) if checked is None else checked
        scores, weights = scores[weights > 0], weights[weights > 0]
        self._learn(scores, weights)
        self.n_ = float(weights.sum())
        self.source_ = source
        return self

    def transform(self, log_density: np.ndarray) -> np.ndarray:
        """Normalised log-density z, shape (n,); strictly increasing in `log_density`."""
        check_is_fitted(self, "source_")
        return self._apply(np.asarray(log_density, dtype=np.float64))

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _learn")

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        raise TypeError(f"{type(self).__name__} must define _apply")

    def _affine(self, scores: np.ndarray) -> np.ndarray:
        return (scores - self.location_) / self.scale_

    def _set_affine(self, location: float, scale: float, measure: str) -> None:
        if not scale > 1e-12 * max(1.0, abs(location)):
            raise ValueError(
                f"log_density must vary to fit {type(self).__name__}, got {measure} {scale:.3g}; "
                "the density gives every input the same score: use normalizer=Identity()"
            )
        self.location_, self.scale_ = float(location), float(scale)


class ZScore(_Normalizer):
    """(log-density - mean) / standard deviation, the paper's normaliser.

    Attributes
    ----------
    location_, scale_ : float
        Mean and population standard deviation (ddof 0), in nats.

    References
    ----------
    Carlotti, Gligić, Farahi, appendix on underflow.

    Examples
    --------
    >>> from dipedl.evidence import ZScore
    >>> ZScore().fit([-4.0, -2.0, 0.0]).transform([-2.0, -100.0]).round(2)
    array([  0.  , -60.01])
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        mean = np.average(scores, weights=weights)
        variance = np.average((scores - mean) ** 2, weights=weights)
        self._set_affine(mean, np.sqrt(variance), "a standard deviation of")

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return self._affine(scores)


class RobustZScore(_Normalizer):
    """(log-density - median) / (1.4826 MAD): a few gross outliers among the ID data do not move it.

    Attributes
    ----------
    location_, scale_ : float
        Median, and median absolute deviation scaled to a normal's standard deviation, in nats.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        median = weighted_quantile(scores, 0.5, weights)
        mad = weighted_quantile(np.abs(scores - median), 0.5, weights)
        self._set_affine(median, mad / special.ndtri(0.75), "a median absolute deviation of")

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return self._affine(scores)


class RankNormal(_Normalizer):
    """Standard-normal score of the rank among the ID log-densities.

    Linear between the ID log-densities and, with the slope of the standard deviation, beyond them:
    z never ties.

    Attributes
    ----------
    knots_, normal_scores_ : ndarray, shape (m,)
        Distinct ID log-densities and their normal scores.
    scale_ : float
        Standard deviation of the ID log-densities, for the tails.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        self.scale_ = ZScore().fit(scores, weights).scale_
        # Knots closer than this would have a slope that overflows.
        step = 1e-9 * self.scale_
        self.knots_, inverse = np.unique(np.round(scores / step) * step, return_inverse=True)
        mass = np.bincount(inverse, weights=weights)
        self.normal_scores_ = special.ndtri((np.cumsum(mass) - mass / 2) / mass.sum())

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        low, high = self.knots_[[0, -1]]
        inside = np.interp(scores, self.knots_, self.normal_scores_)
        # Each clipped on its own side, so that an infinite score meets no inf - inf.
        below = (np.minimum(scores, low) - low) / self.scale_
        return np.asarray(inside + below + (np.maximum(scores, high) - high) / self.scale_)


class Identity(_Normalizer):
    """The raw log-density: evidence is ``n * gamma * p(x)``, Definition 3.1 to the letter."""

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        pass

    def _apply(self, scores: np.ndarray) -> np.ndarray:
        return scores
