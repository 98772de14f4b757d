"""Graphs of torch models: a `DIPModule` whole, and the network part of a `DIPClassifier`."""

from __future__ import annotations

import inspect
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...networks.batches import Arguments, as_call, device_of, map_tensors, move_tensors
from ...networks.layer_features import LayerFeatures, capture_outputs, pool_rows
from ...networks.torch_classifier import TorchClassifier
from ._check import require_equal, session, unfrozen
from ._nodes import erfc_coefficients

#: ``onnx.TensorProto.INT64``
_INT64 = 7


def translations() -> dict[Any, Callable[..., Any]]:
    """ONNX of log sigmoid, log(exp a + exp b), log Phi and of a look-up in sorted rows.

    The first two are finite wherever PyTorch's own are. The exporter's are ``Log(Sigmoid(x))`` and
    ``Log(Exp(a) + Exp(b))``: -inf below -104 in float32, and inf above 88. It lacks the
    others.
    """
    from onnxscript import opset18

    # its annotations omit the constants that the tracer accepts
    op: Any = opset18

    def log_sigmoid(x: Any) -> Any:
        zero = op.CastLike(0.0, x)
        return op.Sub(op.Min(x, zero), _log1p(op.Exp(op.Neg(op.Abs(x)))))

    def logaddexp(a: Any, b: Any) -> Any:
        # the difference of equal infinities is NaN, and not needed
        gap = op.Where(op.Equal(a, b), op.CastLike(0.0, a), op.Abs(op.Sub(a, b)))
        return op.Add(op.Max(a, b), _log1p(op.Exp(op.Neg(gap))))

    def log_ndtr(z: Any) -> Any:
        x = op.Div(op.Abs(z), op.CastLike(2**0.5, z))
        t = op.Div(op.CastLike(2.0, z), op.Add(x, op.CastLike(2.0, z)))
        v = op.Sub(op.Add(t, t), op.CastLike(1.0, z))
        polynomial = op.CastLike(0.0, z)
        for c in erfc_coefficients()[::-1].tolist():
            polynomial = op.Add(op.Mul(polynomial, v), op.CastLike(c, z))
        tail = op.Sub(op.Sub(op.Log(t), op.Mul(x, x)), op.CastLike(log(2), z))
        lower = op.Add(tail, polynomial)
        upper = _log1p(op.Neg(op.Exp(lower)))
        return op.Where(op.Less(z, op.CastLike(0.0, z)), lower, upper)

    def searchsorted(table: Any, values: Any, **options: Any) -> Any:
        """Number of entries of each row of the table (r, m) below values (r, n)."""
        below = op.Less(op.Unsqueeze(table, [1]), op.Unsqueeze(values, [2]))
        return op.ReduceSum(op.Cast(below, to=_INT64), [2], keepdims=0)

    def _log1p(x: Any) -> Any:
        return op.Log(op.Add(op.CastLike(1.0, x), x))

    aten = torch.ops.aten
    return {
        aten.log_sigmoid.default: log_sigmoid,
        aten.logaddexp.default: logaddexp,
        aten.special_log_ndtr.default: log_ndtr,
        aten.searchsorted.Tensor: searchsorted,
    }


#: Name of the axis of the rows in the graph.
BATCH = "batch"
_PROTOBUF_LIMIT = 2**31 - 1


def trace(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    opset: int,
) -> Any:
    """The ``onnx.ModelProto`` of ``module(inputs)``; `module` takes and gives a tuple of tensors.

    Inputs have two rows or more: each as long as the first has a variable number of rows.
    ValueError that names module and operation if it cannot be traced so, or has no counterpart in
    ONNX.
    """
    _check_size(module)
    table = translations()
    with torch.no_grad(), _quiet():
        program = _program(module, inputs)
        try:
            made: Any = torch.onnx.export(
                program,
                dynamo=True,
                opset_version=opset,
                input_names=list(names),
                output_names=list(outputs),
                custom_translation_table=table,
                external_data=False,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise _untranslatable(error, program) from error
    return _tidied(made.model_proto)


def _check_size(module: nn.Module) -> None:
    tensors = [*module.parameters(), *module.buffers()]
    size = sum(t.numel() * t.element_size() for t in tensors)
    if size > _PROTOBUF_LIMIT:
        raise ValueError(
            f"an ONNX file holds at most 2 GiB, and the model's weights take {size / 2**30:.1f} "
            "GiB; use a density with fewer numbers (covariance='low-rank', 'tied' or 'diagonal')"
        )


def _program(module: nn.Module, inputs: tuple[Tensor, ...]) -> torch.export.ExportedProgram:
    axis = torch.export.Dim(BATCH)
    rows = next(len(tensor) for tensor in inputs if tensor.ndim)
    shapes = tuple({0: axis} if t.ndim and len(t) == rows else None for t in inputs)
    running: list[str] = []
    try:
        with _tracking(module, running):
            return torch.export.export(module, (inputs,), dynamic_shapes=(shapes,))
    # The tracer passes on any exception of the traced code or its own.
    except Exception as error:
        where = f"in module {running[-1]!r}" if running else "outside of the network's modules"
        raise ValueError(
            f"the model cannot be traced for ONNX {where}: {type(error).__name__}: "
            f"{_first_line(error)}; the network and its features must be made of torch operations "
            "alone, without a branch on values and for any number of rows"
        ) from error


@contextmanager
def _tracking(module: nn.Module, running: list[str]) -> Iterator[None]:
    """Context in which `running` holds the names of the running modules, innermost last.

    A module that raises never returns, so its name stays.
    """
    handles = []
    for name, child in module.named_modules():
        label = _in_network(name)
        if not label:
            continue
        handles += [
            child.register_forward_pre_hook(lambda m, i, label=label: running.append(label)),
            child.register_forward_hook(lambda m, i, o: _leave(running)),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _leave(running: list[str]) -> None:
    running.pop()


def _untranslatable(error: Exception, program: torch.export.ExportedProgram) -> ValueError:
    """The error that names the operation and the module it is in."""
    chain = " ".join(str(e) for e in _causes(error))
    found = re.search(r"call_function\[target=(?:torch\.ops\.)?([\w.]+)\]", chain)
    operation = found.group(1) if found else "an operation"
    where = _module_of(operation, program)
    cause = _first_line(list(_causes(error))[-1])
    return ValueError(
        f"{operation} of the model{where} cannot be written as ONNX: {cause}; replace it in the "
        "network, or deploy with torch.export instead"
    )


def _module_of(operation: str, program: torch.export.ExportedProgram) -> str:
    for node in program.graph.nodes:
        stack = list(node.meta.get("nn_module_stack", {}).values())
        if str(node.target) == operation and stack:
            kind = str(stack[-1][1]).rpartition(".")[2]
            return f" (module {_in_network(stack[-1][0])!r}, a {kind})"
    return ""


def _in_network(path: str) -> str:
    """Path of a module within the user's network, without our wrappers."""
    return re.sub(r"^(model\b\.?)?(network\b\.?|classifier\b\.?|source\b\.?)?", "", path)


def _causes(error: BaseException) -> Iterator[BaseException]:
    following: BaseException | None = error
    while following is not None:
        yield following
        following = following.__cause__ or following.__context__


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextmanager
def _quiet() -> Iterator[None]:
    """Context that hides the exporter's notes on optional packages."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*LeafSpec.*", category=FutureWarning)
            yield
    finally:
        logger.setLevel(before)


def _tidied(proto: Any) -> Any:
    """The graph without traces of the source files it came from, the axis of rows named."""
    graph = proto.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    dims = [dim for value in values for dim in value.type.tensor_type.shape.dim if dim.dim_param]
    rows = re.compile(rf"\b{re.escape(dims[0].dim_param)}\b")
    for dim in dims:
        dim.dim_param = rows.sub(BATCH, dim.dim_param)
    for part in [*graph.node, *graph.value_info, *graph.input, *graph.output, graph, proto]:
        del part.metadata_props[:]
        part.doc_string = ""
    return proto


@dataclass(frozen=True, eq=False)
class Call:
    """Arguments of a network; tensors are the inputs of the graph, other values are fixed.

    `names` are those of the `tensors` among the arguments, in order: the argument, or
    "argument.key" in a nesting. Each tensor has two rows or more.
    """

    arguments: Arguments
    names: list[str]
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, example: Any, function: Callable[..., Any], device: torch.device) -> Call:
        """From a tensor, a tuple of positional or a mapping of keyword arguments of `function`."""
        arguments = as_call(function, move_tensors(example, device))
        args, kwargs = arguments
        named = [*zip(_positional(function, len(args)), args, strict=True), *kwargs.items()]
        found = [pair for name, value in named for pair in _tensors(name, value)]
        if not arguments.rows:
            raise ValueError(
                "example must hold one batch of inputs with at least one row, as the network takes "
                f"it: a tensor, a tuple or a dict of tensors; got {type(example).__name__}"
            )
        tensors = tuple(_two_rows(tensor) if arguments.rows == 1 else tensor for _, tensor in found)
        return cls(arguments, [name for name, _ in found], tensors)

    def filled(self, tensors: tuple[Tensor, ...]) -> Arguments:
        """The arguments with these tensors in place of the example's."""
        following = iter(tensors)
        filled: Arguments = map_tensors(self.arguments, lambda _: next(following))
        return filled


def _positional(function: Callable[..., Any], count: int) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    names = [p.name for p in parameters if p.kind in kinds][:count]
    return names + [f"input_{i}" for i in range(len(names), count)]


def _tensors(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(f"{name}.{key}", item)
    elif isinstance(value, tuple | list):
        for i, item in enumerate(value):
            yield from _tensors(f"{name}.{i}", item)


def _two_rows(tensor: Tensor) -> Tensor:
    # PyTorch's tracer makes an axis of length 1 a constant.
    return torch.cat([tensor, tensor]) if tensor.ndim and len(tensor) == 1 else tensor


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
    proto = trace(wrapped, call.tensors, call.names, wrapped.outputs, opset=opset)
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
        tolerance = _TOLERANCE[right.dtype]
        require_equal(output.name, _numbers(mine), _numbers(right), tolerance, "the network")


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
    network = features.estimator_ if isinstance(features, LayerFeatures) else features
    owners = [part for part in (classifier, network) if part is not None]
    dtype = max((owner.predict_dtype() for owner in owners), key=lambda found: found.itemsize)
    rows = torch.zeros(2, owners[0].n_features_in_, dtype=dtype, device="cpu")
    module = _Rows(classifier, network, features if network is not features else None)
    return trace(module, (rows,), ["X"], module.outputs, opset=opset)


class _Outputs(nn.Module):
    """The outputs of a `DIPModule`, whose names are `outputs`."""

    def __init__(self, model: Any, call: Call) -> None:
        super().__init__()
        self.model = model
        self.call = call
        supported = () if model.spread_ is None else ("strength",)
        self.outputs = ("probabilities", "vacuity", "log_evidence", *supported, "ood")

    def forward(self, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        log_density, logits = self.model.scores_and_logits(self.call.filled(tensors))
        answer = self.model.head(log_density, logits)
        flagged = self.model.head.flags(log_density) < 0
        strength = () if "strength" not in self.outputs else (answer.concentration.sum(dim=1),)
        return answer.mean, answer.vacuity, answer.log_evidence, *strength, flagged


class _Rows(nn.Module):
    """Rows of pixels (n, d) to probabilities and features, each network run once."""

    def __init__(self, classifier: Any, network: Any, layers: LayerFeatures | None) -> None:
        super().__init__()
        self.classifier: Any = None if classifier is None else classifier.module_
        self.source: Any = None if network is None else network.module_
        self.layers = layers
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
    names = list(layers.layers)
    with capture_outputs(network, names, lambda out: pool_rows(out, layers.pool)) as outputs:
        logits = network(X)
    return logits, torch.cat([outputs[name] for name in names], dim=1)
