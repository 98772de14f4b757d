"""Graphs of torch models: a `DIPModule` whole, and the network part of a `DIPClassifier`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ....networks.batches import Arguments, device_of
from ....networks.layer_features import POOLS, LayerFeatures, capture_outputs
from ....networks.torch_classifier import TorchClassifier, TorchEstimator
from .._check import largest_gap, session
from .._fitted import unfrozen
from .inputs import Call
from .trace import traced

OUTPUTS = ("probabilities", "vacuity", "log_evidence")
STRENGTH, ALARM = "strength", "ood"
#: Input of the graphs of `network_graph`: rows of pixels (n, d).
ROWS = "X"
#: Largest difference in float32, where far inputs lose digits on both sides, and in float64.
_TOLERANCE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-5}


def torch_graph(model: Any, example: Any, *, opset: int) -> Any:
    """The ``onnx.ModelProto`` of a fitted `DIPModule`, traced on an example batch of its network.

    Types and shapes of the inputs are those of the example, save for the number of rows, and their
    names those of the arguments of ``forward``, or of the function that gives the features.
    Outputs: "probabilities" (n, k), "vacuity" (n,), "log_evidence" (n,), with a spread "strength"
    (n,), and "ood" (n,), true where `predict_ood` gives -1. ValueError if onnxruntime disagrees on
    the example.
    """
    call = Call.of(example, model.source.call, device_of(model.network))
    wrapped = _Outputs(model, call)
    with torch.no_grad():
        # errors of the module itself keep their message
        known = wrapped(call.tensors)
    proto = traced(wrapped, call.tensors, call.names, wrapped.outputs, opset=opset)
    check_graph(proto, dict(zip(call.names, call.tensors, strict=True)), known[:-1])
    return proto


def check_graph(proto: Any, inputs: Mapping[str, Tensor], known: Sequence[Tensor]) -> None:
    """Raise ValueError unless the first outputs of the graph for these inputs are the known ones.

    Tolerances are 1e-3 in float32 and 1e-5 in float64, relative where a value is above one.
    """
    try:
        run = session(proto)
        feeds = {needed.name: _array(inputs[needed.name]) for needed in run.get_inputs()}
        found = run.run(None, feeds)
    except ImportError:
        raise
    # onnxruntime's errors share only this class.
    except Exception as error:
        raise ValueError(
            "the graph was made, but onnxruntime cannot run it on the CPU, so nothing was written: "
            f"{error}; it has no bfloat16, and no convolution of float64: export module.float()"
        ) from error
    for output, mine, theirs in zip(proto.graph.output, found, known, strict=False):
        right = _array(theirs)
        gap, row = largest_gap(_numbers(mine), _numbers(right))
        if not gap <= _TOLERANCE[right.dtype]:
            raise ValueError(
                f"the graph disagrees with the module: {output.name} of row {row} of the example "
                f"is {mine[row]} in onnxruntime and {right[row]} in PyTorch (difference {gap:.2g});"
                " nothing was written. Please report it with the network"
            )


def _array(tensor: Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        raise TypeError("an input is bfloat16")
    return np.asarray(tensor.detach().cpu().numpy())


def _numbers(values: np.ndarray) -> np.ndarray:
    """Replace NaN by a number, since NaN is the expected output for NaN."""
    return np.nan_to_num(values.astype(np.float64), nan=-1.0, posinf=np.inf, neginf=-np.inf)


def network_graph(classifier: Any = None, features: Any = None, *, opset: int) -> Any:
    """The ``onnx.ModelProto`` of the fitted networks behind a `DIPClassifier`, one at least.

    A TorchClassifier gives "probabilities" (n, k); a TorchEstimator or LayerFeatures gives
    "features" (n, p), its ``transform``. A network that both share runs once. The input "X" (n, d)
    is in the wider of the types that the networks compute in, the outputs are in float64.
    """
    classifier, features = unfrozen(classifier), unfrozen(features)
    has_softmax = getattr(type(classifier), "predict_proba", None) is TorchClassifier.predict_proba
    if classifier is not None and not has_softmax:
        raise TypeError(
            "a network behind the probabilities must be a TorchClassifier to be exported, got "
            f"{type(classifier).__name__}: only the softmax of logits has an ONNX form here"
        )
    owners = [_owner(part) for part in (classifier, features) if part is not None]
    dtype = max((owner.predict_dtype() for owner in owners), key=lambda found: found.itemsize)
    rows = torch.zeros(2, owners[0].n_features_in_, dtype=dtype, device="cpu")
    module = _Rows(classifier, features)
    return traced(module, (rows,), [ROWS], module.outputs, opset=opset)


class _Outputs(nn.Module):
    """The outputs of a `DIPModule`, whose names are `outputs`."""

    def __init__(self, model: Any, call: Call) -> None:
        super().__init__()
        self.model = model
        self.call = call
        supported = () if model.head.spread is None else (STRENGTH,)
        self.outputs = (*OUTPUTS, *supported, ALARM)

    def forward(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        args, kwargs = self.call.filled(tensors)
        log_density, logits = self.model.scores_and_logits(Arguments(args, kwargs))
        answer = self.model.head(log_density, logits)
        flagged = self.model.head.flags(log_density) < 0
        strength = () if STRENGTH not in self.outputs else (answer.concentration.sum(dim=1),)
        return answer.mean, answer.vacuity, answer.log_evidence, *strength, flagged


class _Rows(nn.Module):
    """Rows of pixels (n, d) to probabilities and features, each network run once."""

    def __init__(self, classifier: TorchClassifier | None, features: Any) -> None:
        super().__init__()
        self.classifier: Any = None if classifier is None else classifier.module_
        self.source: Any = None if features is None else _owner(features).module_
        self.layers = features if isinstance(features, LayerFeatures) else None
        networks = {"probabilities": self.classifier, "features": self.source}
        self.outputs = [name for name, network in networks.items() if network is not None]

    def forward(self, rows: tuple[Tensor]) -> tuple[Tensor, ...]:
        (X,) = rows
        if self.source is None:
            return (_probabilities(self.classifier(X)),)
        logits, features = _logits_and_features(self.source, self.layers, _as_of(self.source, X))
        if self.classifier is None:
            return (features.double(),)
        shared = self.classifier is self.source
        own = logits if shared else self.classifier(_as_of(self.classifier, X))
        return _probabilities(own), features.double()


def _as_of(network: nn.Module, X: Tensor) -> Tensor:
    return X.to(next(network.parameters()).dtype)


def _probabilities(logits: Tensor) -> Tensor:
    # in float64, as the estimator's own softmax
    return torch.softmax(logits.double(), dim=1)


def _logits_and_features(
    network: Any, layers: LayerFeatures | None, X: Tensor
) -> tuple[Tensor, Tensor]:
    """Logits, and the ``transform`` of the estimator or of `layers`, from one pass."""
    if layers is None:
        both: tuple[Tensor, Tensor] = network.outputs_and_features(X)
        return both
    pool, names = POOLS[layers.pool], list(layers.layers)
    with capture_outputs(network, names, lambda out: pool(out) if out.ndim > 2 else out) as outputs:
        logits = network(X)
    return logits, torch.cat([outputs[name] for name in names], dim=1)


def _owner(features: Any) -> TorchEstimator:
    owner: TorchEstimator = features.estimator_ if isinstance(features, LayerFeatures) else features
    return owner
