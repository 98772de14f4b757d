"""Held-out rows: predictions on rows that nothing was fitted on, which all thresholds rest on.

Rows are held out by folds, or given apart from the fit. What makes them worth little (too few, seen
before, of one class, copies of one another) is found and warned of at once, with the remedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from .calibration.crossfit import (
    IN_SAMPLE,
    Pairs,
    explain_fold,
    first_folds,
    row_hash,
    source_of,
    splits,
)
from .calibration.pseudo_outliers import draw_pseudo_outliers
from .columns import as_numbers, column, is_frame, rows_in_form_of
from .density.base import (
    as_density,
    clone_with_selected,
    exclude_self,
    fit_density,
    is_frozen,
    log_density,
    takes_proba,
)
from .density.ensemble import DensityEnsemble, DensitySelector
from .evidence.normalizers import (
    alarm_threshold,
    is_spread,
    mean_and_deviation,
    weighted_quantile,
)
from .features.pipelines import is_narrow, learns_by_column
from .features.transformer import refit_feature_transformer
from .inputs import FittedClassifier, compute_features, one_thread
from .maths.scores import round_down
from .maths.seeds import seed
from .writing.finding import Finding, FindingWarning, Number, warn_caller
from .writing.progress import Stopwatch
from .writing.text import percent, plain_labels

__all__ = ["HeldOut", "Origin"]

#: How held-out rows were got: left out of a fit; passed as calibration rows; passed as calibration
#: rows but also present in the training rows; the training rows themselves; or the training rows of
#: a model whose density came fitted.
Origin = Literal["left out", "given", "given twice", "in-sample", "frozen density"]
#: Threshold that flags nothing but rows of score -inf, which cannot be computed with.
LOWEST = float(np.finfo(np.float32).min)
#: Hashes of rows that a fit keeps, to recognise its rows.
_HASHES = 1000
#: Pseudo-outliers of each kind that a fit keeps, to show what caution buys.
_OUTLIERS = 100
#: Share of new rows beyond what chance explains, and the level of the test for more.
_BEYOND_CHANCE, _LEVEL = 0.05, 1e-3
#: A column is continuous if more than this share of the different rows have a value of their own,
_CONTINUOUS = 0.5
#: and not a grid, in which more than this share of the steps from value to value are the same.
_ON_GRID = 0.1
#: Different rows below which nothing can be said about copies.
_FEWEST_DISTINCT = 30
#: A smaller share of copies among the rows hardly moves a threshold.
_MANY_COPIES = 0.05
#: Rows that are looked at for memorisation, at most and at least.
MOST_ROWS, FEWEST_ROWS = 1000, 100
#: A rise of the Brier score counts if it is this many standard errors, and at least this large.
_SIGMAS, _RISE = 3.0, 0.01
#: Errors of the nearest row beside which a classifier without one is suspect.
_ERRORS = 5
#: Coverage of the prediction sets that held-out rows are counted for, and its standard deviation.
_COVERAGE, _COVERAGE_SD = 0.9, 0.03
#: Confidence of the bound on an error rate without an error, by Clopper and Pearson.
_CONFIDENCE = 0.95
#: Realised rates are to lie within this share of the rate asked for, at one standard deviation.
_RELATIVE = 0.5
#: Fewer errors than this say nothing about which score spots errors.
_FEW_ERRORS = 10
#: A smaller share of copies hardly moves a quantile of the held-out rows.
_MOST_COPIES = 0.5


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions on ID rows that neither the density nor the classifier was fitted on.

    Attributes
    ----------
    scores : ndarray, shape (m,)
        Log-density in nats, or the score of a density that fuses several; -inf where the density
        is zero. Ascending once in order, see `sort`.
    source : str
        Where the rows came from, in words.
    weights : ndarray, shape (m,), or None
        How many inputs each row stands for.
    proba : ndarray, shape (m, k), or None
        Probabilities of the classifier; in a fitted `EvidenceModel` after its calibrator.
    labels : ndarray, shape (m,), or None
        Indices 0..k-1 of the true classes.
    components : ndarray, shape (m, c), or None
        Scores of the parts of a density that has several.
    component_names : tuple of str
        Their names.
    origin : Origin
        Where the rows came from, as far as guarantees depend on it.
    bare_proba : ndarray, shape (m, k), or None
        Probabilities of the classifier before its calibrator, where there is one.
    design_effect : float
        How many times the variance of the share of alarms is that of independent rows: above 1 for
        rows of groups that are like one another.
    Z : ndarray, shape (m, p), or None
        Features, while all is learned; they are not kept.
    outliers : HeldOut or None
        Scores and probabilities, before the calibrator, of some pseudo-outliers made of the rows.
    """

    scores: np.ndarray
    source: str
    weights: np.ndarray | None = None
    proba: Any = None
    labels: Any = None
    components: np.ndarray | None = None
    component_names: tuple[str, ...] = ()
    origin: Origin = "left out"
    bare_proba: Any = None
    design_effect: float = 1.0
    Z: np.ndarray | None = None
    outliers: HeldOut | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def total(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(len(self.scores) if self.weights is None else self.weights.sum())

    @property
    def counts(self) -> np.ndarray:
        """Weights, shape (m,); ones without weights."""
        return np.ones(len(self.scores)) if self.weights is None else self.weights

    @property
    def finite(self) -> np.ndarray:
        """Rows of finite score, shape (m,), bool."""
        return np.asarray(np.isfinite(self.scores))

    @property
    def has_labels(self) -> bool:
        """True if the classifier's probabilities and the true classes are known."""
        return self.proba is not None and self.labels is not None

    @property
    def wrong(self) -> np.ndarray:
        """Rows that the classifier gets wrong, shape (m,), bool; only if `has_labels`."""
        return np.asarray(self.proba.argmax(axis=1) != self.labels)

    @property
    def lowest(self) -> float:
        """Lowest score but for those of zero density; 0 without any other."""
        finite = self.scores[self.finite]
        return float(finite.min()) if len(finite) else 0.0

    def average(self, values: np.ndarray) -> float:
        """Return the weighted mean of one value per row."""
        return float(np.average(values, weights=self.counts))

    def quantile(self, q: float) -> float:
        """Return the lowest score with at least a share `q` of the inputs at or below it."""
        return weighted_quantile(self.scores, q, self.weights)

    def before_calibration(self) -> HeldOut:
        """Return the rows with the probabilities that the classifier itself gave."""
        proba = self.proba if self.bare_proba is None else self.bare_proba
        return replace(self, proba=proba, bare_proba=None)

    def sort(self) -> HeldOut:
        """Return the rows by ascending score."""
        rows = np.argsort(self.scores, kind="stable")
        arrays: dict[str, Any] = {
            name: v[rows] for name, v in vars(self).items() if isinstance(v, np.ndarray)
        }
        return replace(self, **arrays)

    def in_groups(self, groups: np.ndarray, rate: float) -> HeldOut:
        """Return the rows with the design effect of their groups (m,) on a share `rate` of alarms.

        Before `sort`, or with groups in that order.
        """
        flagged = self.scores < alarm_threshold(self.scores, rate, self.weights)
        return replace(self, design_effect=design_effect(flagged, groups, self.weights))

    def threshold(self, rate: float, name: str = "false_alarm_rate") -> float:
        """Return the score below which at most a share `rate` of new ID inputs lies.

        So low that rounding flags nothing; with a warning that names the argument, `LOWEST` where
        there are too few rows for another.
        """
        threshold = alarm_threshold(self.scores, rate, self.weights)
        if threshold > -np.inf or not np.isfinite(self.scores).all():
            return float(round_down(threshold))
        warn_caller(
            f"{name}={rate:g} needs at least {int(np.ceil(1 / rate)) - 1} held-out inputs, got "
            f"{self.total:g}: predict_ood will flag nothing but rows that cannot be computed with; "
            "hold out more (sample_weight counts rows: its sum is their number) or ask for a "
            "higher rate"
        )
        return LOWEST

    def count_classes(self, k: int) -> np.ndarray:
        """Return how many inputs of each of k classes were held out, shape (k,)."""
        return np.bincount(self.labels, weights=self.counts, minlength=k)

    def thresholds_by_class(self, rate: float, k: int) -> np.ndarray:
        """Return a threshold for each of k classes, of which at most a share `rate` lies below.

        `LOWEST` for a class of too few rows for another.
        """
        thresholds = np.full(k, LOWEST)
        for c in np.flatnonzero(self.count_classes(k) >= (1 / rate - 1) * (1 - 1e-9)):
            own = self.labels == c
            weights = None if self.weights is None else self.weights[own]
            thresholds[c] = round_down(alarm_threshold(self.scores[own], rate, weights))
        return thresholds


@dataclass(frozen=True, eq=False)
class Fold:
    """A fitted density and a fitted classifier, with rows that neither has seen.

    Attributes
    ----------
    density : density estimator
        Fitted; of a `DensityEnsemble` only the estimators are.
    features : transformer or None
        From inputs to what the density sees.
    classifier : FittedClassifier or None
        Without one the held-out rows have no probabilities.
    X, y, w : array-like (m, d), ndarray (m,) or None, ndarray (m,) or None
        Inputs, labels (class indices if there is a classifier) and weights.
    Z : ndarray, shape (m, p)
        Features of X.
    rows : ndarray of int, shape (m,), or None
        Which rows of the fit on all rows these are; None if they are none of them.
    density_labels : ndarray, shape (m,), or None
        Labels as the density was given them, if each row may be scored by the fit to all others:
        none has to stay with its copies or its group, and the features hardly depend on it.
    """

    density: Any
    features: Any
    classifier: FittedClassifier | None
    X: Any
    y: np.ndarray | None
    w: np.ndarray | None
    Z: np.ndarray
    rows: np.ndarray | None = None
    density_labels: np.ndarray | None = None

    def proba(self, X: Any) -> np.ndarray | None:
        """Class probabilities of X (n, d), shape (n, k); None without a classifier."""
        return None if self.classifier is None else self.classifier.proba(X)

    def leave_one_out(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return components of some of the rows, each by the fit to all others, where known."""
        if self.density_labels is None or not isinstance(self.density, DensityEnsemble):
            return {}
        w = None if self.w is None else self.w[rows]
        found = self.density.leave_one_out(self.Z[rows], self.density_labels[rows], w)

        def vary(scores: np.ndarray) -> bool:
            seen = np.isfinite(scores)
            return is_spread(*mean_and_deviation(scores[seen], None if w is None else w[seen]))

        # Rows may all be as far from the others but for rounding, as those of a full factorial
        # design are: nothing can be learned from that.
        return {name: scores for name, scores in found.items() if vary(scores)}

    def scores_of(
        self, rows: np.ndarray, P: np.ndarray | None, alone: Mapping[str, np.ndarray]
    ) -> np.ndarray:
        """Return scores of some of the rows, by their numbers; no row is its own neighbour.

        `P` (m, k) are probabilities by classifiers that have not seen the rows, `alone` those
        components that `leave_one_out` knows.
        """
        density, Z = exclude_self(self.density), self.Z[rows]
        if isinstance(density, DensityEnsemble):
            # As rows of folds are scored: nothing is held down for being out of reach.
            others = [name for name in density.component_names_ if name not in alone]
            scores = density.component_scores(Z, P, others)
            return np.asarray(density.combine({**scores, **alone}))
        return log_density(density, Z, P)

    def score_pseudo_outliers(
        self, random_state: int
    ) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, np.ndarray | None]]:
        """Return components and class probabilities of pseudo-outliers made of the rows, by kind.

        With a warning, without the kinds that the features or the classifier refuse by any error:
        between two codes of a category there may be no third.
        """
        rows = as_numbers(self.X.toarray() if is_narrow(self.X) else self.X)
        if rows is None:
            return {}, {}
        labels = np.zeros(self.X.shape[0]) if self.y is None else self.y
        outliers = draw_pseudo_outliers(rows, labels, self.w, random_state)
        scores, proba = {}, {}
        for kind in list(outliers):
            # One kind at a time: of wide data the features of all take more memory than the models.
            X = rows_in_form_of(self.X, outliers.pop(kind))
            try:
                P, Z = self.proba(X), compute_features(self.features, X)
            except Exception as error:
                warn_caller(
                    f"pseudo-outliers of kind {kind!r} are left out of the choice of a density: "
                    f"features or classifier refuse them ({type(error).__name__}: {error})"
                )
            else:
                scores[kind], proba[kind] = self.density.component_scores(Z, P), P
        return scores, proba


def fit_folds(
    evidence: Any, whole: Fold, y: np.ndarray, pairs: Pairs | None
) -> tuple[Iterable[Fold], Fold, str, Origin]:
    """Fit the parts of an evidence model without some rows; say where these rows came from.

    Parameters
    ----------
    evidence : EvidenceModel
        With features and density fitted to all rows.
    whole : Fold
        All rows, and what was fitted to them.
    y : ndarray, shape (n,)
        Labels.
    pairs : list of (train, held-out) ndarray of int, optional
        Those that ``cv`` gives for these rows, if it was asked already, or folds of groups.

    Returns
    -------
    folds : iterable of Fold
        Each is fitted when it is asked for: two of them never need memory at once. With `n_jobs`
        all are fitted in processes.
    whole : Fold
        That of all rows; with `density_labels` where its density may leave rows out one at a time.
    source : str
        Where the held-out rows came from, in words.
    origin : Origin
    """
    if isinstance(evidence.cv, str) and evidence.cv == IN_SAMPLE:
        source = f"the {len(y)} inputs the density was fitted on (in-sample)"
        return [whole], whole, source, "in-sample"
    if is_frozen(evidence.density):
        source = f"the {len(y)} inputs given to fit, by a density that was fitted before"
        return [whole], whole, source, "frozen density"
    by_content = pairs is None and isinstance(evidence.cv, str | Integral)
    many_copies = warn_of_copies(whole.X, whole.Z, by_content=by_content)
    if pairs is None:
        number = seed(evidence.random_state)
        every_pair, how = splits(evidence.cv, whole.X, y, None, number, together=many_copies)
        pairs = first_folds(every_pair) if isinstance(evidence.cv, str) else list(every_pair)
    else:
        how = source_of(evidence.cv, pairs)
    selected = clone_with_selected(evidence.density_, evidence.density)
    # A seed is drawn for each fold here: the same in one process and in many.
    steps = []
    for train, held_out in pairs:
        seeded = copy(evidence)
        if evidence.random_state is not None:
            seeded.random_state = seed(evidence.random_state)
        steps.append((seeded, whole, y, train, held_out, selected))
    source = f"{how} of {sum(len(held_out) for _, held_out in pairs)} inputs"
    if by_content and not many_copies and learns_by_column(whole.features):
        whole = replace(whole, density_labels=y)
    if evidence.n_jobs in (None, 1):
        return (_fit_fold(*step) for step in steps), whole, source, "left out"
    folds: Iterable[Fold] = Parallel(n_jobs=evidence.n_jobs)(
        delayed(_fit_fold)(*step) for step in steps
    )
    return folds, whole, source, "left out"


def _fit_fold(
    evidence: Any,
    whole: Fold,
    y: np.ndarray,
    train: np.ndarray,
    rows: np.ndarray,
    selected: Any,
) -> Fold:
    """Fit classifier, features and density on rows `train`; those of the fold are `rows`.

    `selected` is the unfitted density with the settings that the fit on all rows has selected.
    """
    try:
        watch, random_state = Stopwatch(evidence.verbose), evidence.random_state
        w_train, w_held = (None if whole.w is None else whole.w[some] for some in (train, rows))
        X, X_held = _safe_indexing(whole.X, train), _safe_indexing(whole.X, rows)
        features, Z, Z_held = whole.features, whole.Z[train], whole.Z[rows]
        if features is not None and not isinstance(features, FrozenEstimator):
            features = refit_feature_transformer(
                features, evidence.features, X, y[train], w_train, random_state
            )
            Z, Z_held = compute_features(features, X), compute_features(features, X_held)
        classifier = whole.classifier
        if classifier is not None:
            template, classes = classifier.template, classifier.classes
            classifier = FittedClassifier.fit(template, classes, X, y[train], w_train)
            watch.say(f"fold: classifier fitted on {len(train)} rows")
        # Settings that were selected on all classes fit a fold only if it has all classes.
        complete = len(np.unique(y[train])) == len(np.unique(y))
        with one_thread(Z, blas=True):
            if complete and isinstance(selected, DensityEnsemble):
                # Its candidates, which have their seeds, are copied when they are fitted.
                density = copy(selected).fit_estimators(Z, y[train], w_train)
            else:
                density = fit_one_density(
                    selected if complete else evidence.density, Z, y[train], w_train,
                    X=X, classifier=classifier, random_state=random_state,
                )  # fmt: skip
        watch.say(f"fold: density fitted, {len(rows)} rows held out")
        labels = np.asarray(whole.y)[rows]
        return Fold(density, features, classifier, X_held, labels, w_held, Z_held, rows)
    except Exception as error:
        explain_fold(error, y[train], len(y))
        raise


def fit_one_density(
    density: Any,
    Z: np.ndarray,
    y: np.ndarray,
    w: np.ndarray | None,
    *,
    X: Any,
    classifier: FittedClassifier | None,
    random_state: Any,
    watch: Stopwatch | None = None,
) -> Any:
    """Return the density, None for the default, fitted on features Z (n, p), labels and weights.

    One that takes class probabilities gets those of the classifier for X (n, d); of a
    `DensityEnsemble` the estimators are fitted, and not their combiner.
    """
    if density is None:
        model: Any = DensitySelector(random_state=random_state)
    else:
        model = as_density(density, random_state)
    if isinstance(model, DensityEnsemble):
        return model.fit_estimators(Z, y, w, watch)
    proba = None if classifier is None or not takes_proba(model) else classifier.proba(X)
    return fit_density(model, Z, y, w, proba)


def predict_held_out(
    folds: Iterable[Fold], whole: Fold, source: str, origin: Origin, random_state: int
) -> HeldOut:
    """Return predictions of all folds on their rows; a `DensityEnsemble` learns its combiner.

    Folds predict one after the other, and none is kept. A density of fewer rows gives new ones a
    lower score than that of all rows, `whole`, which is to be judged: where `whole` can tell what
    it would say of a row had it seen all others, that score takes the place of the fold's. The
    choice among densities, and their weights, stay those of the folds, which score pseudo-outliers
    too. No score is above that of the density of `whole`, which has seen the row: a higher one
    means a shift of level. Where rows repeat, as those of a few categories do, their scores are
    equal too, and a difference of level flags them all.
    """
    density, parts, pseudo_outliers, outliers = whole.density, [], None, None
    ensemble = isinstance(density, DensityEnsemble)
    for fold in folds:
        P, fitted = fold.proba(fold.X), fold.density
        if ensemble and pseudo_outliers is None:
            pseudo_outliers, outlier_proba = fold.score_pseudo_outliers(random_state)
        scored = fitted.component_scores(fold.Z, P) if ensemble else log_density(fitted, fold.Z, P)
        parts.append((scored, getattr(fitted, "failed_", {}), P, fold.y, fold.w, fold.rows))
    scores: Any
    scores, failed, *others = zip(*parts, strict=True)
    proba, labels, weights, rows = (
        None if of_folds[0] is None else np.concatenate(of_folds) for of_folds in others
    )
    columns, names, alone = None, (), {}
    if ensemble:
        components = density.merge_folds(failed, scores)
        # Errors of the classifier are known only where labels are.
        wrong = None if labels is None or proba is None else proba.argmax(axis=1) != labels
        density.fit_combiner(components, pseudo_outliers, weights, wrong).warn_if_blind()
        if rows is not None and (alone := whole.leave_one_out(rows)):
            components |= alone
            density.learn_ranks(components, weights)
        columns, names = np.column_stack(list(components.values())), tuple(components)
        scores = density.combine_held_out(components, weights)
        if P is not None and pseudo_outliers:
            outliers = _some_outliers(density, pseudo_outliers, outlier_proba)
    else:
        scores = np.concatenate(scores)
    if rows is not None:
        scores = np.minimum(scores, whole.scores_of(rows, proba, alone))
    Z = whole.Z if rows is None else whole.Z[rows]
    return HeldOut(
        scores, source, weights, proba, labels, columns, names, origin, Z=Z, outliers=outliers
    )


def _some_outliers(
    density: DensityEnsemble, components: Mapping[str, Mapping[str, np.ndarray]], proba: Any
) -> HeldOut:
    """Return scores and probabilities of the first pseudo-outliers of each kind."""
    scores = [
        density.combine({name: of[:_OUTLIERS] for name, of in parts.items()})
        for parts in components.values()
    ]
    P = np.concatenate([proba[kind][:_OUTLIERS] for kind in components])
    return HeldOut(np.concatenate(scores), "pseudo-outliers", proba=P).sort()


def design_effect(hits: np.ndarray, groups: np.ndarray, w: np.ndarray | None = None) -> float:
    """Return the variance of a share of rows of groups over that of independent rows, 1 at least.

    Parameters
    ----------
    hits : ndarray of bool, shape (m,)
        Rows that count for the share.
    groups : ndarray of int, shape (m,)
        Number of the group of each row.
    w : ndarray, shape (m,), optional
        How many rows each row stands for.

    References
    ----------
    Kish, "Survey Sampling" (1965), section 5.4, by the variance between groups.
    """
    w = np.ones(len(hits)) if w is None else w
    share, n_groups = np.average(hits, weights=w), len(np.unique(groups))
    independent = share * (1 - share) * (w**2).sum()
    if not independent or n_groups < 2:
        return 1.0
    between = (np.bincount(groups, w * (hits - share)) ** 2).sum() * n_groups / (n_groups - 1)
    return float(max(1.0, between / independent))


def sample_hashes(hashes: np.ndarray) -> np.ndarray:
    """Return the thousand smallest hashes of rows, ascending: a sample of the rows by content."""
    return np.sort(hashes)[:_HASHES]


def share_of_copies(hashes: np.ndarray) -> float:
    """Return the share of rows that have a copy, by the hashes of `sample_hashes`."""
    counts = np.unique(hashes, return_counts=True)[1]
    return float(counts[counts > 1].sum() / max(len(hashes), 1))


def share_in_fit(hashes: np.ndarray, fit_hashes: np.ndarray | None) -> float:
    """Return the share of rows with `hashes` (m,) that a fit had too; 0 if that may be chance.

    `fit_hashes` are those of `sample_hashes`, None if they are unknown. New rows repeat old ones
    about as often as those repeat one another.
    """
    if fit_hashes is None:
        return 0.0
    comparable = hashes if len(fit_hashes) < _HASHES else hashes[hashes <= fit_hashes[-1]]
    in_fit = np.isin(comparable, fit_hashes)
    by_chance = min(1.0, share_of_copies(fit_hashes) + _BEYOND_CHANCE)
    surprising = stats.binom.sf(in_fit.sum() - 1, len(in_fit), by_chance) < _LEVEL
    return float(in_fit.mean()) if surprising else 0.0


def warn_of_copies(X: Any, Z: np.ndarray, *, by_content: bool) -> bool:
    """Return whether many rows of X (n, d) are copies of others, not by chance; warn if so.

    Values of a continuous column are looked at, of X if it holds numbers, else of its features Z
    (n, p). Rows of a few categories or of rounded numbers repeat, and so will new ones. Folds made
    `by_content` keep copies together.
    """
    first, row = np.unique(row_hash(X), return_index=True, return_inverse=True)[1:]
    if len(first) == len(row) or len(first) < _FEWEST_DISTINCT:
        return False
    numeric = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    columns: Iterable[np.ndarray] = X.T if numeric else Z.T
    if is_frame(X):
        parts = (np.asarray(column(X, j)) for j in range(X.shape[1]))
        columns = (part for part in parts if part.dtype.kind in "iuf")
    copies = max((_repeats(values[first], row) for values in columns), default=0)
    if copies <= _MANY_COPIES * len(Z):
        return False
    effect = (
        "copies are kept together, so that no row is held out of a fit on its copy;"
        if by_content
        else "cv may hold a row out of a fit on its copy, and then too many new rows are flagged: "
        "leave cv at its default or give a splitter that keeps copies together;"
    )
    warn_caller(
        f"{copies} of {len(Z)} rows are copies of other rows, and their values are too fine for "
        f"chance: {effect} drop duplicates, or count them by sample_weight"
    )
    return True


def _repeats(values: np.ndarray, row: np.ndarray) -> int:
    """Count repeats of rows with a value of their own; 0 if the column is not continuous.

    `values` (m,) are those of the different rows, `row` (n,) says which of these each row is. Gaps,
    and what was put into them, are shared by rows that differ.
    """
    distinct, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    own = (counts == 1)[where] & np.isfinite(values)
    if own.sum() <= _CONTINUOUS * len(values) or _on_grid(distinct[np.isfinite(distinct)]):
        return 0
    return int(own[row].sum() - own.sum())


def _on_grid(distinct: np.ndarray) -> bool:
    """Return whether ascending values lie on a grid not much finer than they are many."""
    steps = np.diff(distinct.astype(np.float64))
    same = np.unique(np.round(steps / np.median(steps), 6), return_counts=True)[1]
    return bool(same.max() > _ON_GRID * len(steps))


def has_memorised(
    classifier: FittedClassifier, X: Any, y: np.ndarray, Z: np.ndarray
) -> bool | None:
    """Return whether a classifier knows rows X (n, d) of class indices y (n,) by heart.

    Half-way between a row and the nearest one of its class, in the features Z (n, p), a classifier
    is surer of the class than at the rows, whose labels may be noise; one that has learned them is
    less sure. It is also suspect if it makes no error, where the nearest row often has another
    label. At most a thousand rows are looked at. None if the classifier is not frozen, for fewer
    than a hundred rows, if X holds other things than numbers, and if it refuses those half-way.
    """
    if not isinstance(classifier.template, FrozenEstimator):
        return None
    values = as_numbers(X)
    if values is None or len(Z) < FEWEST_ROWS or not np.isfinite(values).all():
        return None
    some = np.linspace(0, len(Z) - 1, min(len(Z), MOST_ROWS)).astype(int)
    values, y, Z = values[some], y[some], Z[some]
    middle = rows_in_form_of(X, (values + values[nearest_of_class(Z, y)]) / 2)
    P = classifier.proba(_safe_indexing(X, some))
    try:
        between = classifier.proba(middle)
    except Exception:
        # Between two codes of a category there may be no third.
        return None
    errors = int((y[_nearest(Z)] != y).sum())
    flawless = errors >= _ERRORS and bool((P.argmax(axis=1) == y).all())
    return flawless or less_sure_between(P, between, y)


def less_sure_between(P: np.ndarray, between: np.ndarray, y: np.ndarray) -> bool:
    """Return whether probabilities half-way between rows fit the labels y (n,) worse than at them.

    P (n, k) are at the rows, `between` (n, k) half-way to another row of the class.
    """
    truth = np.eye(P.shape[1])[y]
    rise = ((between - truth) ** 2).sum(axis=1) - ((P - truth) ** 2).sum(axis=1)
    return bool(rise.mean() > max(_RISE, _SIGMAS * rise.std() / np.sqrt(len(rise))))


def _nearest(Z: np.ndarray) -> np.ndarray:
    """Return the number of the nearest other row of each, shape (n,)."""
    return np.asarray(NearestNeighbors(n_neighbors=1).fit(Z).kneighbors()[1][:, 0])


def nearest_of_class(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the number of the nearest other row of the class; of a class of one row itself."""
    nearest = np.arange(len(Z))
    for c in np.unique(y):
        rows = np.flatnonzero(y == c)
        if len(rows) > 1:
            nearest[rows] = rows[_nearest(Z[rows])]
    return nearest


def warn_of_held_out_rows(held_out: HeldOut, clf: Any, *, after_fit: bool = False) -> None:
    """Warn that held-out rows were seen before, or are of one class; after a fit, of few rows."""
    size, labels = _size(held_out, clf), _labels(held_out, clf)
    few = after_fit and held_out.origin != "in-sample" and size.code == "calibration_small"
    for finding, warned in (
        (_source(held_out, clf), has_learned_rows(held_out, clf)),
        (labels, labels.severity == "warning"),
        (size, few),
    ):
        if warned:
            warn_caller(FindingWarning(finding))


def has_learned_rows(held_out: HeldOut, clf: Any) -> bool:
    """Return whether the classifier has learned the held-out rows, as far as can be told."""
    source = _source(held_out, clf)
    return source.severity == "warning" and source.code != "calibration_in_sample"


def held_out_findings(held_out: HeldOut, clf: Any) -> Iterator[Finding]:
    """Yield source, size, labels and copies of the held-out data."""
    yield _source(held_out, clf)
    yield _size(held_out, clf)
    yield _labels(held_out, clf)
    if held_out.origin == "left out" and held_out.has_labels and not _is_prefitted(clf):
        # Rows of few discrete columns: copies in the other folds have taught the classifier.
        share = share_of_copies(getattr(clf.evidence_, "row_hashes_", np.empty(0)))
        if share > _MOST_COPIES:
            yield Finding(
                "calibration_copies",
                "warning",
                f"{share:.0%} of the rows have a copy, as rows of few discrete columns do. Folds "
                "share copies, so the classifier knows the label of a held-out row better than "
                "that of a new one: prediction sets may cover some percentage points less than "
                "they state.",
                {"share": share},
                f"Call {clf.calibrated_by} with rows that nothing was fitted on.",
            )


def _is_prefitted(clf: Any) -> bool:
    """Return whether the classifier was fitted before: frozen, or a module's network."""
    return isinstance(clf.estimator, FrozenEstimator) if hasattr(clf, "estimator") else True


def _source(held_out: HeldOut, clf: Any) -> Finding:
    """Judge by where the held-out rows came from if the model has seen them."""
    numbers: dict[str, Number] = {"source": held_out.source}
    own_rows = "look more typical than new ones"
    match held_out.origin:
        case "in-sample":
            return Finding(
                "calibration_in_sample",
                "warning",
                "Thresholds and scale of the evidence come from rows that the density was fitted "
                f"on. They {own_rows}, so more new inputs are flagged, and lose confidence, than "
                "the settings say.",
                numbers,
                _hold_out_remedy(clf),
            )
        case "given twice":
            return Finding(
                "calibration_given_to_fit",
                "warning",
                f"Statistics come from {held_out.source}. The model knows these rows: they "
                f"{own_rows}, and its errors look rarer, so too many new inputs are flagged and "
                "sets cover too little.",
                numbers,
                "Calibrate with rows that fit has not seen, or call fit without calibration.",
            )
        case "frozen density":
            return Finding(
                "density_frozen",
                "note",
                "The density came fitted and is judged on the rows given to fit. If it learned "
                f"from them, they {own_rows}.",
                numbers,
                f"Call {clf.calibrated_by} with rows that the density has not seen.",
            )
        case "left out" if _is_prefitted(clf):
            return _source_of_frozen(held_out, clf)
    return Finding("calibration_source", "ok", f"Statistics come from {held_out.source}.", numbers)


def _source_of_frozen(held_out: HeldOut, clf: Any) -> Finding:
    """Judge by its errors on the rows of the fit if a classifier that came fitted knows them."""
    memorised = getattr(clf.evidence_, "memorised_", None)
    numbers: dict[str, Number] = {"source": held_out.source}
    perfect = held_out.has_labels and not held_out.wrong.any()
    if held_out.has_labels:
        numbers["error_rate"] = held_out.average(held_out.wrong)
    suspect = (perfect and held_out.total >= FEWEST_ROWS) if memorised is None else memorised
    seen = "If it learned from them, its errors and confidence look better here than on new rows."
    if suspect:
        why = (
            "It makes no error at all on them"
            if perfect
            else "It is surer of the labels of these rows than half-way between two rows of a class"
        )
        seen = (
            f"{why}, as a classifier does on rows that it has memorised: its errors, confidence "
            "and features say nothing about new rows here."
        )
    return Finding(
        "classifier_frozen",
        "warning" if suspect else "note",
        f"The classifier came fitted and is judged on the rows given to fit. {seen}",
        numbers,
        f"Call {clf.calibrated_by} with rows that the classifier has not seen.",
    )


def _size(held_out: HeldOut, clf: Any) -> Finding:
    """Judge by their number if the held-out rows make rates of alarms and sets steady."""
    m, rate, effect = held_out.total, clf.alarm_rate, held_out.design_effect
    alone = m / effect
    least = int(np.ceil(1 / rate)) - 1
    steady = int(np.ceil((1 - rate) / (rate * _RELATIVE**2)))
    needed = max(steady, int(np.ceil(_COVERAGE * (1 - _COVERAGE) / _COVERAGE_SD**2)))
    needed = int(np.ceil(needed * effect))
    rate_sd = float(np.sqrt(rate * (1 - rate) / (alone + 2)))
    coverage_sd = float(np.sqrt(_COVERAGE * (1 - _COVERAGE) / (alone + 2)))
    numbers: dict[str, Number] = {
        "rows": m,
        "false_alarm_rate": rate,
        "least_for_an_alarm": least,
        "needed": needed,
        "false_alarm_sd": rate_sd,
        "coverage": _COVERAGE,
        "coverage_sd": coverage_sd,
        "design_effect": effect,
    }
    groups = f", which by their groups say as much as {alone:.0f}," if alone < m - 0.5 else ""
    spread = (
        f"With {m:g} held-out rows{groups} the rate of false alarms comes out at "
        f"{percent(rate)} ± {percent(rate_sd)}, and the coverage of a {_COVERAGE:.0%} prediction "
        f"set at {_COVERAGE:.0%} ± {percent(coverage_sd)}"
    )
    if held_out.has_labels:
        numbers["error_rate"] = error = held_out.average(held_out.wrong)
        numbers["error_rate_sd"] = error_sd = float(np.sqrt(error * (1 - error) / m))
        spread += (
            f"; the error rate is {percent(error)} ± {percent(error_sd)}"
            if error > 0
            else "; no row is misclassified, and the error rate is at most "
            f"{percent(1 - (1 - _CONFIDENCE) ** (1 / m))} with confidence {_CONFIDENCE:.0%}"
        )
    more_rows = f"Hold out at least {needed} rows: give them to {clf.calibrated_by}"
    more_rows += ", or more rows to fit" * clf.has_evidence
    if m < least:
        return Finding(
            "calibration_too_few",
            "warning",
            f"{m:g} held-out rows are too few for a false-alarm rate of {percent(rate)}: at least "
            f"{least} are needed before any input can be flagged, and {needed} before the rate is "
            "steady.",
            numbers,
            f"{more_rows}; or ask for a higher false_alarm_rate than {rate:g}.",
        )
    if m < needed:
        text = f"{spread} (one standard deviation over the choice of rows)."
        remedy = f"{more_rows}, if the rates matter."
        return Finding("calibration_small", "note", text, numbers, remedy)
    return Finding("calibration_size", "ok", f"{spread}.", numbers)


def _labels(held_out: HeldOut, clf: Any) -> Finding:
    """Judge by their labels if the held-out rows say something about every class."""
    if not held_out.has_labels:
        missing = "class probabilities" if held_out.proba is None else "labels"
        return Finding(
            "labels_missing",
            "note",
            f"The held-out rows have no {missing}: nothing can be said about what the density adds "
            "to the classifier, what the evidence costs, and which class suffers.",
            {"missing": missing},
            f"Give rows with labels to {clf.calibrated_by}.",
        )
    if (held_out.labels == held_out.labels[0]).all():
        name = plain_labels(np.asarray(clf.classes_))[held_out.labels[0]]
        remedy = f"Give rows of every class to {clf.calibrated_by}."
        if held_out.origin == "left out" and not isinstance(getattr(clf, "cv", ""), str | Integral):
            remedy = (
                "Let the held-out parts of cv= hold every class, as those of StratifiedKFold(5) "
                f"do, or give {remedy.removeprefix('Give ')}"
            )
        return Finding(
            "calibration_one_class",
            "warning",
            f"All {held_out.total:g} held-out rows are of class {name!r}: what is learned from "
            "them, such as a temperature, thresholds, sets and intervals, holds for no other "
            "class.",
            {"rows": held_out.total},
            remedy,
        )
    errors = int(held_out.wrong.sum())
    if errors < _FEW_ERRORS:
        few = (
            f"The classifier makes {errors} errors on held-out rows, too few to judge which score "
            "spots errors."
        )
        return Finding("errors_too_few", "ok", few, {"errors": errors})
    text = f"{errors} held-out errors to compare scores by."
    return Finding("labels", "ok", text, {"errors": errors})


def _hold_out_remedy(clf: Any) -> str:
    """Return the remedy for thresholds that come from the rows of the fit."""
    default = (
        "Leave cv at its default"
        if hasattr(clf, "estimator")
        else "Make the module by DIPModule(network) in place of DIPModule.paper(network)"
    )
    return f"{default}, or call {clf.calibrated_by} with rows that nothing was fitted on."
