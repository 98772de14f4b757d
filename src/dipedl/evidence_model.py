"""From inputs to log-evidence, fitted as one: features, density, normaliser, threshold."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ._fold import Fold, held_out_by
from .calibration._copies import warn_of_copies
from .calibration._seen_rows import share_seen, smallest
from .calibration._sharpening import calibrated_in_share, sharpening_range
from .calibration.crossfit import AUTO, IN_SAMPLE, Pairs, enough, row_hash, source_of, splits
from .calibration.held_out import HeldOut, Origin
from .calibration.temperature import Temperature
from .density._fitting import clone_with_selected, fit_density, is_frozen, log_density, takes_proba
from .density.combined._default import unfitted_density
from .density.combined._ensemble import DensityEnsemble
from .evidence import log_evidence
from .evidence._learned import fitted_calibrator, fitted_normalizer, threshold
from .features.scaling import warn_of_gross_outliers
from .features.transformer import (
    compute_features,
    fit_feature_transformer,
    refit_feature_transformer,
)
from .fitting.classifiers import FittedClassifier
from .fitting.progress import Stopwatch
from .fitting.refusals import explain_fold_error
from .fitting.threads import one_blas_thread
from .inputs import check_positive_number, check_rate, input_columns, require_fitted
from .maths.evidence import inverse_temperature, sharpening_share
from .maths.seeds import check_seed, seed

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
    gamma, max_evidence, n_jobs, verbose
        See `dipedl.DIPClassifier`.

    Attributes
    ----------
    density_, features_, normalizer_, calibrator_
        Fitted; the last two on `held_out_`. The calibrator is None without a classifier.
    columns_ : InputColumns or None
        What is usual in the columns of the inputs, in their units.
    held_out_ : HeldOut
        Predictions on held-out rows, by ascending score.
    offset_ : float
        Score below which an input is flagged.
    sharpening_ : (float, float)
        Scores from which a calibrator that sharpens begins to, and from which it does so in full:
        `offset_` and the 95 % quantile of held-out scores.
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
        n_jobs: int | None = None,
        verbose: int = 0,
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
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: np.ndarray, *, estimator: Any = None) -> Self:
        """Fit features, density and threshold on X (n, d) with labels y (n,), no classifier.

        `estimator` as for `fit_features`.
        """
        Z = self.fit_features(X, y, estimator=estimator)
        return self.fit_density(Z, y, X=X).cross_fit(Z, y, X=X)

    def fit_features(
        self, X: Any, y: np.ndarray, w: np.ndarray | None = None, *, estimator: Any = None
    ) -> np.ndarray:
        """Fit the features on X (n, d), labels and weights; features of X, shape (n, p).

        Without `features`, the preprocessing of the unfitted or frozen `estimator` is a part.
        """
        check_rate(self.false_alarm_rate)
        check_positive_number("gamma", self.gamma)
        if self.max_evidence is not None:
            check_positive_number("max_evidence", self.max_evidence)
        check_seed(self.random_state)
        self.columns_ = input_columns(X)
        self.features_ = fit_feature_transformer(
            self._given_features(), X, y, w, self.random_state, estimator
        )
        Z = self.transform(X)
        self.row_hashes_ = smallest(row_hash(X))
        if self._given_features() is None:
            warn_of_gross_outliers(Z, w, X, self.features_)
        return Z

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
        watch = Stopwatch(self.verbose)
        with one_blas_thread(Z.shape[1]):
            self.density_ = self._fitted_density(self.density, Z, y, w, classifier, X, watch)
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
        pairs: Pairs | None = None,
    ) -> Self:
        """Learn from rows that are held out of the inputs that were fitted, see `cv`.

        Parameters
        ----------
        Z, y, w, X, classifier
            As given to `fit_density`.
        pairs : list of (train, held-out) ndarray of int, optional
            What `cv` gives for these rows, where it has been asked before.
        """
        labels = y if classifier is None else classifier.indices(y)
        whole = Fold(self.density_, self.features_, classifier, X, labels, w, Z)
        folds, source, origin = self._folds(whole, y, pairs)
        with one_blas_thread(Z.shape[1]):
            held = held_out_by(folds, whole, source, origin, seed(self.random_state))
        return self.learn(held)

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
        seen = share_seen(row_hash(X), getattr(self, "row_hashes_", None))
        origin: Origin = "given twice" if seen else "given"
        kind = f"inputs, {seen:.0%} of them given to fit too" if seen else "held-out inputs"
        seeds = seed(self.random_state)
        with one_blas_thread(Z.shape[1]):
            held = held_out_by([fold], fold, f"{X.shape[0]} {kind}", origin, seeds)
        return self.learn(held)

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
        self.offset_ = threshold(held, self.false_alarm_rate)
        self.sharpening_ = sharpening_range(held, self.offset_)
        # Without labels the calibrator of an earlier fit stays.
        self.calibrator_ = (
            fitted_calibrator(self.calibrator, held, self.n_)
            if held.labelled
            else getattr(self, "calibrator_", None)
        )
        if held.proba is not None:
            held = replace(held, proba=self.calibrated(held.proba, held.scores))
        self.normalizer_ = fitted_normalizer(
            self.normalizer, held, n=self.n_, gamma=self.gamma, prior=self.prior
        )
        self.held_out_ = held
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Features of X (n, d) that the density sees, shape (n, p)."""
        return compute_features(self.features_, X)

    def score_features(self, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Score of inputs by their features Z (n, p), shape (n,).

        `proba` (n, k), before the calibrator, is for densities that use the classifier.
        """
        require_fitted(self, "density_")
        return log_density(self.density_, Z, proba)

    def calibrated(self, proba: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) after the calibrator, for inputs of `scores` (n,).

        Where the calibrator makes them surer it does so in the share that the score allows: not at
        all up to the alarm threshold.
        """
        if self.calibrator_ is None:
            return proba
        share = sharpening_share(scores, *self.sharpening_)
        return calibrated_in_share(self.calibrator_, proba, share)

    def sharpened(self, P: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """`calibrated` class probabilities P (n, k) with a sharpening in full on every input.

        Those of ``classifier_proba`` where the calibrator is a temperature; of any other, P itself.
        """
        if type(self.calibrator_) is not Temperature or self.calibrator_.temperature_ >= 1:
            return P
        temperature = self.calibrator_.temperature_
        share = sharpening_share(scores, *self.sharpening_)
        exponent = 1 / (temperature * inverse_temperature(temperature, share))
        log_p = np.log(np.maximum(P, np.finfo(np.float64).tiny))
        return np.asarray(special.softmax(exponent[:, None] * log_p, axis=1))

    def log_evidence(self, scores: np.ndarray) -> np.ndarray:
        """``log(n gamma) + z`` of scores (n,), in nats, shape (n,)."""
        require_fitted(self, "normalizer_")
        z = np.asarray(self.normalizer_.transform(scores), dtype=np.float64)
        return log_evidence(z, self.n_, self.gamma, self.max_evidence)

    def threshold(self, alpha: float | None = None) -> float:
        """Score below which at most a share `alpha` of ID inputs lies."""
        check_is_fitted(self, "offset_")
        if alpha is None:
            return float(self.offset_)
        check_rate(alpha, "alpha")
        return threshold(self.held_out_, alpha, "alpha")

    def _folds(
        self, whole: Fold, y: np.ndarray, pairs: Pairs | None
    ) -> tuple[Iterable[Fold], str, Origin]:
        """Models with the rows that they have not seen, and where these came from.

        Each is fitted when it is asked for: two of them never need memory at once.
        """
        if isinstance(self.cv, str) and self.cv == IN_SAMPLE:
            source = f"the {len(y)} inputs the density was fitted on (in-sample)"
            return [whole], source, "in-sample"
        if is_frozen(self.density):
            source = f"the {len(y)} inputs given to fit, by a density that was fitted before"
            return [whole], source, "frozen density"
        dealt = isinstance(self.cv, str | int)
        together = warn_of_copies(whole.X, whole.Z, dealt=dealt)
        if pairs is None:
            number = seed(self.random_state)
            given, how = splits(self.cv, whole.X, y, None, number, together=together)
            pairs = enough(given) if isinstance(self.cv, str) else list(given)
        else:
            how = source_of(self.cv)
        selected = clone_with_selected(self.density_, self.density)
        # With seeds drawn beforehand they are the same in one process and in many.
        seeded = [self._seeded() for _ in pairs]
        steps = [(part, train, held) for part, (train, held) in zip(seeded, pairs, strict=True)]
        size = sum(len(held) for _, held in pairs)
        return self._fitted_folds(steps, whole, y, selected), f"{how} of {size} inputs", "left out"

    def _fitted_folds(
        self, steps: list[Any], whole: Fold, y: np.ndarray, selected: Any
    ) -> Iterable[Fold]:
        """One fold after the other, each freed once its rows are scored; or all in processes."""
        if self.n_jobs in (None, 1):
            return (part._fold(whole, y, train, held, selected) for part, train, held in steps)
        fits = (delayed(part._fold)(whole, y, train, held, selected) for part, train, held in steps)
        folds: Iterable[Fold] = Parallel(n_jobs=self.n_jobs)(fits)
        return folds

    def _seeded(self) -> Self:
        """A copy with a seed drawn, if need be."""
        part = copy(self)
        part.random_state = None if self.random_state is None else seed(self.random_state)
        return part

    def _fold(
        self, whole: Fold, y: np.ndarray, train: np.ndarray, held: np.ndarray, selected: Any
    ) -> Fold:
        """Models fitted on the rows `train`, with the rows `held`."""
        with explain_fold_error(y[train], len(y)):
            return self._fitted_fold(whole, y, train, held, selected)

    def _fitted_fold(
        self, whole: Fold, y: np.ndarray, train: np.ndarray, held: np.ndarray, selected: Any
    ) -> Fold:
        watch = Stopwatch(self.verbose)
        labels = np.asarray(whole.y)
        w_train, w_held = (None if whole.w is None else whole.w[rows] for rows in (train, held))
        X, X_held = _safe_indexing(whole.X, train), _safe_indexing(whole.X, held)
        features, Z, Z_held = self.features_, whole.Z[train], whole.Z[held]
        if features is not None and not isinstance(features, FrozenEstimator):
            given = self._given_features()
            features = refit_feature_transformer(
                features, given, X, y[train], w_train, self.random_state
            )
            Z, Z_held = compute_features(features, X), compute_features(features, X_held)
        classifier = whole.classifier
        if classifier is not None:
            classifier = classifier.refitted(X, y[train], w_train)
            watch.say(f"fold: classifier fitted on {len(train)} rows")
        # Settings that were selected on all classes fit a fold only if it has all classes.
        complete = len(np.unique(y[train])) == len(np.unique(y))
        template = selected if complete else self.density
        with one_blas_thread(Z.shape[1]):
            density = self._fitted_density(template, Z, y[train], w_train, classifier, X)
        watch.say(f"fold: density fitted, {len(held)} rows held out")
        return Fold(density, features, classifier, X_held, labels[held], w_held, Z_held, held)

    def _fitted_density(
        self,
        density: Any,
        Z: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None,
        classifier: FittedClassifier | None,
        X: Any,
        watch: Stopwatch | None = None,
    ) -> Any:
        model = unfitted_density(density, self.random_state)
        if isinstance(model, DensityEnsemble):
            # Its combiner is learned from the held-out rows of the folds.
            return model.fit_estimators(Z, y, w, watch)
        proba = None if classifier is None or not takes_proba(model) else classifier.proba(X)
        return fit_density(model, Z, y, w, proba)

    def _given_features(self) -> Any:
        # A density that was fitted before knows its own features.
        given = self.features is None and is_frozen(self.density)
        return "passthrough" if given else self.features
