"""From inputs to log-evidence, fitted as one: features, density, normaliser, threshold."""

from __future__ import annotations

import warnings
from bisect import bisect_right
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from .calibration.crossfit import AUTO, Pairs, check_folds, row_hash, splitter_pairs
from .calibration.jackknife import Jackknife
from .calibration.spread import Spread
from .calibration.temperature import (
    Temperature,
    fit_temperature,
    inverse_temperature,
    log_probabilities,
)
from .columns import Inputs
from .density.base import check_density, is_frozen, log_density
from .density.ensemble import DensityEnsemble
from .dirichlet import Dirichlet, entropy, vacuity
from .evidence import CautionBudget, check_increasing
from .evidence.caution_budget import brier_loss, price_unit
from .evidence.normalizers import cap_evidence
from .features.scaling import warn_of_gross_outliers
from .features.transformer import fit_feature_transformer
from .held_out import (
    Fold,
    HeldOut,
    Origin,
    fit_folds,
    fit_one_density,
    predict_held_out,
    sample_hashes,
    share_in_fit,
)
from .inputs import (
    NEW_LEVEL,
    TOO_LARGE,
    FittedClassifier,
    NotComputableError,
    compute_features,
    one_thread,
    refuse_infinity,
)
from .maths.arrays import (
    Array,
    check_number,
    check_positive_number,
    check_proba,
    check_rate,
    is_missing,
)
from .maths.seeds import check_seed, seed
from .writing.finding import Finding
from .writing.progress import Stopwatch

__all__ = ["EvidenceModel"]

INTERVALS_OF_EVIDENCE = Finding(
    "intervals_of_evidence",
    "warning",
    "These intervals are often several times too narrow: their width is that of the evidence, "
    "which says where data were seen, and not how wrong the probabilities are.",
    remedy="Leave spread at its default, and give held-out rows with labels.",
)
#: Caution where none is stated.
CAUTION = 0.02
#: Least distance of the two scores of a sharpening, as a share of the lower one.
_APART = 1e-6
#: Confidence of one standard error, by a normal.
_ONE_ERROR = 0.6827
#: Rounding error of a mean Brier score.
_ROUNDING = 1e-12


class Price(NamedTuple):
    """Brier scores of held-out rows: what caution may cost, and what it costs.

    `full` is that of the calibrated classifier, `free` that of the same one that sharpens no
    flagged input, which no caution but 0 pays for; `allowed` is ``free + caution * unit``, with the
    `unit` that a price is a share of (see `CautionBudget`); `paid` is that of the posterior mean.
    """

    full: float
    free: float
    allowed: float
    unit: float
    paid: float = np.nan


@dataclass(eq=False, repr=False)
class EvidenceModel(BaseEstimator):
    """Score of the features of an input, its log-evidence, and a threshold for alarms.

    `DIPClassifier` and `OODDetector` are built on it. Everything that is learned about scores comes
    from rows that neither the density nor the classifier was fitted on (see `cv`), unless asked
    otherwise.

    Parameters
    ----------
    density, features, normalizer, calibrator, spread, cv, false_alarm_rate, random_state
        See `dipedl.DIPClassifier`.
    prior : ndarray, shape (k,), optional
        Concentration of the prior; None where there are no classes.
    gamma, max_evidence, caution, n_jobs, verbose
        See `dipedl.DIPClassifier`.

    Attributes
    ----------
    density_, features_, normalizer_, calibrator_
        Fitted; the last two on `held_out_`. The calibrator is None without a classifier.
    columns_ : Inputs or None
        Names, kinds and usual values of the columns of the inputs, in their units.
    temperature_ : float or None
        T of the probabilities in the posterior mean; `calibrator_` has that of the classifier
        alone. Caution flattens the mean, so T is lower: the highest whose held-out NLL of the mean
        is within one standard error of the lowest. None without a temperature.
    held_out_ : HeldOut
        Predictions on held-out rows, by ascending score.
    offset_ : float
        Score below which an input is flagged.
    spread_ : Spread or None
        Strength that the error of the mean supports; None without one.
    sharpening_ : (float, float)
        Scores from which a calibrator that sharpens begins to, and from which it does so in full:
        the lowest held-out score that is not flagged, and the highest up to the median whose price
        `caution` allows.
    n_ : float
        Number of fitted samples (sum of their weights).
    """

    density: Any = None
    features: Any = None
    normalizer: Any = None
    calibrator: Any = None
    spread: Any = AUTO
    cv: Any = AUTO
    false_alarm_rate: float = 0.05
    random_state: Any = None
    prior: np.ndarray | None = None
    gamma: float = 1.0
    max_evidence: float | None = None
    caution: float | None = None
    n_jobs: int | None = None
    verbose: int = 0

    def fit(
        self, X: Any, y: np.ndarray, groups: np.ndarray | None = None, *, estimator: Any = None
    ) -> Self:
        """Fit features, density and threshold on X (n, d) with labels y (n,), no classifier.

        `groups` as for `cross_fit`, `estimator` as for `fit_features`.
        """
        self.check_parameters()
        pairs = None if groups is None else splitter_pairs(self.cv, y, None, groups)
        self.columns_ = Inputs.learn(X)
        Z = self.fit_features(X, y, estimator=estimator)
        return self.fit_density(Z, y, X=X).cross_fit(Z, y, X=X, pairs=pairs, groups=groups)

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_rate(self.false_alarm_rate)
        check_spread(self.spread)
        check_positive_number("gamma", self.gamma)
        if self.max_evidence is not None:
            check_positive_number("max_evidence", self.max_evidence)
        check_seed(self.random_state)
        if not (self.n_jobs is None or isinstance(self.n_jobs, int | np.integer)):
            raise TypeError(f"n_jobs must be None or an int, -1 for all cores, got {self.n_jobs!r}")
        check_folds(self.cv)
        if self.density is not None:
            check_density(self.density)
        check_calibrator(self.calibrator)
        check_normalizer(self.normalizer)
        for part in (self.density, self.calibrator, self.normalizer):
            inner = part.get_params().values() if hasattr(part, "get_params") else ()
            for each in (part, *inner):
                if hasattr(each, "check_parameters"):
                    each.check_parameters()

    def fit_features(
        self,
        X: Any,
        y: np.ndarray,
        w: np.ndarray | None = None,
        *,
        estimator: Any = None,
        rows: np.ndarray | None = None,
    ) -> np.ndarray:
        """Fit the features on X (n, d), labels and weights; features of X, shape (n, p).

        Without `features`, the preprocessing of the unfitted or frozen `estimator` is a part.
        Warnings give the rows the numbers `rows` (n,), where they are known.
        """
        self.features_ = fit_feature_transformer(
            self._features_setting(), X, y, w, self.random_state, estimator
        )
        Z = self.transform(X)
        self.row_hashes_ = sample_hashes(row_hash(X))
        if self._features_setting() is None:
            warn_of_gross_outliers(Z, w, X, self.features_, rows)
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
        with one_thread(Z, blas=True):
            self.density_ = fit_one_density(
                self.density, Z, y, w, X=X, classifier=classifier,
                random_state=self.random_state, watch=Stopwatch(self.verbose),
            )  # fmt: skip
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
        groups: np.ndarray | None = None,
    ) -> Self:
        """Learn from rows that are held out of the inputs that were fitted, see `cv`.

        Parameters
        ----------
        Z, y, w, X, classifier
            As given to `fit_density`.
        pairs : list of (train, held-out) ndarray of int, optional
            Those that `cv` gives for these rows, if it was asked already.
        groups : ndarray of int, shape (n,), optional
            Numbers of the groups that the pairs hold out as a whole.
        """
        labels = y if classifier is None else classifier.indices(y)
        whole = Fold(self.density_, self.features_, classifier, X, labels, w, Z)
        folds, whole, source, origin = fit_folds(self, whole, y, pairs)
        jackknife = None
        refitted = classifier is not None and not isinstance(classifier.template, FrozenEstimator)
        if self.spread is not None and origin == "left out" and refitted:
            jackknife = Jackknife(X, Z, w, lambda rows: (self.transform(rows), whole.proba(rows)))
            folds = jackknife.watch(folds)
        with one_thread(Z, blas=True):
            held_out = predict_held_out(folds, whole, source, origin, seed(self.random_state))
        held_groups = None
        if groups is not None and pairs is not None and origin == "left out":
            held_groups = groups[np.concatenate([held for _, held in pairs])]
            held_out = held_out.in_groups(held_groups, self.false_alarm_rate)
        self.learn(held_out)
        variance = None
        if jackknife is not None:
            _, P, scores = self.predict(jackknife.X, classifier)
            variance = jackknife.variance(P, partial(self._predicted_proba, scores=scores))
        return self.learn_spread(held_out, variance, held_groups)

    def calibrate(
        self,
        X: Any,
        y: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
        *,
        classifier: FittedClassifier | None = None,
        groups: np.ndarray | None = None,
    ) -> Self:
        """Learn from ID inputs X (m, d) nothing was fitted on, with labels y (m,) if known.

        `groups` (m,) are numbers of groups of rows that are like one another.
        """
        labels = classifier.indices(y) if classifier is not None and y is not None else y
        Z = self.transform(X)
        fold = Fold(self.density_, self.features_, classifier, X, labels, sample_weight, Z)
        seen = share_in_fit(row_hash(X), getattr(self, "row_hashes_", None))
        origin: Origin = "given twice" if seen else "given"
        kind = f"inputs, {seen:.0%} of them given to fit too" if seen else "held-out inputs"
        source = f"{X.shape[0]} {kind}"
        with one_thread(Z, blas=True):
            held_out = predict_held_out([fold], fold, source, origin, seed(self.random_state))
        if groups is not None:
            held_out = held_out.in_groups(groups, self.false_alarm_rate)
        before: Spread | None = getattr(self, "spread_", None)
        variance = before.variance_ if before is not None and before.refitted_ else None
        return self.learn(held_out).learn_spread(held_out, variance, groups)

    def learn(self, held_out: HeldOut, *, n: float | None = None) -> Self:
        """Learn calibrator, normaliser and threshold from predictions on held-out rows.

        Parameters
        ----------
        held_out : HeldOut
            Scores of held-out rows, with the classifier's probabilities if there is one.
        n : float, optional
            Rows that made the density; default: those of `fit_density`.
        """
        self.n_ = self.n_ if n is None else n
        held_out = replace(held_out, Z=None).sort()
        self.offset_ = held_out.threshold(self.false_alarm_rate)
        # Without labels the calibrator of an earlier fit stays.
        if held_out.has_labels:
            # k / (k + n): the share of the prior in the mean at full evidence.
            n = self.n_ * self.gamma / float(np.asarray(self.prior).mean())
            self.calibrator_ = fit_calibrator(self.calibrator, held_out, n)
        else:
            self.calibrator_ = getattr(self, "calibrator_", None)
        return self._spend(held_out)

    def with_caution(self, caution: float) -> EvidenceModel:
        """Return a copy that has learned from the same rows with this `caution`."""
        model = copy(self)
        model.caution, model.normalizer = caution, None
        return model._spend(self.held_out_.before_calibration())

    def price(self) -> Price:
        """Return what caution may cost on the labelled held-out rows, and what is paid.

        Rows that a `CautionBudget` leaves out are not counted.
        """
        after = self.rows_in_budget()
        loss = brier_loss(after.proba, after.labels, self._prior_mean)
        paid = after.average(loss(self.vacuity(after.scores)))
        return self._price(after.before_calibration())._replace(paid=paid)

    def rows_in_budget(self) -> HeldOut:
        """Return the held-out rows, of weight 0 where a `CautionBudget` leaves them out."""
        rows = self.held_out_
        if not isinstance(self.normalizer_, CautionBudget):
            return rows
        counted = self.normalizer_.in_budget(rows.scores, rows.counts)
        return replace(rows, weights=np.where(counted, rows.counts, 0.0))

    def _spend(self, held_out: HeldOut) -> Self:
        """Learn sharpening, normaliser and temperature of the mean from rows by ascending score.

        The sharpening that is withheld is paid first; doubt gets what is left.
        """
        self.temperature_ = getattr(self.calibrator_, "temperature_", None)
        price = self._price(held_out) if held_out.has_labels else None
        self.sharpening_ = self._affordable_sharpening(held_out, price)
        self._normalize(held_out, price)
        if type(self.calibrator_) is Temperature and price is not None and self._caution > 0:
            # Doubt flattens too: the mean gets the temperature that it needs, then what is left.
            temperature = self._temperature_of_mean(held_out)
            if self._sharpened_loss(held_out, self.sharpening_, temperature) <= price.allowed:
                self.temperature_ = temperature
            self._normalize(held_out, price)
        return self

    @property
    def _caution(self) -> float:
        return CAUTION if self.caution is None else float(self.caution)

    @property
    def _prior_mean(self) -> np.ndarray:
        prior = np.asarray(self.prior)
        return np.asarray(prior / prior.sum())

    @property
    def _full_vacuity(self) -> float:
        """Share of the prior in a prediction at full evidence."""
        alpha0 = float(np.asarray(self.prior).sum())
        return alpha0 / (alpha0 + self.n_ * self.gamma)

    def _price(self, held_out: HeldOut) -> Price:
        """Return what caution may cost on labelled rows, which are not calibrated yet."""
        lowest, unit = self._full_loss(held_out, self.calibrate_in_full(held_out.proba))
        free, ranks = lowest, sharpening_ranks(held_out, self.offset_)
        if self._caution and len(ranks):
            # The classifier that sharpens no flagged input, and all others in full.
            never = sharpening_range(held_out.scores, ranks[0], ranks[0])
            own = getattr(self.calibrator_, "temperature_", None)
            free = max(lowest, self._sharpened_loss(held_out, never, own))
        return Price(lowest, free, free + self._caution * unit, unit)

    def _sharpened_loss(
        self, held_out: HeldOut, sharpening: tuple[float, float], temperature: float | None
    ) -> float:
        """Return the mean Brier score of labelled rows at full evidence, sharpened in this way."""
        share = sharpening_share(held_out.scores, *sharpening)
        proba = calibrate_in_share(self.calibrator_, held_out.proba, share, temperature)
        return self._full_loss(held_out, proba)[0]

    def _full_loss(self, held_out: HeldOut, proba: np.ndarray) -> tuple[float, float]:
        """Return the mean Brier score of labelled rows at full evidence, and the unit of a price.

        `proba` (m, k) are their probabilities.
        """
        loss = brier_loss(proba, held_out.labels, self._prior_mean)
        bare = loss(self._full_vacuity)
        unit = held_out.average(price_unit(bare, loss(1.0), held_out.counts))
        return held_out.average(bare), unit

    def _affordable_sharpening(self, held_out: HeldOut, price: Price | None) -> tuple[float, float]:
        """Return the scores between which sharpening sets in, as late as the price allows."""
        ranks, scores = sharpening_ranks(held_out, self.offset_), held_out.scores
        if not len(ranks):
            return 0.0, 1.0
        if self._caution == 0:
            lowest = held_out.lowest
            return lowest - _APART * max(1.0, abs(lowest)), lowest

        def loss(end: int) -> float:
            sharpening = sharpening_range(scores, ranks[0], end)
            return self._sharpened_loss(held_out, sharpening, self.temperature_)

        end = ranks[-1]
        if price is not None and loss(end) > (allowed := price.allowed + _ROUNDING):
            end = ranks[max(bisect_right(ranks, allowed, key=loss) - 1, 0)]
        return sharpening_range(scores, ranks[0], end)

    def _normalize(self, held_out: HeldOut, price: Price | None) -> None:
        """Fit the normaliser to held-out rows, with probabilities at the present temperature."""
        self.held_out_ = self.calibrate_rows(held_out)
        normalizer = self.normalizer
        if normalizer is None:
            left = self._caution
            if price is not None:
                bare, unit = self._full_loss(held_out, self.held_out_.proba)
                # What the temperature gains is not spent.
                left = float(np.clip((price.allowed - max(bare, price.full)) / unit, 0.0, 1.0))
            normalizer = CautionBudget(left)
        self.normalizer_ = fit_normalizer(
            normalizer, self.held_out_, n=self.n_, gamma=self.gamma, prior=self.prior
        )

    def _temperature_of_mean(self, held_out: HeldOut) -> float:
        """Return the temperature that makes up for what caution flattens in the posterior mean.

        It is not above that of the calibrator, and the highest whose held-out NLL is within one
        standard error of the lowest.
        """
        own: Any = self.calibrator_
        u = self.vacuity(held_out.scores)
        of_mean = fit_temperature(
            log_probabilities(held_out.proba),
            held_out.labels,
            held_out.weights,
            np.maximum(u, self._full_vacuity),
            self._prior_mean,
            min(own.confidence, _ONE_ERROR),
            sharpening_share(held_out.scores, *self.sharpening_),
        ).temperature
        return min(of_mean, float(own.temperature_))

    def learn_spread(
        self,
        held_out: HeldOut,
        variance: float | None = None,
        groups: np.ndarray | None = None,
    ) -> Self:
        """Learn the strength that the error on held-out rows supports, after all else is learned.

        `variance` is that of the probabilities over training sets, if it is known, `groups` (m,)
        are those of the rows. Rows without labels only teach what typical evidence is; those of the
        fit itself, "in-sample", nothing.
        """
        before, Z = getattr(self, "spread_", None), held_out.Z
        self.spread_ = None
        known = held_out.proba is not None and held_out.origin != "in-sample"
        if self.spread is None or Z is None or not known:
            return self
        typical = self.log_evidence(np.array([self.held_out_.quantile(0.5)]))[0]
        if not held_out.has_labels:
            if before is not None:
                self.spread_ = copy(before)
                self.spread_.log_evidence_ = float(typical)
            return self
        mean = self._predicted_proba(held_out.proba, held_out.scores)
        self.spread_ = Spread().fit(
            Z, mean, held_out.labels, typical=typical,
            sample_weight=held_out.weights, variance=variance, groups=groups,
        )  # fmt: skip
        return self

    def _predicted_proba(self, proba: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Posterior mean (n, k) by the classifier's probabilities (n, k) and scores (n,)."""
        P = self.calibrate_proba(proba, scores)
        return np.asarray(Dirichlet.from_evidence(self.log_evidence(scores), P, self.prior).mean)

    def learn_stream(self, stream: Any, classifier: FittedClassifier, names: Any = None) -> Self:
        """Take over the density of a `Stream`, and learn from the rows that are held out of it.

        `names` (d,) are those of the inputs, if they have any.
        """
        self.features_, self.density_ = stream.fitted_parts(names)
        rows, counts = stream.held.rows, stream.held.counts
        if not hasattr(self, "columns_"):
            inputs = Inputs.learn(rows["X"])
            if inputs is not None and names is not None:
                inputs = replace(inputs, names=list(names))
            self.columns_ = inputs
        if "Z" in rows:
            Z, P = rows["Z"], rows["P"]
        else:
            with warnings.catch_warnings():
                # A classifier that was given frames: columns are in the same order here.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                Z, P = self.transform(rows["X"]), classifier.proba(rows["X"])
        held_out = HeldOut(
            log_density(self.density_, Z),
            stream.source,
            None if (counts == 1).all() else counts,
            P,
            classifier.indices(stream.held.labels),
            origin="given",
            Z=Z,
        )
        numbers = None
        if stream.by_group:
            numbers = np.unique(rows["groups"], return_inverse=True)[1].ravel()
            held_out = held_out.in_groups(numbers, self.false_alarm_rate)
        return self.learn(held_out, n=stream.n).learn_spread(held_out, groups=numbers)

    def predict(
        self, X: Any, classifier: FittedClassifier | None = None
    ) -> tuple[np.ndarray, Any, np.ndarray]:
        """Return features (n, p), class probabilities (n, k) or None, and scores (n,) of X (n, d).

        A finite row with numbers that classifier, features or density cannot compute with, and one
        with a new level, or a first gap among levels, that they refuse, is unknown: its score is
        -inf, its probabilities are equal, and its features NaN where there are none.
        """

        def predict(X: Any) -> Any:
            # Features first: where an entry is not finite, their error names its row and column.
            Z = compute_features(self.features_, X)
            P, none = (None, False) if classifier is None else classifier.proba_or_none(X)
            with one_thread(Z, blas=True):
                scores = log_density(self.density_, Z, P)
            return Z, P, np.where(none, -np.inf, scores)

        def unknown() -> Any:
            k = 0 if classifier is None else len(classifier.classes)
            Z = np.full((1, getattr(self.density_, "n_features_in_", 0)), np.nan)
            return Z, np.full((1, k), 1 / k) if k else None, np.array([-np.inf])

        Z, P, scores = predict_by_halves(predict, X, unknown, self.columns_)
        return Z, P, scores

    def predict_proba(self, X: Any, classifier: FittedClassifier) -> np.ndarray:
        """Return the classifier's probabilities (n, k), equal where it gives none or refuses X."""
        k = len(classifier.classes)
        P: np.ndarray
        (P,) = predict_by_halves(
            lambda rows: classifier.proba_or_none(rows)[:1],
            X,
            lambda: (np.full((1, k), 1 / k),),
            self.columns_,
        )
        return P

    def transform(self, X: Any) -> np.ndarray:
        """Features of X (n, d) that the density sees, shape (n, p)."""
        return compute_features(self.features_, X)

    def calibrate_proba(self, proba: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) after the calibrator, for inputs of `scores` (n,).

        Where the calibrator makes them surer it does so in the share that the score allows: not at
        all up to the alarm threshold.
        """
        share = sharpening_share(scores, *self.sharpening_)
        return calibrate_in_share(self.calibrator_, proba, share, self.temperature_)

    def calibrate_rows(self, held_out: HeldOut) -> HeldOut:
        """Return held-out rows with their probabilities after the calibrator, and before it."""
        if held_out.proba is None or self.calibrator_ is None:
            return held_out
        proba = self.calibrate_proba(held_out.proba, held_out.scores)
        return replace(held_out, proba=proba, bare_proba=held_out.proba)

    def calibrate_in_full(self, proba: np.ndarray) -> np.ndarray:
        """Class probabilities (n, k) after the calibrator, which sharpens on every input alike."""
        return proba if self.calibrator_ is None else np.asarray(self.calibrator_.transform(proba))

    def held_out_classifier_proba(self) -> np.ndarray:
        """Class probabilities (m, k) of the classifier and its calibrator on held-out rows."""
        return self.calibrate_in_full(self.held_out_.before_calibration().proba)

    def log_evidence(self, scores: np.ndarray) -> np.ndarray:
        """``log(n gamma) + z`` of scores (n,), in nats, shape (n,)."""
        z = np.asarray(self.normalizer_.transform(scores), dtype=np.float64)
        return np.asarray(cap_evidence(np.log(self.n_) + np.log(self.gamma) + z, self.max_evidence))

    def vacuity(self, scores: np.ndarray) -> np.ndarray:
        """Share of the prior in the answers to inputs of `scores` (n,), shape (n,)."""
        return np.asarray(vacuity(self.log_evidence(scores), np.asarray(self.prior)))

    def dirichlet(self, proba: np.ndarray, scores: np.ndarray) -> Dirichlet:
        """Return the Dirichlets of inputs by their scores (n,).

        The mean is that of ``prior + exp(log_evidence) * proba`` with the `proba` (n, k) of
        `calibrate_proba`; the strength that of `spread_`, without one that of the evidence.
        """
        caveat = interval_caveat(self.spread_, self.held_out_.origin)
        dirichlet = Dirichlet.from_evidence(self.log_evidence(scores), proba, self.prior, caveat)
        if self.spread_ is None:
            return dirichlet
        return dirichlet.with_strength(self.spread_.strength(dirichlet.log_evidence), caveat)

    def _features_setting(self) -> Any:
        # A density that was fitted before knows its own features.
        frozen = self.features is None and is_frozen(self.density)
        return "passthrough" if frozen else self.features


def interval_caveat(spread: Spread | None, origin: Origin | None) -> Finding | None:
    """Return why intervals are too narrow, or None where they are not known to be.

    `spread` is the learned strength, if there is one, and `origin` that of the held-out rows, if
    it is known.
    """
    if spread is not None:
        if not (cause := spread.shortfall):
            return None
        text = f"These intervals may hold less than they promise: {cause}."
        remedy = "diagnose() of the classifier says what to do."
        return Finding("intervals_fall_short", "warning", text, remedy=remedy)
    # The paper's preset is as published, and so are its intervals.
    return None if origin == "in-sample" else INTERVALS_OF_EVIDENCE


def sharpening_share(scores: Array, low: Any, high: Any) -> Array:
    """Return the share of a sharpening at scores (n,): none up to `low`, all from `high`, (n,).

    Linear in between; ``low < high``. A temperature below one sharpens in this share of the inverse
    temperature, so that no prediction on an atypical input is surer than the classifier's own.
    """
    return ((scores - low) / (high - low)).clip(0.0, 1.0)


def calibrate_in_share(
    calibrator: Any, proba: np.ndarray, share: np.ndarray, temperature: float | None
) -> np.ndarray:
    """Return calibrated class probabilities (n, k); those that get surer, in a share (n,) only.

    Surer are a larger largest probability or a smaller entropy. A `Temperature` applies in that
    share of its inverse, at `temperature` in place of its own; what any other calibrator gives is
    mixed with `proba`. None leaves `proba` as they are.
    """
    if calibrator is None:
        return proba
    if type(calibrator) is Temperature:
        if temperature == 1:
            return proba
        with np.errstate(divide="ignore"):
            log_p = np.log(proba / proba.sum(axis=1, keepdims=True))
        log_p *= inverse_temperature(temperature, share)[:, None]
        calibrated = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return np.asarray(calibrated / calibrated.sum(axis=1, keepdims=True))
    calibrated = np.asarray(calibrator.transform(proba))
    surer = calibrated.max(axis=1) > proba.max(axis=1)
    surer |= entropy(calibrated) < entropy(proba)
    w = np.where(surer, share, 1.0)[:, None]
    return np.asarray((1 - w) * proba + w * calibrated)


def check_caution(caution: Any, normalizer: Any) -> None:
    """Raise unless `caution` is None, or a share and no normaliser is given beside it."""
    if caution is None:
        return
    share = "in [0, 1], a share of the held-out Brier score"
    check_number("caution", caution, share, lambda x: 0 <= x <= 1)
    if normalizer is not None:
        raise ValueError(
            f"caution={caution!r} sets the price of the default normalizer, and "
            f"normalizer={normalizer!r} is given too; leave out one of the two"
        )


def check_spread(spread: Any) -> None:
    """Raise unless `spread` is "auto" or None."""
    if spread is not None and not (isinstance(spread, str) and spread == AUTO):
        raise ValueError(
            "spread must be 'auto' (the strength that the error on held-out rows supports) or None "
            f"(the strength of the evidence), got {spread!r}"
        )


def check_calibrator(calibrator: Any) -> None:
    """Raise TypeError unless `calibrator` is None, "passthrough" or an object that transforms."""
    passthrough = isinstance(calibrator, str) and calibrator == "passthrough"
    given = not isinstance(calibrator, type) and hasattr(calibrator, "transform")
    if not (calibrator is None or passthrough or given):
        raise TypeError(
            "calibrator must be None, 'passthrough' or an object with fit and transform, such "
            f"as Temperature(), got {calibrator!r}"
        )


def check_normalizer(normalizer: Any) -> None:
    """Raise TypeError unless `normalizer` is None or an object with fit and transform."""
    if normalizer is None:
        return
    if isinstance(normalizer, type) or not (
        hasattr(normalizer, "fit") and hasattr(normalizer, "transform")
    ):
        raise TypeError(
            "normalizer must have methods fit and transform, such as dipedl.evidence.ZScore(), "
            f"got {normalizer!r}"
        )


def sharpening_ranks(held_out: HeldOut, offset: float) -> range:
    """Return the ranks of rows, in order, at whose score a sharpening may be in full.

    From the lowest finite score that is not flagged, `offset` is the alarm threshold, to the
    median; empty without a finite score.
    """
    finite = np.flatnonzero(held_out.finite)
    if not len(finite):
        return range(0)
    scores, weights = held_out.scores[finite], held_out.counts[finite]
    first = finite[min(int(np.searchsorted(scores, offset)), len(scores) - 1)]
    median = finite[np.searchsorted(np.cumsum(weights), weights.sum() / 2 * (1 - 1e-12))]
    return range(int(first), max(int(first), int(median)) + 1)


def sharpening_range(scores: np.ndarray, first: int, end: int) -> tuple[float, float]:
    """Return two of ascending scores (m,), further apart than the rounding of float32."""
    low = float(scores[first])
    return low, max(float(scores[end]), low + _APART * max(1.0, abs(low)))


def fit_calibrator(calibrator: Any, held_out: HeldOut, n: float) -> Any:
    """Return a fitted copy of the calibrator, None for the default; None for "passthrough"."""
    if isinstance(calibrator, str):
        return None
    copy = Temperature() if calibrator is None else clone(calibrator, safe=False)
    extra: dict[str, Any] = {"n": n} if has_fit_parameter(copy, "n") else {}
    copy.fit(held_out.proba, held_out.labels, held_out.weights, **extra)
    name = f"transform of the calibrator {type(copy).__name__}"
    check_proba(name, copy.transform(held_out.proba), *held_out.proba.shape)
    return copy


def fit_normalizer(
    normalizer: Any, held_out: HeldOut, *, n: float, gamma: float, prior: np.ndarray | None
) -> Any:
    """Return a fitted copy of the normaliser."""
    copy = clone(normalizer, safe=False)
    unlabelled = held_out.labels is None and held_out.proba is not None
    if unlabelled and has_fit_parameter(copy, "y"):
        raise ValueError(
            f"y is needed: normalizer {type(copy).__name__} learns from labels, and "
            f"{held_out.source} have none; give calibrate(X, y), or fit with a normalizer that "
            "needs no labels, such as dipedl.evidence.QuantileEvidence()"
        )
    offered = {
        "proba": held_out.proba, "y": held_out.labels, "n": n, "gamma": gamma, "prior": prior
    }  # fmt: skip
    accepted = {k: v for k, v in offered.items() if has_fit_parameter(copy, k)}
    copy.fit(held_out.scores, held_out.weights, source=held_out.source, **accepted)
    check_increasing(copy, held_out.scores)
    return copy


def predict_by_halves(
    predict: Callable[[Any], tuple[Any, ...]],
    X: Any,
    unknown: Callable[[], tuple[Any, ...]],
    inputs: Inputs | None = None,
) -> tuple[Any, ...]:
    """Return ``predict(X)``, or the result of ``unknown()`` for rows without an answer.

    Both are tuples of arrays with an entry for each row of X (n, d). Without an answer are finite
    rows whose numbers overflow in a part of the model, and rows with a level, or a gap among
    levels, that the `inputs` of the fit did not have, if a part of the model refuses them. They are
    found by halves, or by their new levels where an encoder of scikit-learn refuses these, so that
    no answer depends on another row.

    Raises
    ------
    Exception
        That of ``predict`` if it has another cause, such as a row that is not finite itself.
    """
    try:
        return predict(X)
    except (MemoryError, OSError):
        raise
    except Exception as error:
        overflow = isinstance(error, NotComputableError) or TOO_LARGE in str(error)
        if not overflow and (inputs is None or not inputs.rows_with_new(X).any()):
            raise
        refusal = error
    n = X.shape[0]
    if n == 1:
        if overflow and not _finite(X, inputs):
            refuse_infinity(refusal, X)
            raise refusal
        return unknown()
    parts = [np.arange(n // 2), np.arange(n // 2, n)]
    if inputs is not None and NEW_LEVEL in str(refusal):
        # An encoder looks at levels alone: it refuses all rows with the same new ones, or none.
        news = list(map(tuple, inputs.describe_new(X)))
        kinds: dict[Any, int] = {}
        number = np.array([kinds.setdefault(new, len(kinds)) for new in news])
        if len(kinds) == 1 and news[0]:
            return tuple(None if a is None else np.repeat(a, n, axis=0) for a in unknown())
        if len(kinds) > 1:
            parts = np.split(np.argsort(number, kind="stable"), np.bincount(number).cumsum()[:-1])
    try:
        results = [
            predict_by_halves(predict, _safe_indexing(X, rows), unknown, inputs) for rows in parts
        ]
    except Exception:
        # That of all rows, so that the row number in it is right.
        refuse_infinity(refusal, X)
        raise refusal from None
    place = np.argsort(np.concatenate(parts))
    joined = zip(*results, strict=True)
    return tuple(None if a[0] is None else np.concatenate(a)[place] for a in joined)


def _finite(row: Any, inputs: Inputs | None) -> bool:
    """Return whether no number of a row (array, table, sparse) is missing or infinite."""
    plain = row.data if sparse.issparse(row) else np.asarray(row, dtype=object).ravel()
    values = plain.tolist()
    if inputs is not None and inputs.levels:
        texts = inputs.text_columns()
        values = [v for name, v in zip(inputs.names, values, strict=True) if name not in texts]
    floats = [value for value in values if isinstance(value, float)]
    return not any(map(is_missing, values)) and bool(np.isfinite(floats).all())
