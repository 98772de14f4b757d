"""What fitted models predict for rows that they have not seen: those of a fold, or new ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing

from .calibration.crossfit import Pairs
from .calibration.held_out import HeldOut, Origin
from .calibration.pseudo_outliers import make_pseudo_outliers
from .density._fitting import for_own_rows, log_density, takes_proba
from .density.combined._ensemble import DensityEnsemble
from .evidence import weighted_quantile
from .features.dense_rows import is_narrow
from .features.transformer import compute_features
from .fitting.classifiers import FittedClassifier
from .fitting.refusals import Answer, answered
from .inputs import column, is_frame, is_pandas, numbers, present
from .maths.seeds import seeded_clone


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
    """

    density: Any
    features: Any
    classifier: FittedClassifier | None
    X: Any
    y: np.ndarray | None
    w: np.ndarray | None
    Z: np.ndarray
    rows: np.ndarray | None = None

    def proba(self, X: Any) -> np.ndarray | None:
        """Class probabilities of X (n, d), shape (n, k); None without a classifier."""
        return None if self.classifier is None else self.classifier.proba(X)

    def scores_of(self, rows: np.ndarray) -> np.ndarray:
        """Scores of some of the rows, by their numbers; no row is its own neighbour."""
        density, Z = for_own_rows(self.density), self.Z[rows]
        P = self.proba(_safe_indexing(self.X, rows)) if takes_proba(density) else None
        if isinstance(density, DensityEnsemble):
            # As rows of folds are scored: nothing is held down for being out of reach.
            return density.combine(density.component_scores(Z, P))
        return log_density(density, Z, P)

    def pseudo_outlier_scores(self, random_state: int) -> dict[str, dict[str, np.ndarray]]:
        """Components of pseudo-outliers made of the rows, by kind.

        With a warning, without the kinds that the features or the classifier refuse by any error:
        between two codes of a category there may be no third.
        """
        rows = numbers(self.X.toarray() if is_narrow(self.X) else self.X)
        if rows is None:
            return {}
        labels = np.zeros(self.X.shape[0]) if self.y is None else self.y
        made = make_pseudo_outliers(rows, labels, sample_weight=self.w, random_state=random_state)
        found = {}
        for kind in list(made):
            # One kind at a time: of wide data the features of all take more memory than the models.
            seen = self._seen(kind, like(self.X, made.pop(kind)))
            if seen is not None:
                found[kind] = self.density.component_scores(*seen)
        return found

    def _seen(self, kind: str, X: Any) -> tuple[np.ndarray, np.ndarray | None] | None:
        """Features and class probabilities of X; None if features or classifier refuse X."""
        try:
            proba = self.proba(X)
            return compute_features(self.features, X), proba
        except Exception as error:
            warnings.warn(
                f"pseudo-outliers of kind {kind!r} are left out of the choice of a density: "
                f"features or classifier refuse them ({type(error).__name__}: {error})",
                UserWarning,
                stacklevel=2,
            )
            return None


def held_out_by(
    folds: Iterable[Fold], whole: Fold, source: str, origin: Origin, random_state: int
) -> HeldOut:
    """Predictions of all folds on their rows; a `DensityEnsemble` learns its combiner from them.

    The folds are asked one after the other, and none is kept. No row scores higher than the model
    of all rows, `whole`, scores it: that has seen the row, so where it scores lower the scores of
    the fold are on another level than those of new rows will be. Where rows repeat, as those of a
    few categories do, their scores are equal too, and a difference of level flags them all.
    """
    held, rows = _seen_by(folds, whole.density, source, random_state)
    if rows is None:
        return replace(held, origin=origin)
    scores = np.minimum(held.scores, whole.scores_of(rows))
    return replace(held, scores=scores, origin=origin)


def _seen_by(
    folds: Iterable[Fold], density: Any, source: str, random_state: int
) -> tuple[HeldOut, np.ndarray | None]:
    """Predictions of the folds alone, and the numbers of the rows."""
    ensemble = isinstance(density, DensityEnsemble)
    asked = [
        _Predictions.of(fold, random_state if ensemble and not i else None)
        for i, fold in enumerate(folds)
    ]
    proba, labels = _joined([part.proba for part in asked]), _joined([part.y for part in asked])
    weights, rows = _joined([part.w for part in asked]), _joined([part.rows for part in asked])
    if not ensemble:
        scores = np.concatenate([part.scores for part in asked])
        return HeldOut(scores, source, weights, proba, labels), rows
    components = density.merge_folds([part.failed for part in asked], [p.scores for p in asked])
    m = sum(part.size for part in asked)
    density.fit_combiner(
        components,
        np.zeros(m, int) if labels is None else labels,
        # Errors of the classifier are known only where labels are.
        proba=None if labels is None else proba,
        sample_weight=weights,
        pseudo_outliers=asked[0].pseudo_outliers,
    ).warn_if_blind()
    columns = np.column_stack(list(components.values()))
    names = tuple(components)
    scores = density.combine_held_out(components, weights)
    return HeldOut(scores, source, weights, proba, labels, columns, names), rows


def predictions(
    evidence: Any, X: Any, classifier: FittedClassifier | None = None
) -> tuple[np.ndarray, Any, np.ndarray]:
    """Features (n, p), class probabilities (n, k) or None, and scores (n,) of inputs X (n, d).

    A finite row with numbers that classifier, features or density cannot compute with, and one with
    a new level, or a first gap among levels, that they refuse, is unknown: its score is -inf, its
    probabilities are equal, and its features NaN where there are none.
    """

    def ask(X: Any) -> Answer:
        # Features first: where an entry is not finite, their error names its row and column.
        Z = evidence.transform(X)
        P, none = (None, False) if classifier is None else classifier.proba_or_none(X)
        return Z, P, np.where(none, -np.inf, evidence.score_features(Z, P))

    def unknown() -> Answer:
        k = 0 if classifier is None else len(classifier.classes)
        Z = np.full((1, getattr(evidence.density_, "n_features_in_", 0)), np.nan)
        return Z, np.full((1, k), 1 / k) if k else None, np.array([-np.inf])

    if evidence.columns_ is not None:
        evidence.columns_.refuse_other_types(X)
    Z, P, scores = answered(ask, X, unknown, evidence.columns_)
    return Z, P, scores


def check_spread(
    spread: Any, calibration: tuple[Any, np.ndarray | None] | None, fitted: Any = None
) -> None:
    """Raise unless `spread` is None or a learner, with labels to learn from or `fitted` before."""
    if spread is None:
        return
    if isinstance(spread, type) or not hasattr(spread, "fit") or not hasattr(spread, "strength"):
        raise TypeError(
            "spread must be None or an object with fit and strength, such as "
            f"dipedl.calibration.Rehearsal(), got {spread!r}"
        )
    if calibration is not None and calibration[1] is None and fitted is None:
        raise ValueError(
            "spread needs labels, and the calibration rows have none: give them with their labels "
            "y, or set spread=None"
        )


def fitted_spread(
    model: Any,
    evidence: Any,
    classifier: FittedClassifier,
    X: Any,
    y: np.ndarray,
    w: np.ndarray | None,
    pairs: Pairs | None = None,
) -> Any:
    """The `spread` of a model, copied and fitted on rows X (n, d), labels y (n,) and weights.

    None for None. `pairs` are the folds that a splitter gives for these rows.
    """
    if model.spread is None:
        return None
    Z, _, scores = predictions(evidence, X, classifier)
    return seeded_clone(model.spread, evidence.random_state).fit(
        X,
        classifier.indices(y),
        Z,
        classifier,
        log_evidence=evidence.log_evidence(scores),
        prior=evidence.prior,
        typical=typical_evidence(evidence),
        calibrator=evidence.calibrator_,
        sample_weight=w,
        pairs=pairs,
    )


def spread_again(
    model: Any,
    evidence: Any,
    classifier: FittedClassifier,
    X: Any,
    y: np.ndarray | None,
    w: np.ndarray | None = None,
) -> Any:
    """The spread for evidence that was learned from rows X (m, d), held out of the classifier.

    Without labels the strength of the fitted `model` stays, and only what counts as typical
    evidence is learned.
    """
    if y is not None:
        frozen = replace(classifier, template=FrozenEstimator(classifier.estimator))
        return fitted_spread(model, evidence, frozen, X, y, w)
    spread = None if model.spread is None else copy(model.spread_)
    if spread is not None:
        spread.log_evidence_ = typical_evidence(evidence)
    return spread


def typical_evidence(evidence: Any) -> float:
    """Median log-evidence of held-out rows."""
    held = evidence.held_out_
    middle = weighted_quantile(held.scores, 0.5, held.weights)
    return float(evidence.log_evidence(np.array([middle]))[0])


@dataclass(frozen=True, eq=False)
class _Predictions:
    """What is kept of a fold: of an ensemble the components, by name, and what failed."""

    size: int
    rows: np.ndarray | None
    scores: Any
    proba: np.ndarray | None
    y: np.ndarray | None
    w: np.ndarray | None
    failed: dict[str, str]
    pseudo_outliers: dict[str, dict[str, np.ndarray]]

    @classmethod
    def of(cls, fold: Fold, random_state: int | None) -> Self:
        """Predictions on the rows of the fold, and on pseudo-outliers of them if seeded."""
        P, density = fold.proba(fold.X), fold.density
        made = {} if random_state is None else fold.pseudo_outlier_scores(random_state)
        if isinstance(density, DensityEnsemble):
            scores: Any = density.component_scores(fold.Z, P)
        else:
            scores = log_density(density, fold.Z, P)
        failed = getattr(density, "failed_", {})
        return cls(len(fold.Z), fold.rows, scores, P, fold.y, fold.w, failed, made)


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    return None if parts[0] is None else np.concatenate([p for p in parts if p is not None])


def like(X: Any, rows: np.ndarray) -> Any:
    """Numbers (n, d) in the form of X: its columns with their names, dtypes and whole numbers."""
    if sparse.issparse(X):
        return type(X)(_in_dtype(rows, X.dtype))
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return _in_dtype(rows, X.dtype)
    parts = [_column_like(column(X, j), values) for j, values in enumerate(rows.T)]
    if not is_frame(X):
        return np.column_stack(parts)
    if not is_pandas(X):
        return type(X)(parts)
    frame = type(X)(rows, columns=X.columns)
    for j, part in enumerate(parts):
        frame.isetitem(j, part)
    return frame


def _column_like(part: Any, values: np.ndarray) -> Any:
    """Numbers (n,) in the form of a column: an array of objects, or a series."""
    dtype = np.asarray(part).dtype
    values = _in_dtype(values, np.asarray(present(part)).dtype if dtype.kind == "O" else dtype)
    if isinstance(part, np.ndarray):
        return values.astype(object)
    if hasattr(part, "iloc"):
        return type(part)(values).astype(part.dtype)
    return type(part)(part.name, values).cast(part.dtype)


def _in_dtype(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The values, rounded where the dtype is of whole numbers or booleans."""
    return (np.rint(values) if dtype.kind in "iub" else values).astype(dtype)
