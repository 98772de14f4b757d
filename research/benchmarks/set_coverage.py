"""Coverage of the 90 % set of the default, with 100 rows of 60 columns.

    python benchmarks/set_coverage.py

Classes of Gaussian data with unit covariance around random means; logistic regression, as it comes.
Beside `DIPClassifier()` the classifier alone, with held-out rows from 5 and 20 folds, and CV+
(Barber et al. 2021; Romano et al. 2020), which asks the models of 5 folds about each new row.
"""

import warnings
from collections.abc import Callable

import harness
import numpy as np
from pandas import DataFrame
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.calibration import content_folds
from dipedl.decisions import prediction_sets

COVERAGE, ROWS, COLUMNS, NEW, FITS = 0.9, 100, 60, 1000, 500
FOLDS = (5, 20)


#: Number of classes, and the distance of their means from the origin in standard deviations.
LINES = {"two classes": (2, 3.0), "three": (3, 3.0), "three, hard": (3, 1.5)}


def draw_rows(means: np.ndarray, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(len(means), size=m)
    return means[y] + rng.standard_normal((m, means.shape[1])), y


def coverage(sets: np.ndarray, labels: np.ndarray) -> float:
    return float(sets[np.arange(len(labels)), labels].mean())


def logistic(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return LogisticRegression(max_iter=1000).fit(X, y).predict_proba


def alone(
    X: np.ndarray, y: np.ndarray, new: np.ndarray, labels: np.ndarray, k: int
) -> dict[str, float]:
    """Coverage of the classifier alone by k folds, of CV+; mean largest probabilities."""
    fold = content_folds(X, y, k)
    models = [logistic(X[fold != j], y[fold != j]) for j in range(k)]
    P, out = logistic(X, y)(new), np.zeros((len(y), y.max() + 1))
    for j, model in enumerate(models):
        out[fold == j] = model(X[fold == j])
    by_fold = np.stack([model(new)[np.arange(len(labels)), labels] for model in models])
    # A label is in the set unless too many held-out rows fit their label better than it fits.
    better = (out[np.arange(len(y)), y][None] > by_fold[fold].T).sum(axis=1)
    return {
        "alone": coverage(prediction_sets(P, out, y, coverage=COVERAGE), labels),
        "CV+": float((better < np.ceil(COVERAGE * (len(y) + 1))).mean()),
        "error": float((P.argmax(axis=1) != labels).mean()),
    }


def one_fit(classes: int, apart: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((classes, COLUMNS)) * apart / np.sqrt(COLUMNS)
    (X, y), (new, labels) = draw_rows(means, ROWS, rng), draw_rows(means, NEW, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier().fit(X, y)
    by_folds = {k: alone(X, y, new, labels, k) for k in FOLDS}
    return {
        "default": coverage(clf.predict_set(new, coverage=COVERAGE), labels),
        "temperature": float(clf.evidence_.calibrator_.temperature_),
        **by_folds[FOLDS[0]],
        **{f"alone, {k} folds": found["alone"] for k, found in by_folds.items()},
    }


def means(classes: int, apart: float) -> dict[str, float]:
    """Mean of each quantity over the fits, and the standard error of the default's coverage."""
    fits = DataFrame([one_fit(classes, apart, seed) for seed in range(FITS)])
    return fits.mean().round(4).to_dict() | {"standard error": round(fits["default"].sem(), 4)}


def measure() -> harness.Values:
    return {name: means(*line) for name, line in LINES.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
