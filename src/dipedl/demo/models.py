"""The classifiers of the demo, each with its density.

Every choice here was made before looking at a test or an OOD image: library defaults, and small
sizes where the defaults are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from .. import DIPClassifier
from .._plugins import explain_missing
from ..density import GDADensity

_HELD_OUT = 0.2
_ON_PIXELS = (
    "One Gaussian per class over the 784 pixels, covariance shrunk as the OAS formula says. All "
    "pixels share one unit, so they are not standardised. Temperature of the classifier, budget of "
    "caution and alarm threshold come from 5-fold cross-fitting on the training images."
)
_ON_FEATURES = (
    "One Gaussian per class over the network's 64 features. The network has memorised its training "
    "images, so their features are more typical than those of any new image; a fifth of the "
    "training images is therefore kept away from network and density, and temperature, budget of "
    "caution and alarm threshold come from them."
)


@dataclass(frozen=True)
class Candidate:
    """A classifier of the demo: what was fitted, how, and the optional package it `needs`."""

    title: str
    classifier: str
    density: str
    fit: Callable[[np.ndarray, np.ndarray, int], DIPClassifier]
    needs: str = ""


def _on_pixels(make: Callable[[int], Any]) -> Callable[[np.ndarray, np.ndarray, int], Any]:
    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> DIPClassifier:
        density = GDADensity(shrinkage="oas")
        clf = DIPClassifier(make(seed), density, features="passthrough", random_state=seed)
        return clf.fit(X, y)

    return fit


def _boosted(seed: int) -> Any:
    # On 50 principal components and not on 784 pixels: six times as fast, and no less accurate
    # on held-out training images.
    trees = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.2, random_state=seed)
    return make_pipeline(PCA(50, random_state=seed), trees)


def _fit_cnn(X: np.ndarray, y: np.ndarray, seed: int) -> DIPClassifier:
    from ..nn import SmallCNN, TorchClassifier, Training

    X_fit, X_held_out, y_fit, y_held_out = train_test_split(
        X, y, test_size=_HELD_OUT, stratify=y, random_state=seed
    )
    training = Training(batch_size=64, learning_rate=3e-3, schedule="one-cycle", n_jobs=1)
    # in float64, as the other classifiers: in float32 many probabilities round to 1 and tie
    network = TorchClassifier(SmallCNN(), training, random_state=seed, precision="float64")
    cnn = FrozenEstimator(network.fit(X_fit, y_fit))
    clf = DIPClassifier(cnn, GDADensity(shrinkage="oas"), features=cnn)
    return clf.fit(X_fit, y_fit, calibration=(X_held_out, y_held_out))


MODELS: dict[str, Candidate] = {
    "linear": Candidate(
        "Linear",
        "Logistic regression on pixels",
        _ON_PIXELS,
        _on_pixels(lambda seed: LogisticRegression(max_iter=300)),
    ),
    "forest": Candidate(
        "Forest",
        "Random forest, 200 trees",
        _ON_PIXELS,
        _on_pixels(lambda seed: RandomForestClassifier(200, n_jobs=-1, random_state=seed)),
    ),
    "boosted": Candidate(
        "Boosted",
        "Histogram gradient boosting, 60 rounds, on 50 principal components",
        _ON_PIXELS,
        _on_pixels(_boosted),
    ),
    "cnn": Candidate(
        "CNN", "Two convolutions and a hidden layer (PyTorch)", _ON_FEATURES, _fit_cnn, "torch"
    ),
}


def default_models() -> tuple[str, ...]:
    """Names of the classifiers whose packages are installed."""
    return tuple(name for name, model in MODELS.items() if _installed(model))


def checked_models(names: tuple[str, ...] | None) -> tuple[str, ...]:
    """`names`, once each, or the default ones; raises before the long work starts."""
    if names is None:
        return default_models()
    unknown = [name for name in names if name not in MODELS]
    if unknown or not names:
        raise ValueError(f"models must be names out of {list(MODELS)}, got {unknown or 'none'}")
    for name in names:
        if not _installed(MODELS[name]):
            missing = ImportError(name=MODELS[name].needs)
            raise explain_missing(missing, f"the model {name!r}")
    return tuple(dict.fromkeys(names))


def _installed(model: Candidate) -> bool:
    return not model.needs or find_spec(model.needs) is not None
