"""The weights of a trained network, stored beside its predictions, and the network restored.

Some methods need more of a shared network than its predictions: passes with dropout, other layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def weights_of(model: Any) -> dict[str, np.ndarray] | None:
    """Return the arrays of a network classifier by name; None for any other classifier."""
    if not hasattr(model, "module_") or not hasattr(model, "build_network"):
        return None
    state = model.module_.state_dict()
    # contiguous: safetensors writes memory as it lies, and these may be channels-last
    return {name: value.cpu().contiguous().numpy() for name, value in state.items()}


def restored(network: Any, X: np.ndarray, y: np.ndarray, weights: Mapping[str, np.ndarray]) -> Any:
    """A network classifier with its settings, fitted: with these weights in place of a training.

    Shapes and classes are those of the training rows X (n, d) and y (n,).
    """
    import torch

    from dipedl.networks.spectral_norm import remove_spectral_norm

    network.validate_fit(X, y, None)
    module = remove_spectral_norm(network.build_network(len(network.classes_), seed=0))
    module.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    network.module_ = module.eval().to(network.predict_dtype())
    return network
