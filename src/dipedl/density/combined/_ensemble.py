"""Several densities of the same features, fitted side by side and scored together."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import column_or_1d

from ...calibration.crossfit import content_folds, fold_pairs
from ...calibration.pseudo_outliers import make_pseudo_outliers
from ...features.scaling import RANGES
from ...fitting import Stopwatch, all_or_nothing
from ...inputs import (
    check_weights,
    require_fitted,
    validate_features,
    validate_fit_features,
)
from ...maths.array_namespace import unmasked
from ...maths.checks import check_magnitude, check_simplex
from ...maths.scores import confidence
from ...maths.seeds import seed
from .._fitting import clone_with_selected, fitted_density, for_own_rows, log_density
from .._mixin import LogDensityMixin
from ._candidates import (
    CLASSIFIER,
    Candidates,
    Rows,
    blind_to_distance,
    named_candidates,
    shift_of,
)
from ._reach import Fence, Reach
from ._unit_length import behind_normalizer, unit_rows

_FOLDS = 5
_FAILURES = (ValueError, TypeError, FloatingPointError, MemoryError)


class DensityEnsemble(LogDensityMixin, BaseEstimator, ABC):
    """What densities made of several share; `FusedDensity` names the attributes.

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
            _check_proba(proba, y, len(X))
            y = np.zeros(len(X), int) if y is None else column_or_1d(unmasked("y", y), warn=True)
            w = check_weights(sample_weight, X)
            P = None if proba is None else np.asarray(proba, dtype=np.float64)
            if w is not None and (w == 0).any():
                # A row of weight zero is absent.
                X, y, P = X[w > 0], y[w > 0], None if P is None else P[w > 0]
                w = w[w > 0]
            self.fit_estimators(X, y, w).find_blind(X)
            return self._fit_combiner_in_folds(X, y, w, P)

    def _fit_combiner_in_folds(
        self, X: np.ndarray, y: np.ndarray, w: np.ndarray | None, P: np.ndarray | None
    ) -> Self:
        pairs = list(
            fold_pairs(content_folds(X, y, _FOLDS, seed(self.random_state), together=True))
        )
        if not pairs:
            raise ValueError(
                f"{type(self).__name__} needs a class with at least 3 samples to hold some out, "
                f"got n_samples = {len(X)} in {len(np.unique(y))} classes"
            )
        folds = [
            self._template(y, rows).fit_estimators(X[rows], y[rows], _taken(w, rows))
            for rows, _ in pairs
        ]
        scores = [
            fold.component_scores(X[rows], _taken(P, rows))
            for fold, (_, rows) in zip(folds, pairs, strict=True)
        ]
        held = np.concatenate([rows for _, rows in pairs])
        # Only EvidenceModel can ask the classifier for its probabilities of pseudo-outliers.
        made = {} if P is not None else self._pseudo_outliers(X, y, w, pairs[0][1])
        return self.fit_combiner(
            self.merge_folds([fold.failed_ for fold in folds], scores),
            np.unique(y, return_inverse=True)[1][held],
            proba=_taken(P, held),
            sample_weight=_taken(w, held),
            pseudo_outliers={kind: folds[0].component_scores(Z) for kind, Z in made.items()},
        ).warn_if_blind()

    def fit_estimators(
        self,
        X: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None = None,
        watch: Stopwatch | None = None,
    ) -> Self:
        """Fit every candidate on features X (n, p), labels y (n,) and weights; note what failed.

        A few rows that are far from all others are left out. With a `watch` each candidate is told.
        """
        self.n_features_in_ = X.shape[1]
        near = Fence.of(X, y, w).near(X)
        X, y, w = X[near], y[near], _taken(w, near)
        self.reach_ = Reach.of(X)
        self.estimators_: dict[str, Any] = {}
        self.failed_: dict[str, str] = {}
        self.blind_: set[str] = set()
        for name, density in named_candidates(self.candidates):
            try:
                self.estimators_[name] = fitted_density(density, X, y, w, self.random_state)
            except _FAILURES as error:
                self.failed_[name] = f"{type(error).__name__}: {error}"
            if watch is not None:
                why = self.failed_.get(name)
                watch.say(f"candidate {name} {f'failed: {why}' if why else 'fitted'}")
        self._require_an_estimator()
        return self

    def find_blind(self, X: np.ndarray) -> Self:
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
        """An unfitted copy of the candidates that could be fitted, with the settings selected."""
        named = dict(named_candidates(self.candidates))
        kept = [(name, _selected(part, named[name])) for name, part in self.estimators_.items()]
        unfitted: Self = clone(self).set_params(candidates=kept)
        return unfitted

    def for_own_rows(self) -> Self:
        """The fitted densities as they score the rows of their fit."""
        density = copy(self)
        density.estimators_ = {name: for_own_rows(part) for name, part in self.estimators_.items()}
        return density

    def merge_folds(
        self, failed: Sequence[Mapping[str, str]], scores: Sequence[Mapping[str, Rows]]
    ) -> dict[str, Rows]:
        """Components of the held-out rows of all folds, given those of each, and what failed there.

        Drops the candidates that failed in a fold, or whose scores shift from fold to fold.
        """
        self.drop_failed(failed)
        self.drop_unsteady(scores)
        names = [name for name in scores[0] if name in self.estimators_ or name == CLASSIFIER]
        return {name: np.concatenate([s[name] for s in scores]) for name in names}

    def drop_failed(self, folds: Sequence[Mapping[str, str]]) -> Self:
        """Drop the candidates that failed in one of the folds, with the reason given there."""
        for failed in folds:
            for name, why in failed.items():
                if name in self.estimators_:
                    self._drop(name, f"without a part of the rows: {why}")
        self._require_an_estimator()
        return self

    def drop_unsteady(self, folds: Sequence[Mapping[str, Rows]]) -> Self:
        """Drop the candidates whose held-out scores shift from fold to fold by their own spread.

        An alarm threshold from the scores of one fold means nothing for another fold, nor for the
        fit on all rows. Of those that see distance the steadiest stays.
        """
        shifts = {name: shift_of([fold[name] for fold in folds]) for name in self.estimators_}
        seeing = {name: shifts[name] for name in shifts if name not in self.blind_} or shifts
        steadiest = min(seeing, key=lambda name: seeing[name])
        unsteady = {name: shift for name, shift in shifts.items() if shift > 1}
        unsteady.pop(steadiest, None)
        for name, shift in unsteady.items():
            self._drop(
                name,
                f"its scores of held-out rows shift by {shift:.1f} times their spread from "
                "fold to fold: a few rows far from all others, or features that repeat one another",
            )
        return self

    def _drop(self, name: str, why: str) -> None:
        del self.estimators_[name]
        self.failed_[name] = why

    def component_scores(self, X: np.ndarray, proba: np.ndarray | None = None) -> dict[str, Rows]:
        """Scores of X (n, p) by each estimator, and by the classifier if `proba` (n, k) is given.

        Higher is more typical; those of the estimators in nats, each up to its own constant.
        """
        require_fitted(self, "estimators_")
        return self._components(X, proba, [*self.estimators_, CLASSIFIER])

    def _components(
        self, X: np.ndarray, proba: np.ndarray | None, names: Sequence[str]
    ) -> dict[str, Rows]:
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

    def score_samples(self, X: Any, proba: Any = None) -> np.ndarray:
        """Combined score of X (n, p), shape (n,); `proba` (n, k) as in ``fit``."""
        require_fitted(self, "component_names_")
        X = validate_features(self, X)
        given = None if proba is None else np.asarray(proba, dtype=np.float64)
        if self.with_classifier_ != (given is not None):
            wanted = "needs" if given is None else "was fitted without"
            raise ValueError(
                f"{type(self).__name__} {wanted} proba, the class probabilities of the rows; give "
                "them to both fit and score_samples, or to neither"
            )
        return self.reach_.held_down(
            self.combine(self._components(X, given, self.component_names_)), X
        )

    @abstractmethod
    def fit_combiner(
        self,
        scores: Mapping[str, Rows],
        y: np.ndarray,
        *,
        proba: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
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
            warnings.warn(
                f"the score is that of {[*self.voting_]}, which do not fall with the distance from "
                "all data: an input far from everything is flagged only where a feature lies more "
                f"than {RANGES:g} ranges outside of the rows seen; add a candidate that sees "
                "distance, such as ('gaussians', GDADensity())",
                UserWarning,
                stacklevel=4,
            )
        return self

    @abstractmethod
    def combine(self, scores: Mapping[str, Rows]) -> np.ndarray:
        """One score per row, shape (n,), from components; higher is more typical."""

    def combine_held_out(
        self, scores: Mapping[str, Rows], sample_weight: np.ndarray | None = None
    ) -> np.ndarray:
        """`combine` for the rows that the combiner was learned from, scored as new ones are."""
        return self.combine(scores)

    def _template(self, y: np.ndarray, rows: np.ndarray) -> Self:
        """An unfitted copy for a fold; settings selected on all classes need all classes."""
        whole = len(np.unique(y[rows])) == len(np.unique(y))
        return self.clone_with_selected() if whole else clone(self)

    def _pseudo_outliers(
        self, X: np.ndarray, y: np.ndarray, w: np.ndarray | None, rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        random_state = seed(self.random_state)
        weights = _taken(w, rows)
        return make_pseudo_outliers(
            X[rows], y[rows], sample_weight=weights, random_state=random_state
        )

    def _require_an_estimator(self) -> None:
        if not self.estimators_:
            reasons = "\n".join(f"  {name}: {why}" for name, why in self.failed_.items())
            raise ValueError(f"every candidate density failed:\n{reasons}")


def _check_proba(proba: Any, y: Any, n: int) -> None:
    if proba is None:
        return
    if y is None:
        raise ValueError("proba was given without y: errors of a classifier need the labels")
    expected, got = (n, len(np.unique(y))), np.shape(proba)
    if got != expected:
        raise ValueError(f"proba must have a column for each label in y, {expected}, got {got}")
    check_simplex("proba", np.asarray(proba, dtype=np.float64))


def _taken(array: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if array is None else array[rows]


def _selected(part: Any, template: Any) -> Any:
    """The candidate to fit in the folds, with the settings that the fitted `part` has selected."""
    if not isinstance(part, Pipeline):
        return clone_with_selected(part, template)
    name, last = part.steps[-1]
    return clone(template).set_params(**{name: clone_with_selected(last, template.steps[-1][1])})
