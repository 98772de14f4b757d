"""A torch module as an ONNX graph with named inputs and outputs and any number of rows."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ....plugins import explain_missing
from .ops import translations

#: Name of the axis of the rows in the graph.
BATCH = "batch"
_PROTOBUF_LIMIT = 2**31 - 1


def traced(
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
    table = _translations()
    with torch.no_grad(), _quiet():
        program = _program(module, inputs)
        try:
            made = torch.onnx.export(
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
    if made is None:
        raise ValueError(f"PyTorch {torch.__version__} gave no ONNX graph of the model")
    return _tidied(made.model_proto)


def _translations() -> dict[Any, Any]:
    try:
        import onnx  # noqa: F401

        return translations()
    except ImportError as error:
        raise explain_missing(error, "ONNX export of a torch model") from error


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
