"""Models that a rehearsal mixes into a truth: the user's classifier, and four of other kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing

from ..fitting.classifiers import FittedClassifier
from ..fitting.refusals import explain_fold_error

#: Boosted trees of wider rows take minutes.
_WIDEST = 100
_MAX_ITER, _LANDMARKS = 300, 100
#: A probability is at least this where its logarithm is an input.
_LOWEST = 1e-6
#: Shares move in the third digit after that.
_EM_STEPS = 200

#: Training rows and held-out rows of each fold, and labels of all rows (n,) as the fold has them.
Folds = list[tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A classifier, the rows X (n, .) as it takes them, and their weights (n,) or None.

    `frozen` are probabilities (n, k) that no fit changes, of the classifier it stands for.
    """

    name: str
    classifier: FittedClassifier
    X: Any
    w: np.ndarray | None
    frozen: np.ndarray | None = None

    def cross_fitted(self, folds: Folds) -> np.ndarray:
        """Probabilities (m, k) of the held-out rows of all folds, by fits to their labels (n,)."""
        found = []
        for train, held, labels in folds:
            w, y = None if self.w is None else self.w[train], self.classifier.classes[labels[train]]
            with explain_fold_error(y, len(labels)):
                fitted = self.classifier.refitted(_safe_indexing(self.X, train), y, w)
            found.append(fitted.proba(_safe_indexing(self.X, held)))
        return np.concatenate(found)


def candidates(
    classifier: FittedClassifier, X: Any, Z: np.ndarray, w: np.ndarray | None, random_state: int,
    *, fewest: int,
) -> list[Candidate]:  # fmt: skip
    """The classifier itself on inputs X (n, d), then the others on features Z (n, p).

    A frozen classifier cannot be fitted again: a recalibration of its probabilities stands for it.
    `fewest` are the rows of the smallest fit.
    """
    own = Candidate("classifier", classifier, X, w)
    if isinstance(classifier.template, FrozenEstimator):
        P = classifier.proba(X)
        again = _of(LogisticRegression(max_iter=_MAX_ITER), classifier)
        log_proba = np.log(np.maximum(P, _LOWEST))
        own = Candidate("recalibrated classifier", again, log_proba, w, P)
    others = _bending(min(len(Z) // 2, fewest), Z.shape[1], random_state)
    return [own, *(Candidate(name, _of(m, classifier), Z, w) for name, m in others.items())]


def _of(model: Any, classifier: FittedClassifier) -> FittedClassifier:
    return FittedClassifier(None, classifier.classes, model)


def _bending(most_landmarks: int, p: int, random_state: int) -> dict[str, Any]:
    """Unfitted classifiers of features (n, p), cheap ones of different kinds."""
    # Loads for 0.3 s, which only a rehearsal shall pay.
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier

    landmarks = max(1, min(_LANDMARKS, most_landmarks))
    kernel = Nystroem(gamma=0.5 / p, n_components=landmarks, random_state=random_state)
    found = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=_MAX_ITER)),
        "trees": ExtraTreesClassifier(100, min_samples_leaf=3, random_state=random_state),
        "kernel": make_pipeline(
            StandardScaler(), kernel, LogisticRegression(C=3.0, max_iter=_MAX_ITER)
        ),
    }
    if p <= _WIDEST:
        found["boosting"] = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, random_state=random_state
        )
    return found


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
        part = (own + _LOWEST) * shares
        shares = np.average(part / part.sum(axis=1, keepdims=True), axis=0, weights=w)
    return shares
