"""Networks of `dipedl.networks` as parts of a graph; PyTorch is imported only if needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._nodes.builder import Tensor


def network_outputs(X: Tensor, classifier: Any = None, features: Any = None) -> dict[str, Tensor]:
    """Probabilities of the classifier and features, by name, for inputs X (n, d)."""
    from .._torch.graph import network_graph

    model = network_graph(classifier, features, opset=X.graph.opset)
    wanted = model.graph.input[0]
    is_double = wanted.type.tensor_type.elem_type == 11  # onnx.TensorProto.DOUBLE
    found = X.graph.embed(model, {wanted.name: X.cast(np.float64 if is_double else np.float32)})
    return {name: tensor.cast(np.float64) for name, tensor in found.items()}
