"""Networks of `dipedl.nn` as parts of a graph; PyTorch is imported only if needed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.frozen import FrozenEstimator

if TYPE_CHECKING:
    from .._graphs.builder import Tensor


def unfrozen(estimator: Any) -> Any:
    """What is inside a `FrozenEstimator`, or the estimator."""
    return unfrozen(estimator.estimator) if isinstance(estimator, FrozenEstimator) else estimator


def evidence_owner(model: Any) -> Any:
    """The fitted model that holds the evidence: a detector's own, or of the classifier inside."""
    return model if hasattr(model, "evidence_") else unfrozen(model.estimator)


def is_network(estimator: Any) -> bool:
    """Whether a classifier or transformer is a network of `dipedl.nn`."""
    return _owner(unfrozen(estimator)) is not None


def is_shared(classifier: Any, features: Any) -> bool:
    """Whether features and classifier are the same network."""
    mine, theirs = (_owner(unfrozen(e)) for e in (classifier, features))
    return mine is not None and theirs is not None and mine.module_ is theirs.module_


def _owner(estimator: Any) -> Any:
    """The fitted network estimator behind a classifier or features; None if there is none."""
    # A network can exist only if its module is already loaded.
    networks = sys.modules.get("dipedl.nn._estimator")
    layers = sys.modules.get("dipedl.nn.layer_features")
    if layers is not None and isinstance(estimator, layers.LayerFeatures):
        return estimator.estimator_
    return estimator if networks and isinstance(estimator, networks.TorchEstimator) else None


def answers(X: Tensor, classifier: Any = None, features: Any = None) -> dict[str, Tensor]:
    """Probabilities of the classifier and features, by name, for inputs X (n, d)."""
    from .._torch.graph import network_graph

    model = network_graph(classifier, features, opset=X.graph.opset)
    wanted = model.graph.input[0]
    is_double = wanted.type.tensor_type.elem_type == 11  # onnx.TensorProto.DOUBLE
    found = X.graph.embed(model, {wanted.name: X.cast(np.float64 if is_double else np.float32)})
    return {name: tensor.cast(np.float64) for name, tensor in found.items()}
