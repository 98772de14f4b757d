"""Problems whose class probabilities are known, also those of a classifier on real inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn import datasets as bunches
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import datasets as library
from dipedl.datasets import Dataset

from .files import DataDir
from .images import load_mnist
from .spectra import semi_real_spectra
from .tables import load_covertype

__all__ = ["load_known_truth"]

Labelled = tuple[np.ndarray, np.ndarray]
#: Share of the uniform distribution in what a teacher says: no label is certain.
_UNSURE = 0.05


def _covertype(data_dir: DataDir) -> Labelled:
    """The ten columns of numbers, all seven kinds of forest."""
    data = load_covertype(left_out=7, data_dir=data_dir)
    (other,) = data.ood.values()
    X = np.concatenate([data.X_train, data.X_test, other])[:, :10]
    y = np.concatenate([data.y_train, data.y_test, np.full(len(other), data.n_classes)])
    return X.astype(float), y


def _mnist(data_dir: DataDir) -> Labelled:
    """Twenty principal components of 15,000 images."""
    data = load_mnist(data_dir=data_dir)
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:15_000]
    return PCA(20, random_state=0).fit_transform(data.X_train[rows]), data.y_train[rows]


def _spectra(data_dir: DataDir) -> Labelled:
    """Twenty principal components of 10,000 semi-real spectra, each of norm one."""
    spectra = semi_real_spectra(
        10_000, mix={"GALAXY": 0.4, "QSO": 0.3, "STAR": 0.3}, data_dir=data_dir
    )
    flux = spectra.flux / np.linalg.norm(spectra.flux, axis=1, keepdims=True)
    components = PCA(20, svd_solver="randomized", random_state=0).fit_transform(flux)
    return components.astype(float), np.asarray(spectra.label)


INPUTS: dict[str, Callable[[Any], Labelled]] = {
    "digits": lambda _: bunches.load_digits(return_X_y=True),
    "covertype": _covertype,
    "mnist": _mnist,
    "spectra": _spectra,
}


def _teachers(d: int) -> dict[str, Any]:
    kernel = Nystroem(gamma=0.3 / d, n_components=200, random_state=0)
    network = MLPClassifier((50,), alpha=1.0, max_iter=60, random_state=0)
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.02, max_iter=500)),
        "forest": RandomForestClassifier(100, min_samples_leaf=10, random_state=0),
        "mlp": make_pipeline(StandardScaler(), network),
        "kernel": make_pipeline(StandardScaler(), kernel, LogisticRegression(max_iter=500)),
    }


def _named(argument: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ValueError(f"{argument} must be one of {list(known)}, got {name!r}")
    return known[name]


def load_known_truth(
    family: str = "gaussians",
    settings: Mapping[str, Any] | None = None,
    *,
    n_samples: int = 1000,
    n_test: int = 1000,
    random_state: int = 0,
    data_dir: DataDir = None,
) -> Dataset:
    """Labels drawn from known class probabilities, as `dipedl.datasets.load_known_truth`.

    The family "taught" is real inputs with the probabilities that a classifier, fitted to all of
    them, gives. Its settings are ``inputs``, "digits", "covertype", "mnist" or "spectra", and
    ``teacher``, "logistic", "forest", "mlp" or "kernel".
    """
    rows = {"n_samples": n_samples, "n_test": n_test, "random_state": random_state}
    if family != "taught":
        data: Dataset = library.load_known_truth(family, settings, **rows)
        return data
    settings = {"inputs": "digits", "teacher": "logistic"} if settings is None else settings
    problem = taught(**settings, data_dir=data_dir)  # type: ignore[arg-type]
    data = library.load_known_truth(problem, settings, **rows)
    source = replace(data.provenance[0], name="known truth: taught")
    return replace(data, name=f"taught, {n_samples} rows", provenance=(source,))


@lru_cache(maxsize=2)
def taught(inputs: str, teacher: str, data_dir: DataDir) -> tuple[np.ndarray, np.ndarray]:
    """Inputs X (n, d) and the teacher's probabilities (n, k)."""
    X, y = _named("inputs", inputs, INPUTS)(data_dir)
    P = _named("teacher", teacher, _teachers(X.shape[1])).fit(X, y).predict_proba(X)
    return X, np.asarray((1 - _UNSURE) * P + _UNSURE / P.shape[1])
