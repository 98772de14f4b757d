"""Kinds and parts of fitted models, without importing the models or PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from sklearn.frozen import FrozenEstimator

#: Models that can be exported, by the module that defines them.
_MODELS = {
    "DIPClassifier": "dipedl.classifier",
    "OODDetector": "dipedl.detector",
    "DIPModule": "dipedl.pretrained.dip_module",
}


def kind_of(model: Any) -> str | None:
    """Name of the class in `_MODELS` that `model` is an instance of; None for any other object."""
    return next((name for name, home in _MODELS.items() if _is_a(model, home, name)), None)


def _is_a(value: Any, module: str, name: str) -> bool:
    # An instance can exist only if the module of its class is already loaded.
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def unfrozen(estimator: Any) -> Any:
    """The estimator inside a `FrozenEstimator`, or the estimator itself."""
    return unfrozen(estimator.estimator) if isinstance(estimator, FrozenEstimator) else estimator


def evidence_owner(model: Any) -> Any:
    """The fitted model that holds the evidence: a detector's own, or of the classifier inside."""
    return model if hasattr(model, "evidence_") else unfrozen(model.estimator)


def is_network(estimator: Any) -> bool:
    """Whether a classifier or transformer is a network of `dipedl.nn`."""
    return _network(unfrozen(estimator)) is not None


def is_shared(classifier: Any, features: Any) -> bool:
    """Whether features and classifier are the same network."""
    mine, theirs = (_network(unfrozen(e)) for e in (classifier, features))
    return mine is not None and theirs is not None and mine.module_ is theirs.module_


def _network(estimator: Any) -> Any:
    """The fitted network estimator behind a classifier or features; None if there is none."""
    if _is_a(estimator, "dipedl.nn.layer_features", "LayerFeatures"):
        return estimator.estimator_
    return estimator if _is_a(estimator, "dipedl.nn.torch_classifier", "TorchEstimator") else None
