"""From inputs to log-evidence, fitted as one: features, density, normaliser, threshold."""

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

from ._fold import Fold, held_out_by
from ._validation import rate_in_range
from .calibration.crossfit import AUTO, IN_SAMPLE, enough, splits
from .calibration.held_out import HeldOut
from .calibration.temperature import Temperature
from .density._fitting import clone_with_selected, fit_density, is_frozen, log_density, takes_proba
from .density.combined._default import unfitted_density
from .density.combined._ensemble import DensityEnsemble
from .evidence import CautionBudget, alarm_threshold, check_increasing, log_evidence
from .fitting.classifiers import FittedClassifier
from .fitting.features import feature_array, fitted_features
from .fitting.seeds import check_seed, seed

__all__ = ["EvidenceModel"]


class EvidenceModel(BaseEstimator):
    """Score of the features of an input, its log-evidence, and a threshold for alarms.

    `DIPClassifier` and `OODDetector` are built on it. Everything that is learned about scores comes
    from rows that neither the density nor the classifier was fitted on (see `cv`), unless asked
    otherwise.

    Parameters
    ----------
    density, features, normalizer, calibrator, cv, false_alarm_rate, random_state
        See `dipedl.DIPClassifier`.
    prior : ndarray, shape (k,), optional
        Concentration of the prior; None where there are no classes.
    gamma, max_evidence
        See `dipedl.DIPClassifier`.

    Attributes
    ----------
    density_, features_, normalizer_, calibrator_
        Fitted; the last two on `held_out_`. The calibrator is None without a classifier.
    held_out_ : HeldOut
        Predictions on held-out rows, by ascending score.
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
        prior: np.ndarray | None = None,
        gamma: float = 1.0,
        max_evidence: float | None = None,
    ) -> None:
        self.density = density
        self.features = features
        self.normalizer = normalizer
        self.calibrator = calibrator
        self.cv = cv
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state
        self.prior = prior
        self.gamma = gamma
        self.max_evidence = max_evidence

    def fit(self, X: Any, y: np.ndarray) -> Self:
        """Fit features, density and threshold on X (n, d) with labels y (n,), no classifier."""
        Z = self.fit_features(X, y)
        return self.fit_density(Z, y, X=X).cross_fit(Z, y, X=X)

    def fit_features(self, X: Any, y: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
        """Fit the features on X (n, d), labels and weights; features of X, shape (n, p)."""
        rate_in_range(self.false_alarm_rate)
        check_seed(self.random_state)
        self.features_ = self._fitted_features(X, y, w)
        return self.transform(X)

    def fit_density(
        self,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None = None,
        *,
        X: Any = None,
        classifier: FittedClassifier | None = None,
    ) -> Self:
        """Fit the density on features Z (n, p), labels and weights.

        A density that takes class probabilities gets those of the classifier for X (n, d).
        """
        self.density_ = self._fitted_density(self.density, Z, y, w, classifier, X)
        if isinstance(self.density_, DensityEnsemble):
            self.density_.find_blind(Z)
        self.n_ = float(len(y) if w is None else w.sum())
        return self

    def cross_fit(
        self,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None = None,
        *,
        X: Any,
        classifier: FittedClassifier | None = None,
        kept: np.ndarray | None = None,
    ) -> Self:
        """Learn from rows that are held out of the inputs that were fitted, see `cv`.

        Parameters
        ----------
        Z, y, w, X, classifier
            As given to `fit_density`.
        kept : ndarray of int, shape (n,), optional
            Which rows of the user's X these are: those that index pairs in `cv` speak of.
        """
        labels = y if classifier is None else classifier.indices(y)
        whole = Fold(self.density_, self.features_, classifier, X, labels, w, Z)
        folds, source = self._folds(whole, y, kept)
        return self.learn(held_out_by(folds, self.density_, source, seed(self.random_state)))

    def calibrate(
        self,
        X: Any,
        y: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        *,
        classifier: FittedClassifier | None = None,
    ) -> Self:
        """Learn from ID inputs X (m, d) nothing was fitted on, with labels y (m,) if known."""
        labels = classifier.indices(y) if classifier is not None and y is not None else y
        Z = self.transform(X)
        fold = Fold(self.density_, self.features_, classifier, X, labels, sample_weight, Z)
        source = f"{X.shape[0]} held-out inputs"
        return self.learn(held_out_by([fold], self.density_, source, seed(self.random_state)))

    def learn(self, held: HeldOut, *, n: float | None = None) -> Self:
        """Learn calibrator, normaliser and threshold from predictions on held-out rows.

        Parameters
        ----------
        held : HeldOut
            Scores of held-out rows, with the classifier's probabilities if there is one.
        n : float, optional
            Rows that made the density; default: those of `fit_density`.
        """
        self.n_ = self.n_ if n is None else n
        held = held.sorted()
        self.calibrator_ = self._fitted_calibrator(held)
        if held.proba is not None:
            held = replace(held, proba=self.calibrated(held.proba))
        self.normalizer_ = self._fitted_normalizer(held)
        self.held_out_ = held
        self.offset_ = _threshold(held, self.false_alarm_rate)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features of X (n, d) that the density sees, shape (n, p)."""
        return feature_array(self.features_, X)

    def score_features(self, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Score of inputs by their features Z (n, p), shape (n,).

        `proba` (n, k), before the calibrator, is for densities that use the classifier.
        """
        check_is_fitted(self, "density_")
        return log_density(self.density_, Z, proba)

    def calibrated(self, proba: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) after the calibrator."""
        return proba if self.calibrator_ is None else np.asarray(self.calibrator_.transform(proba))

    def log_evidence(self, scores: np.ndarray) -> np.ndarray:
        """``log(n gamma) + z`` of scores (n,), in nats, shape (n,)."""
        check_is_fitted(self, "normalizer_")
        z = np.asarray(self.normalizer_.transform(scores), dtype=np.float64)
        return log_evidence(z, self.n_, self.gamma, self.max_evidence)

    def threshold(self, alpha: float | None = None) -> float:
        """Score below which at most a share `alpha` of ID inputs lies."""
        check_is_fitted(self, "offset_")
        if alpha is None:
            return float(self.offset_)
        rate_in_range(alpha, "alpha")
        return _threshold(self.held_out_, alpha, "alpha")

    def _fitted_calibrator(self, held: HeldOut) -> Any:
        if held.proba is None or held.labels is None:
            # A calibrator is learned from labels; without labels the old one stays.
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

    def _fitted_normalizer(self, held: HeldOut) -> Any:
        normalizer = CautionBudget() if self.normalizer is None else self._cloned_normalizer()
        unlabelled = held.labels is None and held.proba is not None
        if unlabelled and has_fit_parameter(normalizer, "y"):
            raise ValueError(
                f"y is needed: normalizer {type(normalizer).__name__} learns from labels, and "
                f"{held.source} have none; give calibrate(X, y), or fit with a normalizer that "
                "needs no labels, such as dipedl.evidence.QuantileEvidence()"
            )
        offered = {"proba": held.proba, "y": held.labels, "n": self.n_, "gamma": self.gamma}
        if self.prior is not None:
            offered["prior"] = self.prior
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

    def _folds(self, whole: Fold, y: np.ndarray, kept: np.ndarray | None) -> tuple[list[Fold], str]:
        """Models with the rows that they have not seen, and where these rows came from."""
        if isinstance(self.cv, str) and self.cv == IN_SAMPLE:
            return [whole], f"the {len(y)} inputs the density was fitted on (in-sample)"
        if is_frozen(self.density):
            return [whole], f"the {len(y)} inputs given to fit, by a density that was fitted before"
        pairs: Iterable[tuple[np.ndarray, np.ndarray]]
        pairs, how = splits(self.cv, whole.X, y, kept, seed(self.random_state))
        if isinstance(self.cv, str):
            pairs = enough(pairs)
        selected = clone_with_selected(self.density_, self.density)
        folds = [self._fold(whole, y, train, held, selected) for train, held in pairs]
        return folds, f"{how} of {sum(len(fold.Z) for fold in folds)} inputs"

    def _fold(
        self, whole: Fold, y: np.ndarray, train: np.ndarray, held: np.ndarray, selected: Any
    ) -> Fold:
        """Models fitted on the rows `train`, with the rows `held`."""
        labels, w = np.asarray(whole.y), whole.w
        w_train, w_held = (None, None) if w is None else (w[train], w[held])
        X, X_held = _safe_indexing(whole.X, train), _safe_indexing(whole.X, held)
        features, Z, Z_held = self.features_, whole.Z[train], whole.Z[held]
        if features is not None and not isinstance(features, FrozenEstimator):
            features = self._fitted_features(X, y[train], w_train)
            Z, Z_held = feature_array(features, X), feature_array(features, X_held)
        classifier = whole.classifier
        if classifier is not None:
            classifier = classifier.refitted(X, y[train], w_train)
        # Settings that were selected on all classes fit a fold only if it has all classes.
        complete = len(np.unique(y[train])) == len(np.unique(y))
        template = selected if complete else self.density
        density = self._fitted_density(template, Z, y[train], w_train, classifier, X)
        return Fold(density, features, classifier, X_held, labels[held], w_held, Z_held)

    def _fitted_density(
        self,
        density: Any,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None,
        classifier: FittedClassifier | None,
        X: Any,
    ) -> Any:
        model = unfitted_density(density, self.random_state)
        if isinstance(model, DensityEnsemble):
            # Its combiner is learned from the held-out rows of the folds.
            return model.fit_estimators(Z, y, w)
        proba = None if classifier is None or not takes_proba(model) else classifier.proba(X)
        return fit_density(model, Z, y, w, proba)

    def _fitted_features(self, X: Any, y: np.ndarray, w: np.ndarray | None) -> Any:
        # A density that was fitted before knows its own features.
        given = self.features is None and is_frozen(self.density)
        features = "passthrough" if given else self.features
        return fitted_features(features, X, y, w, self.random_state)


def _threshold(held: HeldOut, rate: float, name: str = "false_alarm_rate") -> float:
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
