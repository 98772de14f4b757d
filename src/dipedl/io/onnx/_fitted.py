"""Kinds and parts of fitted models, without importing the models or PyTorch."""

from __future__ import annotations

from typing import Any

from sklearn.frozen import FrozenEstimator

from ..names import is_type

#: Models that can be exported, by the module that defines them.
_MODELS = {
    "DIPClassifier": "dipedl.classifier",
    "OODDetector": "dipedl.detector",
    "DIPModule": "dipedl.pretrained.dip_module",
}


def kind_of(model: Any) -> str | None:
    """Return the name of the class in `_MODELS` that `model` is an instance of, or None."""
    bases = type(model).__mro__
    return next(
        (n for n, home in _MODELS.items() if any(is_type(base, f"{home}.{n}") for base in bases)),
        None,
    )


def unfrozen(estimator: Any) -> Any:
    """Return the estimator inside a `FrozenEstimator`, or the estimator itself."""
    return unfrozen(estimator.estimator) if isinstance(estimator, FrozenEstimator) else estimator


def evidence_owner(model: Any) -> Any:
    """Return the fitted model that holds the evidence: `model`, or the classifier inside."""
    return model if hasattr(model, "evidence_") else unfrozen(model.estimator)


def is_network(estimator: Any) -> bool:
    """Return whether a classifier or transformer is a network of `dipedl.networks`."""
    return _network(unfrozen(estimator)) is not None


def is_shared(classifier: Any, features: Any) -> bool:
    """Return whether features and classifier are the same network."""
    mine, theirs = (_network(unfrozen(e)) for e in (classifier, features))
    return mine is not None and theirs is not None and mine.module_ is theirs.module_


def _network(estimator: Any) -> Any:
    """Return the fitted network estimator behind a classifier or features; None without one."""
    if not hasattr(getattr(estimator, "estimator_", estimator), "apply_network"):
        return None
    from ...networks.layer_features import LayerFeatures
    from ...networks.torch_classifier import TorchEstimator

    if isinstance(estimator, LayerFeatures):
        return estimator.estimator_
    return estimator if isinstance(estimator, TorchEstimator) else None
