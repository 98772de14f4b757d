"""AUROC of each score for each question: own errors, an unknown class, corrupted inputs.

Digits without one class each, three classifiers, the default of DIPClassifier; scikit-learn's data.
"""

import harness
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier
from dipedl.datasets import leave_class_out
from dipedl.metrics import ood_auroc

KINDS = ("max_prob", "entropy", "total", "log_density", "epistemic")
LEFT_OUT, SEEDS = (2, 6, 9), (10, 20)
CORRUPTIONS = ("noise of half a standard deviation", "a third of the columns at their mean")


def classifiers(seed: int) -> dict:
    return {
        "random forest": RandomForestClassifier(200, random_state=seed),
        "boosted trees": HistGradientBoostingClassifier(max_iter=60, random_state=seed),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    }


def corrupt(X: np.ndarray, kind: str, train: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if kind == CORRUPTIONS[0]:
        return X + rng.normal(size=X.shape) * train.std(axis=0) / 2
    return np.where(rng.random(X.shape) < 1 / 3, train.mean(axis=0), X)


def aurocs(clf: DIPClassifier, X: np.ndarray, y: np.ndarray, ood: dict) -> dict:
    """AUROC by question and kind."""
    wrong = clf.predict(X) != y
    found = {}
    for kind in KINDS:
        u = clf.uncertainty(X, kind)
        found[kind] = {"own errors": ood_auroc(u[~wrong], u[wrong])} if wrong.any() else {}
        found[kind] |= {q: ood_auroc(u, clf.uncertainty(Z, kind)) for q, Z in ood.items()}
    return found


def measure() -> harness.Values:
    rows = []
    for label in LEFT_OUT:
        for seed in SEEDS:
            data = leave_class_out(load_digits(), label, random_state=seed)
            rng = np.random.default_rng(seed)
            ood = {"unknown class": next(iter(data.ood.values()))}
            for kind in CORRUPTIONS:
                ood[kind] = corrupt(data.X_test, kind, data.X_train, rng)
            for model in classifiers(seed).values():
                clf = DIPClassifier(model, random_state=seed).fit(data.X_train, data.y_train)
                rows.append(aurocs(clf, data.X_test, data.y_test, ood))
    questions = ("own errors", "unknown class", *CORRUPTIONS)
    return {
        q: {k: round(float(np.mean([r[k][q] for r in rows if q in r[k]])), 3) for k in KINDS}
        for q in questions
    }


if __name__ == "__main__":
    harness.main(__file__, measure)
