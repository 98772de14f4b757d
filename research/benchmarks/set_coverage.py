"""Coverage of the 90 % set of the default, with 100 rows of 60 columns.

    python benchmarks/set_coverage.py

Classes of Gaussian data with unit covariance around random means; logistic regression, as it comes.
Beside `DIPClassifier()` the classifier alone, with held-out rows from 5, 10 and 20 folds, and CV+
(Barber et al. 2021; Romano et al. 2020), which asks the models of 5 folds about each new row.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import harness
import numpy as np
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.calibration import content_folds
from dipedl.decisions import prediction_sets

COVERAGE, ROWS, COLUMNS, NEW, FITS = 0.9, 100, 60, 1000, 500
FOLDS = (5, 10, 20)


class Line(NamedTuple):
    """Number of classes, and the distance of their means from the origin in standard deviations."""

    classes: int
    apart: float


LINES = {"two classes": Line(2, 3.0), "three": Line(3, 3.0), "three, hard": Line(3, 1.5)}


def drawn(means: np.ndarray, m: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
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
        "largest, held out": float(out.max(axis=1).mean()),
        "largest, new": float(P.max(axis=1).mean()),
        "error": float((P.argmax(axis=1) != labels).mean()),
    }


def one_fit(line: Line, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((line.classes, COLUMNS)) * line.apart / np.sqrt(COLUMNS)
    (X, y), (new, labels) = drawn(means, ROWS, rng), drawn(means, NEW, rng)
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


def measured(line: Line) -> dict[str, float]:
    """Mean of each quantity over the fits, and the standard error of the default's coverage."""
    fits = [one_fit(line, seed) for seed in range(FITS)]
    columns = {name: np.array([fit[name] for fit in fits]) for name in fits[0]}
    found = {name: round(float(values.mean()), 4) for name, values in columns.items()}
    error = columns["default"].std(ddof=1) / np.sqrt(FITS)
    return found | {"standard error": round(float(error), 4)}


def measure() -> harness.Measured:
    config = {"coverage": COVERAGE, "rows": ROWS, "columns": COLUMNS, "new": NEW, "fits": FITS}
    config["lines"] = {name: line._asdict() for name, line in LINES.items()}
    return config, {name: measured(line) for name, line in LINES.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
