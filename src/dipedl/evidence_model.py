"""The evidence side of the method, fitted as one: features, density, normaliser, threshold."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ._validation import rate_in_range
from .calibration.collect import Asked, collected, enough, has_proba, is_staged, scored
from .calibration.crossfit import AUTO, IN_SAMPLE, splits
from .calibration.held_out import Calibration
from .calibration.temperature import Temperature
from .evidence import CautionBudget, alarm_threshold, check_increasing
from .fitting.classifier_view import ClassifierView
from .fitting.parts import (
    as_density,
    check_seed,
    feature_array,
    fitted_density,
    fitted_features,
    for_folds,
    is_frozen,
    seed,
)

__all__ = ["EvidenceModel"]


class EvidenceModel(BaseEstimator):
    """Score of the features of an input, its normalised form z, and a threshold for alarms.

    `DIPClassifier` and `OODDetector` are built on it. Everything that is learned about scores comes
    from rows that neither the density nor the classifier was fitted on (see `cv`), unless asked
    otherwise.

    Parameters
    ----------
    density, features, normalizer, calibrator, cv, false_alarm_rate, random_state
        See `dipedl.DIPClassifier`.

    Attributes
    ----------
    density_, features_, normalizer_, calibrator_
        Fitted; the last two on `calibration_`. The calibrator is None without a classifier.
    calibration_ : Calibration
        Held-out answers, by ascending score.
    offset_ : float
        Score below which an input is flagged.
    n_ : float
        Number of fitted samples (sum of their weights).
    """

    def __init__(
        self,
        density: Any = None,
        features: Any = None,
        normalizer: Any = None,
        calibrator: Any = None,
        cv: Any = AUTO,
        false_alarm_rate: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.density = density
        self.features = features
        self.normalizer = normalizer
        self.calibrator = calibrator
        self.cv = cv
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        classifier: ClassifierView | None = None,
        strength: dict[str, Any] | None = None,
        calibration: tuple[Any, np.ndarray | None] | None = None,
    ) -> Self:
        """Fit.

        Parameters
        ----------
        X, y : array-like, shape (n, d), and ndarray, shape (n,)
            Inputs and labels.
        sample_weight : ndarray, shape (n,), optional
            Weights >= 0; a row of weight 0 is absent.
        classifier : ClassifierView, optional
            A classifier of these rows.
        strength : dict, optional
            "prior" (k,) and "gamma", for normalisers that ask for them.
        calibration : tuple of array-like (m, d) and ndarray (m,) or None, optional
            Held-out inputs and their labels; nothing is cross-fitted then.
        """
        rate_in_range(self.false_alarm_rate)
        check_seed(self.random_state)
        kept = None
        if sample_weight is not None and (sample_weight == 0).any():
            kept = np.flatnonzero(sample_weight > 0)
            X, y, sample_weight = _safe_indexing(X, kept), y[kept], sample_weight[kept]
        self.strength_ = {} if strength is None else strength
        self.features_ = self._fit_features(X, y, sample_weight)
        Z = self.transform(X)
        self.density_ = self._fit_density(self.density, Z, y, sample_weight, classifier, X)
        self.n_ = float(len(y) if sample_weight is None else sample_weight.sum())
        if calibration is not None:
            return self.calibrate(*calibration, classifier=classifier)
        labels = y if classifier is None else classifier.indices(y)
        whole = Asked(self.density_, self.features_, classifier, X, labels, sample_weight, Z)
        asked, source = self._folds(whole, y, kept)
        return self.learn(self._collected(asked, source))

    def calibrate(
        self,
        X: Any,
        y: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        *,
        classifier: ClassifierView | None = None,
    ) -> Self:
        """Learn anew from ID inputs X (m, d) nothing was fitted on, with labels y (m,) if known."""
        labels = classifier.indices(y) if classifier is not None and y is not None else y
        Z = self.transform(X)
        asked = Asked(self.density_, self.features_, classifier, X, labels, sample_weight, Z)
        return self.learn(self._collected([asked], f"{X.shape[0]} held-out inputs"))

    def learn(
        self,
        held: Calibration,
        *,
        n: float | None = None,
        strength: dict[str, Any] | None = None,
    ) -> Self:
        """Learn calibrator, normaliser and threshold from held-out answers.

        Parameters
        ----------
        held : Calibration
            Scores of held-out rows, with what the classifier says of them if there is one.
        n : float, optional
            Rows that made the density; default: those of `fit`.
        strength : dict, optional
            As of `fit`; default: what was given there.
        """
        self.n_ = self.n_ if n is None else n
        self.strength_ = self.strength_ if strength is None else strength
        held = held.sorted()
        self.calibrator_ = self._fitted_calibrator(held)
        if held.proba is not None:
            held = replace(held, proba=self.calibrated(held.proba))
        self.normalizer_ = self._fitted_normalizer(held)
        self.calibration_ = held
        self.offset_ = _threshold(held, self.false_alarm_rate)
        return self

    def score_samples(self, X: Any, proba: np.ndarray | None = None) -> np.ndarray:
        """Score of X (n, d), shape (n,); `proba` (n, k) for densities that use the classifier."""
        return self.score_features(self.transform(X), proba)

    def score_features(self, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Score of inputs by their features Z (n, p), shape (n,)."""
        check_is_fitted(self, "density_")
        return scored(self.density_, Z, proba if has_proba(self.density_) else None)

    def transform(self, X: Any) -> np.ndarray:
        """Features of X (n, d) that the density sees, shape (n, p)."""
        return feature_array(self.features_, X)

    def normalize(self, scores: np.ndarray) -> np.ndarray:
        """Normalised score z, shape (n,)."""
        check_is_fitted(self, "normalizer_")
        return np.asarray(self.normalizer_.transform(scores), dtype=np.float64)

    def calibrated(self, proba: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) after the calibrator."""
        return proba if self.calibrator_ is None else np.asarray(self.calibrator_.transform(proba))

    def threshold(self, alpha: float | None = None) -> float:
        """Score below which at most a share `alpha` of ID inputs lies."""
        check_is_fitted(self, "offset_")
        if alpha is None:
            return float(self.offset_)
        rate_in_range(alpha, "alpha")
        return _threshold(self.calibration_, alpha, "alpha")

    def _collected(self, asked: list[Asked], source: str) -> Calibration:
        """What the models say of the rows that they are asked about."""
        return collected(asked, self.density_, source, seed(self.random_state))

    def _fitted_calibrator(self, held: Calibration) -> Any:
        if held.proba is None or held.labels is None:
            # Without labels there is nothing to learn it from: the one that was learned stays.
            return getattr(self, "calibrator_", None)
        if isinstance(self.calibrator, str) and self.calibrator == "passthrough":
            return None
        if self.calibrator is not None and not hasattr(self.calibrator, "transform"):
            raise TypeError(
                "calibrator must be None, 'passthrough' or an object with fit and transform, such "
                f"as Temperature(), got {self.calibrator!r}"
            )
        calibrator = Temperature() if self.calibrator is None else clone(self.calibrator)
        extra: dict[str, Any] = {"n": self.n_} if has_fit_parameter(calibrator, "n") else {}
        return calibrator.fit(held.proba, held.labels, held.weights, **extra)

    def _fitted_normalizer(self, held: Calibration) -> Any:
        normalizer = CautionBudget() if self.normalizer is None else self._cloned_normalizer()
        unlabelled = held.labels is None and held.proba is not None
        if unlabelled and has_fit_parameter(normalizer, "y"):
            raise ValueError(
                f"y is needed: normalizer {type(normalizer).__name__} learns from labels, and "
                f"{held.source} have none; give calibrate(X, y), or fit with a normalizer that "
                "needs no labels, such as dipedl.evidence.QuantileEvidence()"
            )
        offered = {"proba": held.proba, "y": held.labels, "n": self.n_, **self.strength_}
        wanted = {k: v for k, v in offered.items() if has_fit_parameter(normalizer, k)}
        normalizer.fit(held.scores, held.weights, source=held.source, **wanted)
        check_increasing(normalizer, held.scores)
        return normalizer

    def _cloned_normalizer(self) -> Any:
        if not hasattr(self.normalizer, "fit") or not hasattr(self.normalizer, "transform"):
            raise TypeError(
                "normalizer must have methods fit and transform, such as dipedl.evidence.ZScore(), "
                f"got {self.normalizer!r}"
            )
        return clone(self.normalizer, safe=False)

    def _folds(
        self, whole: Asked, y: np.ndarray, kept: np.ndarray | None
    ) -> tuple[list[Asked], str]:
        """Held-out rows with the models to ask about them, and where they came from."""
        if isinstance(self.cv, str) and self.cv == IN_SAMPLE:
            return [whole], f"the {len(y)} inputs the density was fitted on (in-sample)"
        if is_frozen(self.density):
            return [whole], f"the {len(y)} inputs given to fit, by a density that was fitted before"
        pairs: Iterable[tuple[np.ndarray, np.ndarray]]
        pairs, how = splits(self.cv, whole.X, y, kept, seed(self.random_state))
        if isinstance(self.cv, str):
            pairs = enough(pairs)
        asked = [self._fold(whole, y, train, held) for train, held in pairs]
        return asked, f"{how} of {sum(len(a.Z) for a in asked)} inputs"

    def _fold(self, whole: Asked, y: np.ndarray, train: np.ndarray, held: np.ndarray) -> Asked:
        """One fold: models fitted on `train`, to be asked about `held`."""
        X, labels, w = whole.X, np.asarray(whole.y), whole.w
        w_train = None if w is None else w[train]
        seen, unseen = _safe_indexing(X, train), _safe_indexing(X, held)
        features, Z_train, Z_held = self.features_, whole.Z[train], whole.Z[held]
        if features is not None and not isinstance(features, FrozenEstimator):
            features = self._fit_features(seen, y[train], w_train)
            Z_train, Z_held = feature_array(features, seen), feature_array(features, unseen)
        complete = len(np.unique(y[train])) == len(np.unique(y))
        template = for_folds(self.density_, self.density) if complete else self.density
        view = None if whole.view is None else whole.view.refitted(seen, y[train], w_train)
        return Asked(
            self._fit_density(template, Z_train, y[train], w_train, view, seen),
            features,
            view,
            unseen,
            labels[held],
            None if w is None else w[held],
            Z_held,
        )

    def _fit_density(
        self,
        density: Any,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None,
        view: ClassifierView | None,
        X: Any,
    ) -> Any:
        model = as_density(density, self.random_state)
        if is_staged(model):
            return model.fit_parts(Z, y, w)
        proba = view.proba(X) if view is not None and has_proba(model) else None
        return fitted_density(density, Z, y, w, self.random_state, proba)

    def _fit_features(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> Any:
        # A density that was fitted before knows its own features.
        given = self.features is None and is_frozen(self.density)
        features = "passthrough" if given else self.features
        return fitted_features(features, X, y, w, self.random_state)


def _threshold(held: Calibration, rate: float, name: str = "false_alarm_rate") -> float:
    """The alarm threshold, with a warning if it can never be crossed."""
    threshold = alarm_threshold(held.scores, rate, held.weights)
    if threshold == -np.inf and np.isfinite(held.scores).all():
        warnings.warn(
            f"{name}={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} held-out "
            f"inputs, got {held.total:g}: predict_ood will flag nothing; hold out more "
            "(sample_weight counts rows: its sum is their number) or ask for a higher rate",
            UserWarning,
            stacklevel=5,
        )
    return threshold
