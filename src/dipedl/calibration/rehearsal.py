"""Error of probabilities, rehearsed where the truth is known; the strength it supports."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..calibration.crossfit import explain_fold
from ..dirichlet import vacuity
from ..inputs import FittedClassifier
from ..maths.arrays import Array, namespace
from ..maths.seeds import seed
from ..protocols import atomic
from ..writing.finding import warn_caller
from .crossfit import Pairs, content_folds, first_folds, fold_pairs, row_hash
from .temperature import Temperature

__all__ = ["Rehearsal"]

_FOLDS = 5
#: With fewer rows, in folds that keep copies together, a fold may have none.
_FEWEST = 20
#: A candidate with a smaller share of the mixture is left out.
_LEAST_SHARE = 0.05
#: One strength does not do for all classes if one has fewer rows than this share of the mean, or if
#: the mean confidence is higher.
RARE, SURE = 0.1, 0.98
#: Bounds of the strength. At the lowest, intervals are widest where no class is nearly sure; those
#: of probabilities near 0 or 1 are narrow again, since nearly all mass lies at the end.
_LOWEST, _HIGHEST, _TINY = 0.5, 1e6, 1e-300
#: Boosted trees of wider rows take minutes.
_WIDEST = 100
_MAX_ITER, _LANDMARKS = 300, 100
#: A probability is at least this where its logarithm is an input.
_LEAST = 1e-6
#: Shares move in the third digit after that.
_EM_STEPS = 200

#: Classifiers by name, that of the user first, with the rows X (n, .) as they take them.
Models = dict[str, tuple[FittedClassifier, Any]]
#: Training rows and held-out rows of each fold, and labels of all rows (n,) as the fold has them.
Folds = list[tuple[np.ndarray, np.ndarray, np.ndarray]]


class Rehearsal(BaseEstimator):
    r"""Strength of the Dirichlet that the error of the probabilities supports.

    The squared error ``e^2 = mean |p - P(Y|x)|^2`` is estimated, and typical inputs get the
    strength S at which the Dirichlet expects that error, ``mean sum_c p_c (1 - p_c) / (S + 1) =
    e^2``. With less evidence than the typical input has, S falls as the cube root of the evidence.

    The truth P(Y|x) is not known, so the fit is rehearsed where it is: the classifier and four
    others (linear, extra trees, boosted trees, a kernel) are mixed by their held-out likelihood
    into a truth q(x), labels are drawn from q, anew for each of five folds, and everything is
    fitted again to these labels. The folds are those of ``cv`` of the classifier where that is a
    splitter or an iterable of index pairs. Of two estimates the larger counts:

    - the error of the classifier in the rehearsal, ``4/5 mean |p* - q|^2``: variance and
      shrinkage, of fits to four fifths of the rows (in other folds their share takes its place);
    - its excess over q on the real labels, in Brier score and with one standard error, plus the
      error of q in the rehearsal, times 4/5 too: what a wrong model cannot say is in the excess.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of folds, labels and candidates; None takes that of the classifier, or 0. The order of
        the rows has no part in it.

    Attributes
    ----------
    strength_ : float
        S of an input with the typical evidence, at least 1/2.
    error_ : float
        The estimated e^2.
    log_evidence_ : float
        Median log-evidence of held-out rows: the typical one.
    shares_ : dict of str to float
        Candidates in the mixture q, with their weights.
    n_ : float
        Rows the error was estimated on (sum of their weights).
    rarest_ : float
        Rows of the rarest class, as a share of the mean over classes.
    confidence_ : float
        Mean of the largest probability of a row, as a fit gives it that has not seen the row.
    refits_ : int
        How often the classifier was fitted; 0 if it is frozen.

    Notes
    -----
    A frozen classifier is not fitted again: rows that it was not fitted on show how far it is off,
    and what it owes to the choice of its training rows is a part of that. The cube root is a
    choice: the error of a local average falls as evidence^(-4 / (4 + d)), which is that for d = 8.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.calibration import Rehearsal
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier(spread=Rehearsal(), random_state=0).fit(X[:, :2], y)
    >>> clf.spread_.strength_ < clf.predict_dirichlet(X[:, :2]).mean.shape[0]
    True
    """

    def __init__(self, random_state: Any = None) -> None:
        self.random_state = random_state

    @atomic
    def fit(
        self,
        X: Any,
        y: np.ndarray,
        Z: np.ndarray,
        classifier: FittedClassifier,
        *,
        log_evidence: np.ndarray,
        prior: np.ndarray,
        typical: float,
        calibrator: Any = None,
        sample_weight: np.ndarray | None = None,
        pairs: Pairs | None = None,
    ) -> Self:
        """Estimate the error on rows to refit the classifier on, or that a frozen one has not seen.

        Parameters
        ----------
        X, y, Z : array-like (n, d), ndarray of int (n,), ndarray (n, p)
            Inputs, indices of their classes, and their features.
        classifier : FittedClassifier
            Refitted with its template.
        log_evidence : ndarray, shape (n,)
            Of the rows.
        prior : ndarray, shape (k,)
            What their probabilities are shrunk to.
        typical : float
            Median log-evidence of held-out rows.
        calibrator : object with ``fit`` and ``transform``, or None
            What the classifier's probabilities pass through.
        sample_weight : ndarray, shape (n,), optional
            Counts each row that often.
        pairs : list of (train, held-out) ndarray of int, optional
            Folds of the rows; None deals them out by their content, copies together.
        """
        number = seed(self.random_state)
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        # In an order that depends on what rows hold and not on where they stand.
        order = np.lexsort((w, y, row_hash(X, number)))
        X, y, Z, w = _safe_indexing(X, order), y[order], Z[order], w[order]
        u = vacuity(log_evidence[order], prior)[:, None]
        if len(np.unique(y[w > 0])) < 2 or (w > 0).sum() < _FEWEST:
            return self._fit_no_strength(float(typical), float(w.sum()))
        if pairs is None:
            folds = list(fold_pairs(content_folds(X, y, _FOLDS, number, together=True)))
        else:
            place = np.argsort(order)
            folds = [(np.sort(place[train]), np.sort(place[held])) for train, held in pairs]
        held_out = np.unique(np.concatenate([held for _, held in folds]))
        # Rows that no fold holds out get their truth by a fit to those that are held out.
        fewest = min(len(held_out), *(len(train) for train, _ in folds))
        models, frozen = candidates(classifier, X, Z, number, fewest=fewest)
        weighted, prior_mean = sample_weight is not None, prior / prior.sum()
        experiment = _Experiment(models, frozen, w, weighted, calibrator, u, prior_mean)
        real = experiment.cross_fit(models, [(train, held, y) for train, held in folds])
        truth = experiment.truth(real, y, of_all=pairs is not None)
        # Labels are drawn anew for each fold: what one draw does to all would not average out.
        rng, classes = np.random.default_rng(number), np.unique(real.y)
        drawn = [(a, b, _draw_labels(truth, classes, a, rng)) for a, b in first_folds(folds)]
        some = {n: m for i, (n, m) in enumerate(models.items()) if real.shares[n] or i == 0}
        again = experiment.cross_fit(some, drawn)
        q, own = truth[again.rows], again.trained if frozen is None else 1.0
        self.error_ = max(
            _mean(own * _squares(again.own - q), again.w),
            _mean(again.trained * _squares(again.mixture - q), again.w) + _excess(real),
        )
        variance = _mean(1 - _squares(real.own), real.w)
        strength = variance / max(self.error_, variance / _HIGHEST, _TINY) - 1
        self.strength_ = float(np.clip(strength, _LOWEST, _HIGHEST))
        self.shares_ = {name: share for name, share in real.shares.items() if share}
        self.log_evidence_, self.n_ = float(typical), float(w[held_out].sum())
        counts = np.bincount(real.y, real.w, minlength=len(prior))
        # Rounding may lead beyond one.
        self.rarest_ = min(1.0, float(counts.min() / counts.mean()))
        self.confidence_ = min(1.0, _mean(real.own.max(axis=1), real.w))
        self.refits_ = experiment.refits
        return self

    def _fit_no_strength(self, typical: float, n: float) -> Self:
        """Take the lowest strength, with a warning, where nothing can be rehearsed."""
        warn_caller(
            f"spread: {n:g} held-out rows, or one class, cannot tell how wrong the probabilities "
            f"are: intervals are wide, but not near 0 and 1; give at least {_FEWEST} rows of two "
            "classes"
        )
        self.error_, self.strength_, self.shares_ = 1.0, _LOWEST, {}
        self.log_evidence_, self.n_, self.refits_ = typical, n, 0
        self.rarest_, self.confidence_ = 0.0, 1.0
        return self

    @property
    def falls_short(self) -> bool:
        """True if the strength is known to be too high: few rows, a rare class, no noise."""
        return self.rarest_ < RARE or self.confidence_ > SURE

    def strength(self, log_evidence: np.ndarray) -> np.ndarray:
        """Supported strength S of inputs with this log-evidence (n,), shape (n,)."""
        check_is_fitted(self, "strength_")
        return np.asarray(supported_strength(log_evidence, self.strength_, self.log_evidence_))


def supported_strength(log_evidence: Array, strength: Any, typical: Any) -> Array:
    """Strength of a Dirichlet that the error supports at log-evidence (n,), shape (n,).

    `strength` where the evidence is `typical` or more; below, it falls as the cube root of the
    evidence, to 1 at the lowest, or stays at `strength` if that is less.
    """
    xp = namespace(log_evidence)
    low = xp.where(strength < 1, strength, xp.ones_like(log_evidence))
    gap = (log_evidence - typical).clip(max=0.0)
    return low + (strength - low) * xp.exp(gap / 3)


@dataclass(frozen=True, eq=False)
class _CrossFit:
    """Predictions for held-out rows (m,), by fits to the labels of the other rows.

    `y` and `w` are labels and weights (m,), `own` the probabilities (m, k) as the model gives them,
    `mixture` those of all classifiers, mixed by these `shares`. `trained` (m,) is the share of the
    rows in the fit: what of its variance a fit to all rows has, as this falls as 1/n.
    """

    rows: np.ndarray
    y: np.ndarray
    w: np.ndarray
    own: np.ndarray
    mixture: np.ndarray
    shares: dict[str, float]
    trained: np.ndarray


@dataclass(eq=False)
class _Experiment:
    """Classifiers and rows that are cross-fitted to the real labels, then to drawn ones.

    `models` begins with the user's classifier, or the recalibration that stands for it where its
    probabilities (n, k) are `frozen`. Fits are given the weights `w` (n,) if `weighted`; `vacuity`
    (n, 1) is the share of `prior_mean` (k,) in what the model gives.
    """

    models: Models
    frozen: np.ndarray | None
    w: np.ndarray
    weighted: bool
    calibrator: Any
    vacuity: np.ndarray
    prior_mean: np.ndarray
    refits: int = 0

    def cross_fit(self, models: Models, folds: Folds) -> _CrossFit:
        """Fit models, first that of the user, to the labels of each fold; mix by likelihood."""
        rows = np.concatenate([held for _, held, _ in folds])
        self.refits += len(folds) if self.frozen is None else 0
        probabilities = [self._predict(*model, folds) for model in models.values()]
        y, w = np.concatenate([y[held] for _, held, y in folds]), self.w[rows]
        own = probabilities[0] if self.frozen is None else self.frozen[rows]
        if self.calibrator is not None:
            own = deepcopy(self.calibrator).fit(own, y, w).transform(own)
        own = (1 - self.vacuity[rows]) * own + self.vacuity[rows] * self.prior_mean
        parts = [Temperature(confidence=0.0).fit(P, y, w).transform(P) for P in probabilities]
        weights = mixture_weights(np.stack([P[np.arange(len(y)), y] for P in parts], axis=1), w)
        # Models that matter little are left out.
        weights[weights < min(_LEAST_SHARE, weights.max())] = 0.0
        shares = dict(zip(models, (weights / weights.sum()).tolist(), strict=True))
        mixture = sum(s * P for s, P in zip(shares.values(), parts, strict=True))
        trained = [np.full(len(held), len(train) / len(self.w)) for train, held, _ in folds]
        return _CrossFit(rows, y, w, own, np.asarray(mixture), shares, np.concatenate(trained))

    def truth(self, real: _CrossFit, y: np.ndarray, *, of_all: bool) -> np.ndarray:
        """Return the probabilities (n, k) that labels are drawn from: the mixture, or the label.

        `of_all`: rows that no fold holds out get it by one more fit, to the rows of all folds.
        """
        q: np.ndarray = np.eye(real.mixture.shape[1])[y]
        q[real.rows] = real.mixture
        seen = np.isin(np.arange(len(y)), real.rows)
        if of_all and not seen.all() and len(np.unique(real.y)) > 1:
            fold = np.flatnonzero(seen), np.flatnonzero(~seen), y
            q[~seen] = self.cross_fit(self.models, [fold]).mixture
        return q

    def _predict(self, classifier: FittedClassifier, X: Any, folds: Folds) -> np.ndarray:
        """Probabilities (m, k) of the held-out rows of all folds, by fits to their labels (n,)."""
        probabilities = []
        for train, held, labels in folds:
            w, y = self.w[train] if self.weighted else None, classifier.classes[labels[train]]
            try:
                fitted = classifier.refit(_safe_indexing(X, train), y, w)
            except Exception as error:
                explain_fold(error, y, len(labels))
                raise
            probabilities.append(fitted.proba(_safe_indexing(X, held)))
        return np.concatenate(probabilities)


def _draw_labels(
    truth: np.ndarray, classes: np.ndarray, train: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw labels (n,) from the truth (n, k); every class keeps some of the training rows."""
    labels = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    for c in classes:
        if (labels[train] == c).sum() < _FOLDS:
            labels[train[np.argsort(-truth[train, c], kind="stable")[:_FOLDS]]] = c
    return np.asarray(labels)


def _excess(real: _CrossFit) -> float:
    """Brier score of the classifier less that of the mixture, plus one standard error."""
    Y = np.eye(real.own.shape[1])[real.y]
    excess = _squares(real.own - Y) - _squares(real.mixture - Y)
    mean = _mean(excess, real.w)
    _, first = np.unique(real.rows, return_index=True)
    return mean + float(np.sqrt(_mean((excess - mean) ** 2, real.w) / real.w[first].sum()))


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.asarray((rows**2).sum(axis=1))


def _mean(values: np.ndarray, w: np.ndarray) -> float:
    return float(np.average(values, weights=w))


def candidates(
    classifier: FittedClassifier, X: Any, Z: np.ndarray, random_state: int, *, fewest: int
) -> tuple[Models, np.ndarray | None]:
    """The classifier itself on inputs X (n, d), then the others on features Z (n, p).

    A frozen classifier cannot be fitted again: a recalibration stands for it, and its probabilities
    (n, k) are returned too. `fewest` are the rows of the smallest fit.
    """
    classes, P = classifier.classes, None
    models: Models = {"classifier": (classifier, X)}
    if isinstance(classifier.template, FrozenEstimator):
        P = classifier.proba(X)
        again = FittedClassifier(None, classes, LogisticRegression(max_iter=_MAX_ITER))
        models = {"recalibrated classifier": (again, np.log(np.maximum(P, _LEAST)))}
    others = _other_classifiers(min(len(Z) // 2, fewest), Z.shape[1], random_state)
    for name, model in others.items():
        models[name] = FittedClassifier(None, classes, model), Z
    return models, P


def _other_classifiers(most_landmarks: int, p: int, random_state: int) -> dict[str, Any]:
    """Unfitted classifiers of features (n, p), cheap ones of different kinds."""
    # Loads for 0.3 s, which only a rehearsal shall pay.
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    landmarks = max(1, min(_LANDMARKS, most_landmarks))
    kernel = Nystroem(gamma=0.5 / p, n_components=landmarks, random_state=random_state)
    learners = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MAX_ITER)),
        "trees": ExtraTreesClassifier(100, min_samples_leaf=3, random_state=random_state),
        "kernel": make_pipeline(
            StandardScaler(), kernel, LogisticRegression(C=3.0, max_iter=_MAX_ITER)
        ),
    }
    if p <= _WIDEST:
        learners["boosting"] = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, random_state=random_state
        )
    return learners


def mixture_weights(own: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights of c models in the mixture of highest likelihood, by EM, shape (c,).

    Parameters
    ----------
    own : ndarray, shape (m, c)
        Probability that each model gives the label of each row.
    w : ndarray, shape (m,)
        Weights of the rows.
    """
    shares = np.full(own.shape[1], 1 / own.shape[1])
    for _ in range(_EM_STEPS):
        part = (own + _LEAST) * shares
        shares = np.average(part / part.sum(axis=1, keepdims=True), axis=0, weights=w)
    return shares
