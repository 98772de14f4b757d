"""Several densities of the same features, fitted side by side and scored together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.validation import column_or_1d

from ..calibration.crossfit import content_folds, fold_pairs
from ..calibration.pseudo_outliers import make_pseudo_outliers
from ..evidence.normalizers import lower_tail_unit
from ..features.scaling import FEW, RANGES, limits, outside_of
from ..fitting import Stopwatch, all_or_nothing
from ..inputs import check_weights, require_fitted, validate_features, validate_fit_features
from ..maths.array_namespace import drop_mask
from ..maths.checks import check_magnitude, check_simplex
from ..maths.scores import confidence
from ..maths.seeds import seed
from ..writing.finding import warn_caller
from .base import (
    LogDensityMixin,
    as_density,
    clone_with_selected,
    fit_density,
    for_own_rows,
    log_density,
)
from .gda import GDADensity
from .knn import KNNDensity
from .relative import RelativeDensity

#: Name of the component that the classifier itself gives.
CLASSIFIER = "classifier"
#: Rows that the nearest neighbours are sought among.
NEIGHBOUR_ROWS = 8_000

Candidates = list[tuple[str, Any]]
Rows = np.ndarray
_FOLDS = 5
_FAILURES = (ValueError, TypeError, FloatingPointError, MemoryError)
#: How far out a ray is asked whether the score still falls, and how many axes are rays.
_DISTANCES = (1e4, 1e8)
_AXES = 50
#: Lower-tail units that the ceiling lies below the lowest held-out score: no half-point is as low.
_DEEP = 20.0
#: A length below this is left as it is, as in scikit-learn.
_NO_LENGTH = 10 * float(np.finfo(np.float64).eps)


class DensityEnsemble(LogDensityMixin, BaseEstimator, ABC):
    """Base of densities made of several; `FusedDensity` names the attributes.

    They are fitted in two steps: ``fit_estimators`` on rows, once for all rows and once for each
    fold; then ``fit_combiner`` on the scores of held-out rows. `EvidenceModel` takes the two steps
    itself; ``fit`` alone does both, with folds of its own. ``blind_`` holds those whose score does
    not fall far from all data, ``reach_`` the range of the rows, outside of which every score is
    held down.
    """

    normalized = False

    candidates: Candidates | None
    random_state: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, proba: Any = None) -> Self:
        """Fit the candidates and learn from folds how to use them.

        Parameters
        ----------
        X : array-like, shape (n, p)
            Features.
        y : array-like, shape (n,), optional
            Labels; without them all rows are one class.
        sample_weight : array-like, shape (n,), optional
            Counts each row that often.
        proba : array-like, shape (n, k), optional
            Class probabilities, by a classifier that was not fitted on these rows; one column per
            label in y, which is needed then, in sorted order.
        """
        with all_or_nothing(self):
            X = validate_fit_features(self, X)
            check_magnitude("X", X)
            P = _check_proba(proba, y, len(X))
            y = np.zeros(len(X), int) if y is None else column_or_1d(drop_mask("y", y), warn=True)
            w = check_weights(sample_weight, X)
            if w is not None and (w == 0).any():
                # A row of weight zero is absent.
                X, y, P, w = X[w > 0], y[w > 0], _take(P, w > 0), w[w > 0]
            self.fit_estimators(X, y, w).find_blind(X)
            return self._fit_combiner_in_folds(X, y, w, P)

    def _fit_combiner_in_folds(self, X: Rows, y: Rows, w: Rows | None, P: Rows | None) -> Self:
        number = seed(self.random_state)
        pairs = list(fold_pairs(content_folds(X, y, _FOLDS, number, together=True)))
        if not pairs:
            raise ValueError(
                f"{type(self).__name__} needs a class with at least 3 samples to hold some out, "
                f"got n_samples = {len(X)} in {len(np.unique(y))} classes"
            )
        folds, scores = [], []
        for train, held in pairs:
            # Settings selected on all classes need all classes.
            whole = len(np.unique(y[train])) == len(np.unique(y))
            fold = self.clone_with_selected() if whole else clone(self)
            folds.append(fold.fit_estimators(X[train], y[train], _take(w, train)))
            scores.append(fold.component_scores(X[held], _take(P, held)))
        made: dict[str, Rows] = {}
        if P is None:
            # Only EvidenceModel can ask the classifier for its probabilities of pseudo-outliers.
            first = pairs[0][1]
            made = make_pseudo_outliers(
                X[first], y[first], sample_weight=_take(w, first), random_state=number
            )
        rows = np.concatenate([held for _, held in pairs])
        return self.fit_combiner(
            self.merge_folds([fold.failed_ for fold in folds], scores),
            np.unique(y, return_inverse=True)[1][rows],
            proba=_take(P, rows),
            sample_weight=_take(w, rows),
            pseudo_outliers={kind: folds[0].component_scores(Z) for kind, Z in made.items()},
        ).warn_if_blind()

    def fit_estimators(
        self, X: Rows, y: Rows, w: Rows | None = None, watch: Stopwatch | None = None
    ) -> Self:
        """Fit every candidate on features X (n, p), labels y (n,) and weights; note what failed.

        A few rows that are far from all others are left out. A `watch` is told of each candidate.
        """
        self.n_features_in_ = X.shape[1]
        near = Fence.of(X, y, w).near(X)
        X, y, w = X[near], y[near], _take(w, near)
        self.reach_ = Reach.of(X)
        self.estimators_: dict[str, Any] = {}
        self.failed_: dict[str, str] = {}
        self.blind_: set[str] = set()
        for name, density in named_candidates(self.candidates):
            try:
                unfitted = as_density(density, self.random_state)
                self.estimators_[name] = fit_density(unfitted, X, y, w)
            except _FAILURES as error:
                self.failed_[name] = f"{type(error).__name__}: {error}"
            if watch is not None:
                why = self.failed_.get(name)
                watch.say(f"candidate {name} {f'failed: {why}' if why else 'fitted'}")
        self._require_an_estimator()
        return self

    def find_blind(self, X: Rows) -> Self:
        """Note the candidates that are blind to distance from the rows X (n, p) of the fit."""
        for name, estimator in list(self.estimators_.items()):
            try:
                if blind_to_distance(estimator, X):
                    self.blind_.add(name)
            except _FAILURES as error:
                self._drop(name, f"{type(error).__name__}: {error}")
        self._require_an_estimator()
        return self

    def clone_with_selected(self) -> Self:
        """Return an unfitted copy of the candidates that could be fitted, with their settings."""
        named = dict(named_candidates(self.candidates))
        usable = []
        for name, part in self.estimators_.items():
            template = named[name]
            if isinstance(part, Pipeline):
                (last, fitted), unfitted = part.steps[-1], template.steps[-1][1]
                selected = {last: clone_with_selected(fitted, unfitted)}
                usable.append((name, clone(template).set_params(**selected)))
            else:
                usable.append((name, clone_with_selected(part, template)))
        unfitted_copy: Self = clone(self).set_params(candidates=usable)
        return unfitted_copy

    def for_own_rows(self) -> Self:
        """Return the fitted densities as they score the rows of their fit."""
        density = copy(self)
        density.estimators_ = {name: for_own_rows(part) for name, part in self.estimators_.items()}
        return density

    def merge_folds(
        self, failed: Sequence[Mapping[str, str]], scores: Sequence[Mapping[str, Rows]]
    ) -> dict[str, Rows]:
        """Join the components of the held-out rows of all folds, given what failed in each.

        Drops the candidates that failed in a fold, or whose scores shift from fold to fold.
        """
        for fold in failed:
            for name, why in fold.items():
                if name in self.estimators_:
                    self._drop(name, f"without a part of the rows: {why}")
        self._require_an_estimator()
        self.drop_unsteady(scores)
        names = [name for name in scores[0] if name in self.estimators_ or name == CLASSIFIER]
        return {name: np.concatenate([s[name] for s in scores]) for name in names}

    def drop_unsteady(self, folds: Sequence[Mapping[str, Rows]]) -> Self:
        """Drop the candidates whose held-out scores shift from fold to fold by their own spread.

        An alarm threshold from the scores of one fold means nothing for another fold, nor for the
        fit on all rows. Of those that see distance the steadiest stays.
        """
        shifts = {name: _shift([fold[name] for fold in folds]) for name in self.estimators_}
        seeing = {name: shifts[name] for name in shifts if name not in self.blind_} or shifts
        steadiest = min(seeing, key=lambda name: seeing[name])
        for name, shift in shifts.items():
            if shift > 1 and name != steadiest:
                self._drop(
                    name,
                    f"its scores of held-out rows shift by {shift:.1f} times their spread from "
                    "fold to fold: a few rows far from all others, or features that repeat one "
                    "another",
                )
        return self

    def _drop(self, name: str, why: str) -> None:
        del self.estimators_[name]
        self.failed_[name] = why

    def _require_an_estimator(self) -> None:
        if not self.estimators_:
            reasons = "\n".join(f"  {name}: {why}" for name, why in self.failed_.items())
            raise ValueError(f"every candidate density failed:\n{reasons}")

    def component_scores(self, X: Rows, proba: Rows | None = None) -> dict[str, Rows]:
        """Score X (n, p) by each estimator, and by the classifier if `proba` (n, k) is given.

        Higher is more typical; those of the estimators in nats, each up to its own constant.
        """
        require_fitted(self, "estimators_")
        return self._components(X, proba, [*self.estimators_, CLASSIFIER])

    def _components(self, X: Rows, proba: Rows | None, names: Sequence[str]) -> dict[str, Rows]:
        scores, unit = {}, None
        for name in (name for name in self.estimators_ if name in names):
            behind = behind_normalizer(self.estimators_[name])
            if behind is None:
                scores[name] = log_density(self.estimators_[name], X)
            else:
                unit = unit_rows(X) if unit is None else unit
                scores[name] = log_density(behind, unit)
        if proba is None or CLASSIFIER not in names:
            return scores
        return scores | {CLASSIFIER: confidence(proba)}

    def score_samples(self, X: Any, proba: Any = None) -> Rows:
        """Combined score of X (n, p), shape (n,); `proba` (n, k) as in ``fit``."""
        require_fitted(self, "component_names_")
        P = None if proba is None else np.asarray(proba, dtype=np.float64)
        return self.log_density(validate_features(self, X), P)

    def log_density(self, Z: Rows, proba: Rows | None = None) -> Rows:
        """Return `score_samples` of features Z (n, p) that were checked before."""
        if self.with_classifier_ != (proba is not None):
            wanted = "needs" if proba is None else "was fitted without"
            raise ValueError(
                f"{type(self).__name__} {wanted} proba, the class probabilities of the rows; give "
                "them to both fit and score_samples, or to neither"
            )
        scores = self.combine(self._components(Z, proba, self.component_names_))
        return self.reach_.hold_down(scores, Z)

    @abstractmethod
    def fit_combiner(
        self,
        scores: Mapping[str, Rows],
        y: Rows,
        *,
        proba: Rows | None = None,
        sample_weight: Rows | None = None,
        pseudo_outliers: Mapping[str, Mapping[str, Rows]],
    ) -> Self:
        """Learn how to use the components from those of m held-out rows, with class indices y.

        `proba` (m, k) are the classifier's; `pseudo_outliers` are the components of pseudo-outliers
        made of those rows, by kind.
        """

    @property
    @abstractmethod
    def voting_(self) -> tuple[str, ...]:
        """Names of the estimators that the score depends on."""

    def warn_if_blind(self) -> Self:
        """Warn if none of the voting estimators sees distance."""
        if self.blind_.issuperset(self.voting_):
            warn_caller(
                f"the score is that of {[*self.voting_]}, which do not fall with the distance from "
                "all data: an input far from everything is flagged only where a feature lies more "
                f"than {RANGES:g} ranges outside of the rows seen; add a candidate that sees "
                "distance, such as ('gaussians', GDADensity())"
            )
        return self

    @abstractmethod
    def combine(self, scores: Mapping[str, Rows]) -> Rows:
        """Return one score per row, shape (n,), from components; higher is more typical."""

    def combine_held_out(
        self, scores: Mapping[str, Rows], sample_weight: Rows | None = None
    ) -> Rows:
        """`combine` for the rows that the combiner was learned from, scored as new ones are."""
        return self.combine(scores)


def default_candidates() -> Candidates:
    """Return densities of each kind that is the best of all on some data and poor on other."""
    # Whatever the global configuration says, densities see arrays.
    unit = Normalizer().set_output(transform="default")
    return [
        ("gaussians", GDADensity()),
        ("tied-gaussians", GDADensity("tied")),
        ("unit-gaussians", make_pipeline(unit, GDADensity())),
        ("relative", RelativeDensity()),
        ("neighbours", KNNDensity(max_rows=NEIGHBOUR_ROWS)),
        ("unit-neighbours", make_pipeline(unit, KNNDensity(max_rows=NEIGHBOUR_ROWS))),
    ]


def named_candidates(candidates: Candidates | None) -> Candidates:
    """Return the candidates as pairs of name and density, checked; the default ones for None."""
    if candidates is None:
        return default_candidates()
    try:
        named = [(name, density) for name, density in candidates]
        names = {str(name) for name, _ in named if isinstance(name, str)}
    except (TypeError, ValueError):
        named, names = [], set()
    if not named or len(names) < len(named) or CLASSIFIER in names:
        raise ValueError(
            "candidates must be (name, density) pairs with a name each, none of them "
            f"{CLASSIFIER!r}, such as [('gaussians', GDADensity())], got {candidates!r}"
        )
    return named


def blind_to_distance(part: Any, X: Rows) -> bool:
    """Return whether the score fails to fall below all rows X (n, p), and on, on some ray.

    The rays leave the mean along axes, towards rows and at random; they are asked so far out that a
    density of directions alone no longer changes. A ratio is blind whatever they say: there are
    directions in which all classes have one mean.
    """
    if isinstance(part.steps[-1][1] if isinstance(part, Pipeline) else part, RelativeDensity):
        return True
    rows = X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]
    rays = _rays(X, rows)
    near, far = (log_density(part, X.mean(axis=0) + distance * rays) for distance in _DISTANCES)
    lowest = log_density(part, rows).min()
    # Where both are -inf there is nothing further to fall.
    return not (((far < near - 1) & (far < lowest)) | np.isneginf(far)).all()


def _rays(X: Rows, rows: Rows) -> Rows:
    """Return directions from the mean of X (n, p), in standard deviations of the features."""
    p = X.shape[1]
    spread = X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    rng = np.random.default_rng(0)
    axes = np.eye(p)[np.linspace(0, p - 1, min(p, _AXES)).astype(int)]
    aside = rng.normal(size=(_AXES, p))
    return np.vstack([axes * spread, -axes * spread, aside * spread, rows - X.mean(axis=0)])


def _shift(folds: Sequence[Rows]) -> float:
    """Return how far the median of a fold lies from the typical one, in spreads, beyond chance."""
    low, middle, high = np.transpose(
        [np.quantile(scores, [0.16, 0.5, 0.84], method="nearest") for scores in folds]
    )
    # Where the density is zero scores are -inf, and no shift can be told.
    with np.errstate(invalid="ignore"):
        spread = float(np.median(high - low)) / 2
        far = np.abs(middle - np.median(middle))
        chance = 4 * spread / np.sqrt([len(scores) for scores in folds])
        beyond = float((far - chance).max())
    return beyond / spread if np.isfinite(beyond) and spread > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Reach:
    """Features of the rows of the fit, and a ceiling for the score of what lies far outside.

    A score of fused ranks, or of a ratio, need not fall for ever. That of an input of which a
    feature lies more than `RANGES` times its range below the lowest or above the highest value
    seen is therefore at most ``ceiling - unit * log(ranges / RANGES)``.

    Attributes
    ----------
    low, width : ndarray, shape (p,)
        Lowest value of each feature, and its range; 1 for a constant feature.
    ceiling, unit : float
        Below every held-out score, and the lower-tail unit of these.
    """

    low: np.ndarray
    width: np.ndarray
    ceiling: float = np.inf
    unit: float = 1.0

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        """Find the reach of rows X (n, p); it has no ceiling before `below`."""
        with np.errstate(over="ignore"):
            low, width = X.min(axis=0), np.ptp(X, axis=0)
        return cls(low, np.where(width > 0, width, 1.0))

    def below(self, scores: np.ndarray, weights: np.ndarray | None) -> Reach:
        """Return a copy with a ceiling below these scores (m,) of held-out rows, with weights."""
        finite = np.isfinite(scores)
        counts = np.ones(len(scores)) if weights is None else weights
        unit = lower_tail_unit(scores[finite], counts[finite], "a density of several")
        lowest = float(scores[finite].min())
        # As deep again as the lowest score is, so that rounding leaves a distance.
        return replace(self, ceiling=lowest - abs(lowest) - _DEEP * unit, unit=unit)

    def ranges_outside(self, X: np.ndarray) -> np.ndarray:
        """Ranges by which the farthest feature of each row of X (n, p) lies outside, shape (n,)."""
        with np.errstate(over="ignore"):
            place = (X - self.low) / self.width
        return np.asarray(np.maximum(-place, place - 1).max(axis=1))

    def hold_down(self, scores: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the scores (n,) of rows X (n, p), at most the ceiling for rows outside."""
        outside = np.maximum(self.ranges_outside(X), RANGES)
        ceiling = np.where(
            outside > RANGES, self.ceiling - self.unit * np.log(outside / RANGES), np.inf
        )
        return np.asarray(np.minimum(scores, ceiling))


@dataclass(frozen=True, eq=False)
class Fence:
    """Rows that a density is fitted on: all, or all but a few that are far from the others.

    Far rows would set the scale of a covariance. They stay where they are more than a twentieth of
    all rows, or half of their class. A row is far if a feature lies more than `limit` (p,) from
    `centre` (p,).
    """

    centre: np.ndarray
    limit: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> Self:
        """Find the fence about rows X (n, p), with labels and weights."""
        fence = cls(*limits(X, w))
        far = ~fence.near(X)
        counts = np.ones(len(X)) if w is None else w
        labels = np.unique(np.ravel(y), return_inverse=True)[1]
        crowded = np.bincount(labels, far * counts) > np.bincount(labels, counts) / 2
        many = np.average(far, weights=counts) > FEW
        return replace(fence, limit=fence.limit + np.inf) if many or crowded.any() else fence

    def near(self, X: np.ndarray) -> np.ndarray:
        """Return which rows of X (n, p) are fitted, shape (n,)."""
        return np.asarray(~outside_of(self.centre, self.limit, X).any(axis=1))


def behind_normalizer(part: Any) -> Any:
    """Return the density of a pipeline ``Normalizer() -> density``; None for any other part."""
    if type(part) is not Pipeline or len(part.steps) != 2:
        return None
    first, last = part.steps[0][1], part.steps[1][1]
    return last if type(first) is Normalizer and first.norm == "l2" else None


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Divide each row of X (n, p) by its length, as ``Normalizer().transform(X)`` does."""
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    lengths[lengths < _NO_LENGTH] = 1.0
    return np.asarray(X / lengths[:, None])


def _check_proba(proba: Any, y: Any, n: int) -> Rows | None:
    if proba is None:
        return None
    if y is None:
        raise ValueError("proba was given without y: errors of a classifier need the labels")
    expected, got = (n, len(np.unique(y))), np.shape(proba)
    if got != expected:
        raise ValueError(f"proba must have a column for each label in y, {expected}, got {got}")
    P = np.asarray(proba, dtype=np.float64)
    check_simplex("proba", P)
    return P


def _take(array: Rows | None, rows: Rows) -> Rows | None:
    return None if array is None else array[rows]
