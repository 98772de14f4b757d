"""Several densities of the same features: fitted side by side, fused into one, one chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, DensityMixin, clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.multiclass import check_classification_targets

from ..calibration.crossfit import content_folds, fold_pairs
from ..calibration.pseudo_outliers import draw_pseudo_outliers
from ..dirichlet import confidence
from ..evidence.normalizers import BaseNormalizer, lower_tail_unit, rank_table
from ..features.scaling import FEW, RANGES, limits, outside_of
from ..inputs import require_fitted, validate_features
from ..maths.arrays import (
    Array,
    check_flag,
    check_magnitude,
    check_number,
    check_proba,
    special_functions,
)
from ..maths.scores import auroc, auroc_variance, placements
from ..maths.seeds import seed
from ..protocols import atomic
from ..writing.finding import warn_caller
from ..writing.progress import Stopwatch
from .base import (
    check_training_rows,
    clone_with_selected,
    exclude_self,
    fit_copy,
    leave_one_out,
    log_density,
    score_parts,
)
from .gaussian import GDADensity, RelativeDensity
from .knn import KNNDensity

__all__ = ["DensitySelector", "FusedDensity"]

#: Name of the component that the classifier itself gives.
CLASSIFIER = "classifier"
#: Rows that the nearest neighbours are sought among.
NEIGHBOUR_ROWS = 8_000

Candidates = list[tuple[str, Any]]
#: Scores of some rows, by the name of the component that gives them.
Scores = Mapping[str, np.ndarray]
_FOLDS = 5
_FAILURES = (ValueError, TypeError, FloatingPointError, MemoryError)
#: How far out a ray is asked whether the score still falls, and how many axes are rays.
_DISTANCES = (1e4, 1e8)
_AXES = 50
#: Lower-tail units that the ceiling lies below the lowest held-out score: no half-point is as low.
_DEEP = 20.0
#: Weight of the mean normal score, which orders what no component objects to.
TIE_BREAK = 1e-3
#: Standard deviations below its median at which a density begins to object.
MARGIN = 1.0
#: Name of the candidate that is all others together.
FUSED = "fused"
_FEWEST_ERRORS = 5


class DensityEnsemble(DensityMixin, BaseEstimator, ABC):
    """Base of densities made of several; `FusedDensity` names the attributes.

    They are fitted in two steps: ``fit_estimators`` on rows, once for all rows and once for each
    fold; then ``fit_combiner`` on the scores of held-out rows. `EvidenceModel` takes the two steps
    itself; ``fit`` alone does both, with folds of its own. ``blind_`` holds those whose score does
    not fall far from all data, ``reach_`` the range of the rows, outside of which every score is
    held down.
    """

    normalized = False
    _dtypes: Any = np.float64

    candidates: Candidates | None
    random_state: Any

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_candidates(self.candidates)

    @abstractmethod
    def fit_combiner(
        self,
        scores: Scores,
        outliers: Mapping[str, Scores],
        w: np.ndarray | None = None,
        wrong: np.ndarray | None = None,
    ) -> Self:
        """Learn how to use the components from those of m held-out rows with weights (m,).

        `outliers` are the components of pseudo-outliers made of these rows, by kind; `wrong` (m,)
        says where the classifier errs, if that is known.
        """

    @property
    @abstractmethod
    def voting_(self) -> tuple[str, ...]:
        """Names of the estimators that the score depends on."""

    @abstractmethod
    def combine(self, scores: Scores) -> np.ndarray:
        """Return one score per row, shape (n,); higher is more typical."""

    @abstractmethod
    def combine_held_out(self, scores: Scores, w: np.ndarray | None = None) -> np.ndarray:
        """`combine` for the rows that the combiner was learned from, scored as new ones are."""

    @atomic
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
        self.check_parameters()
        X, labels, w = check_training_rows(self, X, y, sample_weight)
        check_magnitude("X", X)
        if labels is not None:
            check_classification_targets(labels)
        P = None
        if proba is not None:
            if labels is None:
                raise ValueError("proba needs y: errors of a classifier need the labels")
            P = check_proba("proba", proba, len(X), len(np.unique(labels)))
            self.n_classes_ = P.shape[1]
        y = np.zeros(len(X), int) if labels is None else labels
        # The columns of proba are the labels of all rows, also those of weight zero.
        classes = np.unique(y, return_inverse=True)[1]
        if w is not None and (w == 0).any():
            # A row of weight zero is absent.
            there = w > 0
            X, y, classes, P, w = X[there], y[there], classes[there], _take(P, there), w[there]
        self.fit_estimators(X, y, w).find_blind(X)
        number = seed(self.random_state)
        pairs = list(fold_pairs(content_folds(X, y, _FOLDS, number, together=True)))
        if not pairs:
            raise ValueError(
                f"{type(self).__name__} needs a class with at least 3 samples to hold some out, "
                f"got n_samples = {len(X)} in {len(np.unique(y))} classes"
            )
        folds, scores = [], []
        for train, held_out in pairs:
            # Settings selected on all classes need all classes.
            whole = len(np.unique(y[train])) == len(np.unique(y))
            fold = self.clone_with_selected() if whole else clone(self)
            folds.append(fold.fit_estimators(X[train], y[train], _take(w, train)))
            scores.append(fold.component_scores(X[held_out], _take(P, held_out)))
        made: dict[str, np.ndarray] = {}
        if P is None:
            # Only EvidenceModel can ask the classifier for its probabilities of pseudo-outliers.
            first = pairs[0][1]
            made = draw_pseudo_outliers(X[first], y[first], _take(w, first), number)
        outliers = {kind: folds[0].component_scores(Z) for kind, Z in made.items()}
        rows = np.concatenate([held_out for _, held_out in pairs])
        wrong = None if P is None else P[rows].argmax(axis=1) != classes[rows]
        merged = self.merge_folds([fold.failed_ for fold in folds], scores)
        self.fit_combiner(merged, outliers, _take(w, rows), wrong)
        return self.warn_if_blind()

    def fit_estimators(
        self,
        X: np.ndarray,
        y: np.ndarray,
        w: np.ndarray | None = None,
        watch: Stopwatch | None = None,
    ) -> Self:
        """Fit every candidate on features X (n, p), labels y (n,) and weights; note what failed.

        A few rows that are far from all others are left out. A `watch` is told of each candidate.
        """
        self.n_features_in_ = X.shape[1]
        near = np.asarray(~outside_of(*find_fence(X, y, w), X).any(axis=1))
        X, y, w = X[near], y[near], _take(w, near)
        self.reach_ = Reach.of(X)
        self.estimators_: dict[str, Any] = {}
        self.failed_: dict[str, str] = {}
        self.blind_: set[str] = set()
        for name, density in check_candidates(self.candidates):
            try:
                self.estimators_[name] = fit_copy(density, X, y, w, self.random_state)
            except _FAILURES as error:
                self.failed_[name] = f"{type(error).__name__}: {error}"
            if watch is not None:
                why = self.failed_.get(name)
                watch.say(f"candidate {name} {f'failed: {why}' if why else 'fitted'}")
        for part in self.estimators_.values():
            if isinstance(part, RelativeDensity):
                part.share_foreground(self.estimators_.values())
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
        """Return an unfitted copy of the candidates that could be fitted, with their settings."""
        named = dict(check_candidates(self.candidates))
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

    def exclude_self(self) -> Self:
        """Return the fitted densities as they score the rows of their fit."""
        density = copy(self)
        density.estimators_ = {name: exclude_self(part) for name, part in self.estimators_.items()}
        return density

    def merge_folds(
        self, failed: Sequence[Mapping[str, str]], scores: Sequence[Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
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

    def drop_unsteady(self, folds: Sequence[Mapping[str, np.ndarray]]) -> None:
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

    def _drop(self, name: str, why: str) -> None:
        del self.estimators_[name]
        self.failed_[name] = why

    def _require_an_estimator(self) -> None:
        if not self.estimators_:
            reasons = "\n".join(f"  {name}: {why}" for name, why in self.failed_.items())
            raise ValueError(f"every candidate density failed:\n{reasons}")

    def component_scores(
        self, X: np.ndarray, proba: np.ndarray | None = None, names: Sequence[str] | None = None
    ) -> dict[str, np.ndarray]:
        """Score X (n, p) by each estimator, and by the classifier if `proba` (n, k) is given.

        Higher is more typical; those of the estimators in nats, each up to its own constant. With
        `names`, those alone.
        """
        parts = self.estimators_
        if names is not None:
            parts = {name: part for name, part in parts.items() if name in names}
        scores = score_parts(parts, X)
        if proba is not None and (names is None or CLASSIFIER in names):
            scores[CLASSIFIER] = confidence(proba)
        return scores

    def leave_one_out(
        self, Z: np.ndarray, y: np.ndarray, w: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Return component scores of rows Z (n, p) of the fit, each by the fit to all others.

        Of those estimators alone that can tell without a new fit. Rows that the fit has left out,
        far from all others, are scored as they are.
        """
        inside = self.reach_.ranges_outside(Z) <= 0
        scores = {}
        for name, part in self.estimators_.items():
            known = leave_one_out(part, Z[inside], y[inside], _take(w, inside))
            if known is not None and np.isfinite(known).all():
                scores[name] = np.empty(len(Z))
                scores[name][inside] = known
                if not inside.all():
                    scores[name][~inside] = log_density(part, Z[~inside])
        return scores

    def score_samples(self, X: Any, proba: Any = None) -> np.ndarray:
        """Combined score of X (n, p), shape (n,); `proba` (n, k) as in ``fit``."""
        require_fitted(self, "component_names_")
        Z = validate_features(self, X)
        if proba is not None:
            proba = check_proba("proba", proba, len(Z), getattr(self, "n_classes_", "k"))
        with np.errstate(all="ignore"):
            return self.log_density(Z, proba)

    def log_density(self, Z: np.ndarray, proba: np.ndarray | None = None) -> np.ndarray:
        """Return `score_samples` of features Z (n, p) that were checked before."""
        if self.with_classifier_ != (proba is not None):
            needs = "needs" if proba is None else "was fitted without"
            raise ValueError(
                f"{type(self).__name__} {needs} proba, the class probabilities of the rows; give "
                "them to both fit and score_samples, or to neither"
            )
        scores = self.combine(self.component_scores(Z, proba, self.component_names_))
        return self.reach_.hold_down(scores, Z)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean score of the rows of X (n, p); y is ignored."""
        return float(self.score_samples(X).mean())

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


@dataclass(eq=False, repr=False)
class FusedDensity(DensityEnsemble):
    r"""A product of experts: every density, and the classifier, may object to an input.

    Scores of held-out in-distribution rows turn each component into normal scores, z_c, linear
    beyond the rows seen. Then

    .. math:: s(x) = -\sqrt{-2 \sum_c w_c \log \Phi(z_c(x) + t_c)} + \epsilon \bar z(x),

    with :math:`t_c` = 0 for the classifier and `margin` for a density. Each expert
    :math:`\Phi(z_c + t_c)^{w_c}` is flat where an input is typical for it and falls off like a
    normal below: it can veto and cannot vouch. With a margin of 1 a density lowers the score from
    one standard deviation below its median on; above that the classifier ranks. The square root
    puts s on the scale of standard deviations; the last term, :math:`\epsilon` = 1e-3, only breaks
    ties.

    With ``margin=0`` the sum is Fisher's combination of the one-sided p-values :math:`\Phi(z_c)`,
    weighted. The components are dependent, so it has no chi-square law; nothing here uses one:
    thresholds and p-values come from s on held-out rows, and are valid whatever the dependence.

    A component weighs :math:`w_c = \max(0, 2 A_c - 1)^2`, with A_c the mean AUROC at which it tells
    held-out rows from pseudo-outliers made of them: a component that cannot has weight 0. Without
    pseudo-outliers (features that are not numbers) all weigh the same.

    Parameters
    ----------
    candidates : list of (str, density), optional
        The densities by name; a density may be a scikit-learn pipeline of transformers that ends in
        one. None takes six: Gaussians per class, with their own covariances, with a shared one, and
        on features of unit length; relative to one Gaussian of all rows; nearest neighbours, on
        features as they are and on unit length.
    margin : float, default=1.0
        Standard deviations below its median from which on a density lowers the score, >= 0.
    random_state : int or None, default=None
        Seed of the pseudo-outliers, and of candidates without a seed of their own.

    Attributes
    ----------
    estimators_ : dict of str to density
        The fitted candidates.
    failed_ : dict of str to str
        Candidates that could not be used, and why.
    n_classes_ : int
        Number of classes, if probabilities were given to ``fit``.
    component_names_ : tuple of str
        The components in use: estimators, and "classifier" if probabilities were given.
    normal_scores_ : dict of str to normaliser
        Map of each component to its normal score.
    weights_ : dict of str to float
        Weight w_c of each component.
    pseudo_outlier_auroc_ : dict of str to dict
        By component and kind of pseudo-outlier: how well it tells held-out rows from them.

    References
    ----------
    Hinton, "Training products of experts by minimizing contrastive divergence", Neural Computation
    14 (2002). Fisher, "Statistical methods for research workers" (1925), section 21.1; Vovk, Wang,
    "Combining p-values via averaging", Biometrika 107 (2020), on dependence. Hendrycks, Mazeika,
    Dietterich, "Deep anomaly detection with outlier exposure", ICLR (2019).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.density import FusedDensity
    >>> X, y = load_iris(return_X_y=True)
    >>> density = FusedDensity().fit(X, y)
    >>> bool(density.score_samples(X).mean() > density.score_samples(X + 3).max())
    True
    """

    candidates: Candidates | None = None
    margin: float = MARGIN
    random_state: Any = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        super().check_parameters()
        check_number("margin", self.margin, "finite and >= 0", lambda x: x >= 0)

    def fit_combiner(
        self,
        scores: Scores,
        outliers: Mapping[str, Scores],
        w: np.ndarray | None = None,
        wrong: np.ndarray | None = None,
    ) -> Self:
        """Learn the normal scores and the weights of the components; see `DensityEnsemble`."""
        self.normal_scores_: dict[str, NormalScores] = {}
        for name, column in scores.items():
            try:
                self.normal_scores_[name] = NormalScores().fit(column, w, source="held-out rows")
            except ValueError as error:
                self.estimators_.pop(name, None)
                self.failed_[name] = str(error)
        if not set(self.normal_scores_) - {CLASSIFIER}:
            self._require_an_estimator()
        self.with_classifier_ = CLASSIFIER in scores
        self.component_names_ = tuple(self.normal_scores_)
        self.pseudo_outlier_auroc_ = {
            name: _auroc_by_kind(scores[name], {k: s[name] for k, s in outliers.items()}, w)
            for name in self.component_names_
        }
        self.weights_ = _weights(self.pseudo_outlier_auroc_)
        self.reach_ = self.reach_.below(self.combine(scores), w)
        return self

    def learn_ranks(self, scores: Scores, w: np.ndarray | None = None) -> Self:
        """Learn the normal scores anew, from other scores of held-out rows; weights stay."""
        for name in self.component_names_:
            self.normal_scores_[name] = NormalScores().fit(scores[name], w, source="held-out rows")
        self.reach_ = self.reach_.below(self.combine(scores), w)
        return self

    @property
    def voting_(self) -> tuple[str, ...]:
        """The densities of positive weight."""
        return tuple(name for name in self.estimators_ if self.weights_[name] > 0)

    def combine(self, scores: Scores) -> np.ndarray:
        """Return the fused score s, shape (n,), in standard deviations."""
        tables = self.normal_scores_.items()
        return self._fuse([table.transform(scores[name]) for name, table in tables])

    def combine_held_out(self, scores: Scores, w: np.ndarray | None = None) -> np.ndarray:
        """`combine`, with normal scores of each row that were learned without it.

        A row that takes part in its own normal score is never beyond the rows seen, as new ones
        are: thresholds from such scores would be crossed too often.
        """
        tables = self.normal_scores_.items()
        return self._fuse([t.leave_one_out(scores[name], w) for name, t in tables])

    def _fuse(self, z: Sequence[np.ndarray]) -> np.ndarray:
        names = list(self.normal_scores_)
        margins = np.array([0.0 if name == CLASSIFIER else self.margin for name in names])
        return np.asarray(fuse_scores(np.array(z), margins, [self.weights_[n] for n in names]))


@dataclass(eq=False, repr=False)
class DensitySelector(DensityEnsemble):
    """The density that serves a classifier best, chosen without out-of-distribution data.

    Candidates are ranked on rows that neither they nor the classifier were fitted on, by the mean
    of two AUROCs: how well they spot the classifier's own errors (if at least five are there), and
    how well they tell the rows from pseudo-outliers made of the rows. Neither is enough alone:
    errors reward densities that repeat the classifier, pseudo-outliers reward densities that see
    only what is far. One of the candidates is the fusion of the others with the classifier's
    confidence, `FusedDensity`; it is chosen unless another one is better by more than one standard
    error, for a fusion cannot fail as one density can. A candidate that is blind to distance, such
    as any density of features of unit length or a ratio, ranks behind all others, and so does a
    fusion in which only such ones vote: what lies far from all data must lose its evidence. An
    input more than three ranges of a feature outside of the rows seen scores below all held-out
    rows, and more so the farther it is. Up to a twentieth of the rows, far from all others, are
    left out of the fits.

    Parameters
    ----------
    candidates : list of (str, density), optional
        See `FusedDensity`.
    fuse : bool, default=True
        Whether the fusion of all is a candidate too. It is the only one that looks at the
        classifier's probabilities.
    random_state : int or None, default=None
        Seed of the pseudo-outliers, and of candidates without a seed of their own.

    Attributes
    ----------
    choice_, runner_up_ : str
        Names of the best and the second best candidate; there is no second of one.
    ranking_ : list of dict
        By rank, the choice first: "name", "score" (the criterion), "standard_error", "blind" (to
        distance), "errors" (AUROC of the classifier's errors, NaN if unknown), "pseudo_outliers"
        (mean AUROC), and one entry per kind of pseudo-outlier. Then the candidates that failed:
        "name", "failed".
    estimators_, failed_, n_classes_
        As in `FusedDensity`.
    component_names_ : tuple of str
        The components that the choice needs.
    fusion_ : FusedDensity or None
        The fusion, if it was chosen.

    Notes
    -----
    Pseudo-outliers stand for unknown inputs. They say nothing about inputs that they do not
    resemble, such as a new class inside the range of the known classes. Of equal scores the
    candidate named first wins. Without errors and pseudo-outliers to judge by, scores are NaN, and
    the fusion is taken, or else the first candidate that is not blind to distance.

    References
    ----------
    Hendrycks, Gimpel, "A baseline for detecting misclassified and out-of-distribution examples in
    neural networks", ICLR (2017), on errors; `dipedl.calibration` on pseudo-outliers. Breiman,
    Friedman, Olshen, Stone, "Classification and regression trees" (1984), section 3.4, on the rule
    of one standard error; DeLong, DeLong, Clarke-Pearson, Biometrics 44 (1988), on that of an
    AUROC.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl.density import DensitySelector
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = DensitySelector(fuse=False).fit(X, y)
    >>> selector.choice_ in selector.estimators_, len(selector.ranking_)
    (True, 6)
    """

    candidates: Candidates | None = None
    fuse: bool = True
    random_state: Any = None

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        super().check_parameters()
        check_flag("fuse", self.fuse)

    def fit_combiner(
        self,
        scores: Scores,
        outliers: Mapping[str, Scores],
        w: np.ndarray | None = None,
        wrong: np.ndarray | None = None,
    ) -> Self:
        """Rank the candidates and choose; see `DensityEnsemble`."""
        fusion = FusedDensity(self.candidates, random_state=self.random_state)
        fusion.estimators_, fusion.failed_ = self.estimators_, self.failed_
        fusion.reach_ = self.reach_
        # It also drops the candidates whose scores are of no use: both share `estimators_`.
        fusion.fit_combiner(scores, outliers, w)
        self.with_classifier_ = fusion.with_classifier_
        rows = []
        for name in [*self.estimators_, *[FUSED] * self.fuse]:
            score = fusion.combine if name == FUSED else itemgetter(name)
            made = {kind: score(components) for kind, components in outliers.items()}
            votes = fusion.voting_ if name == FUSED else (name,)
            row = _judge(name, score(scores), made, w, wrong)
            rows.append(row | {"blind": self.blind_.issuperset(votes)})
        rows.sort(key=lambda row: (row["blind"], -row["score"]))
        best, blind = rows[0]["score"] - rows[0]["standard_error"], rows[0]["blind"]
        # Where nothing can be judged all scores are NaN: no candidate is better than the fusion.
        rows.sort(
            key=lambda row: row["name"] != FUSED or row["score"] < best or row["blind"] > blind
        )
        failed = [{"name": name, "failed": why} for name, why in self.failed_.items()]
        self.ranking_: list[dict[str, Any]] = [*rows, *failed]
        self.choice_ = str(rows[0]["name"])
        self.runner_up_ = str(rows[1]["name"]) if len(rows) > 1 else None
        self.fusion_ = fusion if self.choice_ == FUSED else None
        self.component_names_ = fusion.component_names_ if self.fusion_ else (self.choice_,)
        self.reach_ = self.reach_.below(self.combine(scores), w)
        return self

    def learn_ranks(self, scores: Scores, w: np.ndarray | None = None) -> Self:
        """Learn the normal scores anew, from other scores of held-out rows; the choice stays."""
        if self.fusion_ is not None:
            self.fusion_.learn_ranks(scores, w)
        self.reach_ = self.reach_.below(self.combine(scores), w)
        return self

    @property
    def voting_(self) -> tuple[str, ...]:
        """The choice, or the densities of positive weight in it."""
        return (self.choice_,) if self.fusion_ is None else self.fusion_.voting_

    def combine(self, scores: Scores) -> np.ndarray:
        """Return the score of the choice, shape (n,)."""
        return scores[self.choice_] if self.fusion_ is None else self.fusion_.combine(scores)

    def combine_held_out(self, scores: Scores, w: np.ndarray | None = None) -> np.ndarray:
        """`combine` for the rows that the combiner was learned from, scored as new ones are."""
        if self.fusion_ is None:
            return self.combine(scores)
        return self.fusion_.combine_held_out(scores, w)


def _judge(
    name: str,
    scores: np.ndarray,
    outlying: Scores,
    weights: np.ndarray | None,
    wrong: np.ndarray | None,
) -> dict[str, Any]:
    """Return one row of the ranking; `outlying` are the scores of pseudo-outliers by kind."""
    by_kind = _auroc_by_kind(scores, outlying, weights)
    errors, pairs = np.nan, []
    if wrong is not None:
        w = np.ones(len(wrong)) if weights is None else weights
        if w[wrong].sum() >= _FEWEST_ERRORS:
            errors = auroc(scores[~wrong], scores[wrong], w[~wrong], w[wrong])
        if not np.isnan(errors):
            pairs.append((scores[~wrong], scores[wrong]))
    if outlying:
        pairs.append((scores, np.concatenate(list(outlying.values()))))
    outliers = float(np.mean(list(by_kind.values()))) if by_kind else np.nan
    criteria = [c for c in (errors, outliers) if not np.isnan(c)]
    error = np.sqrt(sum(auroc_variance(*pair) for pair in pairs)) / max(len(pairs), 1)
    return {
        "name": name,
        "score": float(np.mean(criteria)) if criteria else np.nan,
        "standard_error": float(error) if pairs else np.nan,
        "errors": errors,
        "pseudo_outliers": outliers,
        **by_kind,
    }


def _auroc_by_kind(
    scores: np.ndarray, outlying: Scores, weights: np.ndarray | None
) -> dict[str, float]:
    """Return how well scores tell the rows from each kind of `outlying` ones."""
    if not outlying:
        return {}
    below = placements(scores, np.concatenate(list(outlying.values())), weights)
    parts = np.split(below, np.cumsum([len(made) for made in outlying.values()])[:-1])
    return {kind: float(1 - np.mean(part)) for kind, part in zip(outlying, parts, strict=True)}


def _weights(auroc: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return ``max(0, 2 A - 1)^2`` of the mean AUROC; 1 for all where there is nothing to go by."""
    weights = {
        name: max(0.0, 2 * float(np.mean(list(by_kind.values()))) - 1) ** 2 if by_kind else 0.0
        for name, by_kind in auroc.items()
    }
    return weights if any(weights.values()) else dict.fromkeys(weights, 1.0)


def fuse_scores(z: Array, margins: Array, weights: Sequence[float]) -> Array:
    """Return ``-sqrt(-2 sum_c w_c log Phi(z_c + t_c)) + 1e-3 mean_c z_c``, shape (n,).

    z: normal scores (c, n) of c components; t: margins (c,); w: weights (c,).
    """
    # Skip zero weights: 0 * inf is NaN.
    voting = [c for c, weight in enumerate(weights) if weight > 0]
    experts = special_functions(z).log_ndtr(z + margins[:, None])
    objections = sum(weights[c] * experts[c] for c in voting)
    return -((-2 * objections) ** 0.5) + TIE_BREAK * (sum(z) / len(z))


class NormalScores(BaseNormalizer):
    """Normal scores of ranks, with the slope of the lower tail beyond the ranks.

    Attributes
    ----------
    knots_, normal_scores_, scale_, n_, source_
        As in `dipedl.evidence.RankNormal`, but `scale_` is the lower-tail unit.
    """

    def _learn(self, scores: np.ndarray, weights: np.ndarray) -> None:
        name = "the normal scores of a component"
        self.knots_, self.normal_scores_, _ = rank_table(scores, weights, name)
        self.scale_ = lower_tail_unit(scores, weights, name)

    def transform(self, log_density: np.ndarray) -> np.ndarray:
        """Return the normal scores of scores (n,), shape (n,); strictly increasing."""
        inside = np.minimum(np.maximum(log_density, self.knots_[0]), self.knots_[-1])
        beyond = (log_density - inside) / self.scale_
        return np.asarray(np.interp(inside, self.knots_, self.normal_scores_) + beyond)

    def leave_one_out(self, scores: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return normal scores of the rows of the fit, shape (m,), each by the ranks of all others.

        A weight counts a row that often; all but one of its copies stay.
        """
        at = np.searchsorted((self.knots_[1:] + self.knots_[:-1]) / 2, scores)
        mass = np.bincount(at, weights, minlength=len(self.knots_))
        below, left_out = np.cumsum(mass) - mass, np.minimum(mass, 1.0)
        others = mass.sum() - left_out
        own = special.ndtri((below + (mass - left_out) / 2) / others)
        centre = below + mass / 2
        left = special.ndtri(centre[:-1] / others[1:])
        right = special.ndtri((centre[1:] - left_out[:-1]) / others[:-1])
        # At a knot, interpolated from those left and right of it; at the ends, by the tail's slope.
        gap = np.diff(self.knots_)
        slope = (right[1:] - left[:-1]) / (gap[1:] + gap[:-1])
        first, last = right[0] - gap[0] / self.scale_, left[-1] + gap[-1] / self.scale_
        between = np.concatenate([[first], left[:-1] + slope * gap[:-1], [last]])
        return np.asarray(np.where(mass > 1, own, between)[at])


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


def check_candidates(candidates: Candidates | None) -> Candidates:
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


def blind_to_distance(part: Any, X: np.ndarray) -> bool:
    """Return whether the score fails to fall below all rows X (n, p), and on, on some ray.

    The rays leave the mean along axes, towards rows and at random; they are asked so far out that a
    density of directions alone no longer changes. A ratio is blind whatever they say: there are
    directions in which all classes have one mean.
    """
    if isinstance(part.steps[-1][1] if isinstance(part, Pipeline) else part, RelativeDensity):
        return True
    rows = X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]
    p, spread, middle = X.shape[1], X.std(axis=0), X.mean(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    axes = np.eye(p)[np.linspace(0, p - 1, min(p, _AXES)).astype(int)] * spread
    aside = np.random.default_rng(0).normal(size=(_AXES, p)) * spread
    rays, (nearer, farther) = np.vstack([axes, -axes, aside, rows - middle]), _DISTANCES
    points = np.concatenate([middle + nearer * rays, middle + farther * rays, rows])
    near, far, own = np.split(log_density(part, points), [len(rays), 2 * len(rays)])
    # Where both are -inf there is nothing further to fall.
    return not (((far < near - 1) & (far < own.min())) | np.isneginf(far)).all()


def _shift(folds: Sequence[np.ndarray]) -> float:
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
        place = (X - self.low) / self.width
        return np.asarray(np.maximum(-place, place - 1).max(axis=1))

    def hold_down(self, scores: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return the scores (n,) of rows X (n, p), at most the ceiling for rows outside."""
        outside = np.maximum(self.ranges_outside(X), RANGES)
        ceiling = np.where(
            outside > RANGES, self.ceiling - self.unit * np.log(outside / RANGES), np.inf
        )
        return np.asarray(np.minimum(scores, ceiling))


def find_fence(X: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return centre and limit (p,): rows of X (n, p) with a feature farther away are not fitted.

    A few rows far from all others would set the scale of a covariance. Where they are more than a
    twentieth of all rows, or half of their class, there is no limit.
    """
    centre, limit = limits(X, w)
    far = outside_of(centre, limit, X).any(axis=1)
    counts = np.ones(len(X)) if w is None else w
    labels = np.unique(np.ravel(y), return_inverse=True)[1]
    crowded = np.bincount(labels, far * counts) > np.bincount(labels, counts) / 2
    many = np.average(far, weights=counts) > FEW
    return centre, limit + np.inf if many or crowded.any() else limit


def _take(array: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if array is None else array[rows]
