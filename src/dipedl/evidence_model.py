"""The evidence side of the method, fitted as one: features, density, normaliser, threshold."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ._parts import (
    feature_array,
    fitted_density,
    fitted_features,
    for_folds,
    is_frozen,
    log_density,
    seed,
)
from ._validation import rate_in_range
from .crossfit import IN_SAMPLE, splits
from .evidence import ZScore, alarm_threshold

__all__ = ["EvidenceModel"]


class EvidenceModel(BaseEstimator):
    """Log-density of the features of an input, its normalised form z, and a threshold for alarms.

    `DIPClassifier` and `OODDetector` are built on it. Statistics of the normaliser and the
    threshold come from log-densities of rows that the density was not fitted on (see `cv`), unless
    asked otherwise.

    Parameters
    ----------
    density, features, normalizer, cv, false_alarm_rate, random_state
        See `dipedl.DIPClassifier`.

    Attributes
    ----------
    density_, features_, normalizer_
        Fitted on all rows (the normaliser: on `calibration_scores_`).
    calibration_scores_ : ndarray, shape (m,)
        Sorted held-out log-densities, in nats.
    calibration_weights_ : ndarray, shape (m,) or None
        Their sample weights.
    offset_ : float
        Log-density below which an input is flagged.
    n_ : float
        Number of fitted samples (sum of their weights).
    """

    def __init__(
        self,
        density: Any = None,
        features: Any = None,
        normalizer: Any = None,
        cv: Any = 5,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.density = density
        self.features = features
        self.normalizer = normalizer
        self.cv = cv
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def fit(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        """Fit on inputs X (n, d) with labels y (n,), and weights (n,) >= 0 if any."""
        rate_in_range(self.false_alarm_rate)
        kept = None
        if sample_weight is not None and (sample_weight == 0).any():
            # A row of weight zero is absent.
            kept = np.flatnonzero(sample_weight > 0)
            X, y, sample_weight = _safe_indexing(X, kept), y[kept], sample_weight[kept]
        self.features_ = self._fit_features(X, y, sample_weight)
        Z = self.transform(X)
        self.density_ = fitted_density(self.density, Z, y, sample_weight, self.random_state)
        self.n_ = float(len(y) if sample_weight is None else sample_weight.sum())
        return self._calibrated(*self._calibration(X, Z, y, sample_weight, kept))

    def calibrate(self, X: Any, sample_weight: np.ndarray | None = None) -> Self:
        """Take the statistics and the threshold from ID inputs X (m, d) nothing was fitted on."""
        scores = self.score_samples(X)
        return self._calibrated(scores, sample_weight, f"{len(scores)} held-out inputs")

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of the features of X (n, d) in nats, shape (n,)."""
        check_is_fitted(self, "density_")
        return log_density(self.density_, self.transform(X))

    def transform(self, X: Any) -> np.ndarray:
        """Features of X (n, d) that the density sees, shape (n, p)."""
        return feature_array(self.features_, X)

    def normalize(self, scores: np.ndarray) -> np.ndarray:
        """Normalised log-density z, shape (n,)."""
        check_is_fitted(self, "normalizer_")
        return np.asarray(self.normalizer_.transform(scores), dtype=np.float64)

    def threshold(self, false_alarm_rate: float | None = None) -> float:
        """Log-density below which at most a share `false_alarm_rate` of ID inputs lies."""
        check_is_fitted(self, "offset_")
        if false_alarm_rate is None:
            return float(self.offset_)
        rate_in_range(false_alarm_rate)
        return _threshold(self.calibration_scores_, false_alarm_rate, self.calibration_weights_)

    def _calibrated(self, scores: np.ndarray, weights: np.ndarray | None, source: str) -> Self:
        if weights is not None:
            scores, weights = scores[weights > 0], weights[weights > 0]
        order = np.argsort(scores, kind="stable")
        scores, weights = scores[order], None if weights is None else weights[order]
        normalizer = ZScore() if self.normalizer is None else self._cloned_normalizer()
        normalizer.fit(scores, weights, source=source)
        self.offset_ = _threshold(scores, self.false_alarm_rate, weights)
        self.normalizer_ = normalizer
        self.calibration_scores_, self.calibration_weights_ = scores, weights
        return self

    def _cloned_normalizer(self) -> Any:
        if not hasattr(self.normalizer, "fit") or not hasattr(self.normalizer, "transform"):
            raise TypeError(
                "normalizer must have methods fit and transform, such as dipedl.evidence.ZScore(), "
                f"got {self.normalizer!r}"
            )
        return clone(self.normalizer, safe=False)

    def _calibration(
        self,
        X: Any,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None,
        kept: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Log-densities to take statistics from, their weights, and where they came from."""
        if isinstance(self.cv, str) and self.cv == IN_SAMPLE:
            source = f"the {len(y)} inputs the density was fitted on (in-sample)"
            return log_density(self.density_, Z), w, source
        if is_frozen(self.density):
            source = f"the {len(y)} inputs given to fit, by a density that was fitted before"
            return log_density(self.density_, Z), w, source
        scores: list[np.ndarray] = []
        rows: list[np.ndarray] = []
        settled = for_folds(self.density_, self.density)
        classes = len(np.unique(y))
        pairs, how = splits(self.cv, X, y, kept, seed(self.random_state))
        for train, held in pairs:
            w_train = None if w is None else w[train]
            Z_train, Z_held = self._fold_features(X, Z, y, w_train, train, held)
            whole = len(np.unique(y[train])) == classes
            template = settled if whole else self.density
            density = fitted_density(template, Z_train, y[train], w_train, self.random_state)
            scores.append(log_density(density, Z_held))
            rows.append(held)
        held_out = np.concatenate(rows)
        weights = None if w is None else w[held_out]
        return np.concatenate(scores), weights, f"{how} of {len(held_out)} inputs"

    def _fold_features(
        self,
        X: Any,
        Z: np.ndarray,
        y: np.ndarray,
        w_train: np.ndarray | None,
        train: np.ndarray,
        held: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features of both parts of a fold, by a transformer that learned from the first only."""
        if self.features_ is None or isinstance(self.features_, FrozenEstimator):
            return Z[train], Z[held]
        seen, unseen = _safe_indexing(X, train), _safe_indexing(X, held)
        features = self._fit_features(seen, y[train], w_train)
        return feature_array(features, seen), feature_array(features, unseen)

    def _fit_features(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> Any:
        # A density that was fitted before knows its own features.
        given = self.features is None and is_frozen(self.density)
        features = "passthrough" if given else self.features
        return fitted_features(features, X, y, w, self.random_state)


def _threshold(scores: np.ndarray, rate: float, weights: np.ndarray | None) -> float:
    """The alarm threshold, with a warning if it can never be crossed."""
    threshold = alarm_threshold(scores, rate, weights)
    if threshold == -np.inf and np.isfinite(scores).all():
        n = len(scores) if weights is None else float(weights.sum())
        warnings.warn(
            f"false_alarm_rate={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} held-out "
            f"inputs, got {n:g}: predict_ood will flag nothing; hold out more (sample_weight "
            "counts rows: its sum is their number) or ask for a higher rate",
            UserWarning,
            stacklevel=4,
        )
    return threshold
