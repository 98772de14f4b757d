"""How often the 90 % set of the default holds the true class, where rows are few.

    python benchmarks/set_coverage.py

Classes of Gaussian data with unit covariance around random means, and five binary columns; logistic
regression, as it comes. Beside `DIPClassifier()` the classifier alone, with held-out rows from the
same folds, and CV+ (Barber et al. 2021; Romano et al. 2020), which asks the models of all folds
about each new row.
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
import receipt
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.calibration import content_folds
from dipedl.decisions import prediction_sets

COVERAGE, NEW, CLASSES, FOLDS = 0.9, 1000, 3, 5
#: Processes; results do not depend on them.
JOBS = 3


class Line(NamedTuple):
    """n rows of p columns; how far apart the means are (0: binary columns); how many fits."""

    n: int
    p: int
    apart: float
    fits: int


LINES = {
    "100 rows, 60 columns, hard": Line(100, 60, 1.5, 300),
    "100 rows, 60 columns, easy": Line(100, 60, 3.0, 100),
    "100 rows, 5 columns, hard": Line(100, 5, 1.5, 100),
    "400 rows, 60 columns, hard": Line(400, 60, 1.5, 50),
    "300 rows, 5 binary columns": Line(300, 5, 0.0, 100),
}


def drawn(line: Line, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows and labels for a fit, and new ones."""
    rng = np.random.default_rng(seed)
    m = line.n + NEW
    y = rng.integers(CLASSES, size=m)
    if line.apart:
        means = rng.normal(size=(CLASSES, line.p)) * line.apart / np.sqrt(line.p)
        X = means[y] + rng.normal(size=(m, line.p))
    else:
        shares = rng.uniform(0.1, 0.9, size=(CLASSES, line.p))
        X = (rng.random((m, line.p)) < shares[y]).astype(float)
    return X[: line.n], y[: line.n], X[line.n :], y[line.n :]


def held(sets: np.ndarray, labels: np.ndarray) -> float:
    return float(sets[np.arange(len(labels)), labels].mean())


def alone(X: np.ndarray, y: np.ndarray, new: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Coverage of the classifier alone by folds, and of CV+; its mean largest probability."""
    fold = content_folds(X, y, FOLDS)
    models = [
        LogisticRegression(max_iter=1000).fit(X[fold != j], y[fold != j]) for j in range(FOLDS)
    ]
    out = np.zeros((len(y), CLASSES))
    for j, model in enumerate(models):
        out[fold == j] = model.predict_proba(X[fold == j])
    P = LogisticRegression(max_iter=1000).fit(X, y).predict_proba(new)
    own = out[np.arange(len(y)), y]
    rows = np.arange(len(labels))
    by_fold = np.stack([model.predict_proba(new)[rows, labels] for model in models])
    # The label is in the set unless too many held-out rows fit their label better than it fits.
    better = (own[None] > by_fold[fold].T).sum(axis=1)
    return {
        "classifier alone": held(prediction_sets(P, out, y, coverage=COVERAGE), labels),
        "CV+": float((better < np.ceil(COVERAGE * (len(y) + 1))).mean()),
        "largest probability, held out": float(out.max(axis=1).mean()),
        "largest probability, new": float(P.max(axis=1).mean()),
        "error": float((P.argmax(axis=1) != labels).mean()),
    }


def one_fit(line: Line, seed: int) -> dict[str, float]:
    X, y, new, labels = drawn(line, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = DIPClassifier().fit(X, y)
    found = {
        "default": held(clf.predict_set(new, coverage=COVERAGE), labels),
        "temperature": float(clf.evidence_.calibrator_.temperature_),
    }
    return found | alone(X, y, new, labels)


def measured(line: Line) -> dict[str, float]:
    """Mean of each quantity over the fits, and the standard error of coverages."""
    fits = Parallel(n_jobs=JOBS)(delayed(one_fit)(line, seed) for seed in range(line.fits))
    columns = {name: np.array([fit[name] for fit in fits]) for name in fits[0]}
    found = {name: round(float(values.mean()), 4) for name, values in columns.items()}
    error = columns["default"].std(ddof=1) / np.sqrt(line.fits)
    return found | {"standard error": round(float(error), 4), "fits": line.fits}


def main() -> None:
    config = {"coverage": COVERAGE, "new": NEW, "lines": {k: v._asdict() for k, v in LINES.items()}}
    started = time.perf_counter()
    values = {}
    for name, line in LINES.items():
        values[name] = measured(line)
        print(name, values[name], flush=True)
    receipt.write("set_coverage", config, values, time.perf_counter() - started)


if __name__ == "__main__":
    main()
