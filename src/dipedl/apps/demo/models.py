"""The classifiers of the demo, each inside `DIPClassifier` with its defaults.

Every choice here was made before looking at a test or an OOD image: library defaults, and small
sizes where the defaults are slow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from ... import DIPClassifier
from ...datasets import Dataset
from ...plugins import explain_missing

_HELD_OUT = 0.2
_ON_PIXELS = (
    "All defaults, DIPClassifier(classifier).fit(X, y), on images at half resolution: 196 pixels. "
    "Several densities of the pixels are fused; which of them count, and how much, is decided on "
    "held-out training digits. From these also come temperature, budget of caution and alarm "
    "threshold, by 5-fold cross-fitting."
)
_ON_FEATURES = (
    "The default densities, of the network's 64 features. The network has memorised its training "
    "images, so their features are more typical than those of any new image; a fifth of the "
    "training images is therefore kept away from network and density, and temperature, budget of "
    "caution and alarm threshold come from them."
)


@dataclass(frozen=True)
class Candidate:
    """A classifier of the demo: what was fitted, how, and the optional package it `needs`.

    `view` gives the images as the classifier gets them.
    """

    title: str
    classifier: str
    density: str
    fit: Callable[[np.ndarray, np.ndarray, int], DIPClassifier]
    view: Callable[[Dataset], Dataset]
    needs: str = ""


def halved(data: Dataset) -> Dataset:
    """The images at half resolution: the mean of each square of four pixels.

    A tenth of the time, and no less accurate on held-out training images.
    """
    height, width = data.image_shape or (1, 1)
    shape = (height // 2, width // 2)

    def half(X: np.ndarray) -> np.ndarray:
        squares = X.reshape(len(X), shape[0], 2, shape[1], 2)
        return np.asarray(squares.mean(axis=(2, 4)).reshape(len(X), -1))

    return replace(
        data,
        X_train=half(data.X_train),
        X_test=half(data.X_test),
        ood={name: half(X) for name, X in data.ood.items()},
        image_shape=shape,
    )


def _default(make: Callable[[int], Any]) -> Callable[[np.ndarray, np.ndarray, int], DIPClassifier]:
    def fit(X: np.ndarray, y: np.ndarray, seed: int) -> DIPClassifier:
        return DIPClassifier(make(seed), random_state=seed).fit(X, y)

    return fit


def _boosted(seed: int) -> HistGradientBoostingClassifier:
    # Small trees and coarse bins: half the time, and no less accurate on held-out training images.
    return HistGradientBoostingClassifier(
        max_iter=30, learning_rate=0.3, max_leaf_nodes=15, max_bins=32, random_state=seed
    )


def _fit_cnn(X: np.ndarray, y: np.ndarray, seed: int) -> DIPClassifier:
    from ...networks import SmallCNN, TorchClassifier, Training

    X_fit, X_held_out, y_fit, y_held_out = train_test_split(
        X, y, test_size=_HELD_OUT, stratify=y, random_state=seed
    )
    training = Training(batch_size=64, learning_rate=3e-3, schedule="one-cycle", n_jobs=1)
    # in float64, as the other classifiers: in float32 many probabilities round to 1 and tie
    network = TorchClassifier(SmallCNN(), training, random_state=seed, precision="float64")
    cnn = FrozenEstimator(network.fit(X_fit, y_fit))
    clf = DIPClassifier(cnn, features=cnn, random_state=seed)
    return clf.fit(X_fit, y_fit, calibration=(X_held_out, y_held_out))


MODELS: dict[str, Candidate] = {
    "linear": Candidate(
        "Linear",
        "Logistic regression",
        _ON_PIXELS,
        _default(lambda seed: LogisticRegression(max_iter=300)),
        halved,
    ),
    "forest": Candidate(
        "Forest",
        "Random forest, 100 trees",
        _ON_PIXELS,
        _default(lambda seed: RandomForestClassifier(n_jobs=-1, random_state=seed)),
        halved,
    ),
    "boosted": Candidate(
        "Boosted",
        "Histogram gradient boosting, 30 rounds of small trees",
        _ON_PIXELS,
        _default(_boosted),
        halved,
    ),
    "cnn": Candidate(
        "CNN",
        "Two convolutions and a hidden layer (PyTorch), on all 784 pixels",
        _ON_FEATURES,
        _fit_cnn,
        lambda data: data,
        "torch",
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
