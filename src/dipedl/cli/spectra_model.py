"""The model of ``dipedl spectra``: features of spectra and a DIPClassifier, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from ..classifier import DIPClassifier
from ..metrics import accuracy, balanced_accuracy, class_recall
from ..persistence.model_file import load
from ..spectra import spectral_features

#: Classifiers by their name on the command line.
ESTIMATORS = {
    "mlp": lambda seed: MLPClassifier((64,), max_iter=300, random_state=seed),
    "logistic": lambda seed: LogisticRegression(max_iter=2000),
}
#: Smallest number of spectra per class: two in each of five folds.
MIN_PER_CLASS = 10


class Predictions(NamedTuple):
    """Predictions for n spectra: probabilities (n, k), vacuity (n,), p-value (n,)."""

    proba: NDArray[np.float64]
    vacuity: NDArray[np.float64]
    p_value: NDArray[np.float64]


def fit_model(
    flux: NDArray[np.float32],
    classes: NDArray[Any],
    *,
    estimator: str = "mlp",
    components: int | None = None,
    seed: int = 0,
) -> Pipeline:
    """Steps of `spectral_features` and a DIPClassifier with its defaults, fitted."""
    check_estimator(estimator)
    names, counts = np.unique(classes, return_counts=True)
    if len(names) < 2 or counts.min() < MIN_PER_CLASS:
        found = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        raise ValueError(
            f"two classes at least are needed, with {MIN_PER_CLASS} spectra each, got "
            f"{found or 'none'}; add labelled spectra, or name the classes to keep by --classes"
        )
    n_components = min(500, len(flux) // 10) if components is None else components
    features = spectral_features(n_components=n_components, random_state=seed)
    Z = features.fit_transform(flux)
    classifier = DIPClassifier(ESTIMATORS[estimator](seed), random_state=seed).fit(Z, classes)
    return Pipeline([*features.steps, ("classifier", classifier)])


def check_estimator(name: str) -> None:
    """Refuse a name that is not in ESTIMATORS."""
    if name not in ESTIMATORS:
        raise ValueError(f"--estimator must be one of {list(ESTIMATORS)}, got {name!r}")


def predictions(model: Pipeline, flux: NDArray[np.float32]) -> Predictions:
    """Predictions for spectra (n, p)."""
    Z = model[:-1].transform(flux)
    dirichlet = model[-1].predict_dirichlet(Z)
    return Predictions(dirichlet.mean, dirichlet.vacuity, model[-1].p_value(Z))


def held_out(model: Pipeline) -> tuple[float, float, dict[str, float]]:
    """Accuracy, balanced accuracy and recall of each class on the held-out rows."""
    classifier = model[-1]
    y, proba = classifier.evidence_.held_out_.labels, classifier.held_out_dirichlet().mean
    names = [str(name) for name in classifier.classes_]
    recall = dict(zip(names, map(float, class_recall(y, proba)), strict=True))
    return float(accuracy(y, proba)), float(balanced_accuracy(y, proba)), recall


def read_model(path: Path) -> Pipeline:
    """Read a model of `fit_model`."""
    wanted = f"{str(path)!r} must be a model of spectra; make one with: dipedl spectra fit"
    if not path.is_file():
        raise ValueError(f"{wanted}, but there is no such file")
    model = load(path)
    if not (isinstance(model, Pipeline) and isinstance(model[-1], DIPClassifier)):
        raise ValueError(f"{wanted}, but it holds a {type(model).__name__}")
    return model
