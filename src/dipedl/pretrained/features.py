"""Features and logits of a network, in one pass of a batch or batch by batch of a loader."""

from __future__ import annotations

import inspect
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial, reduce
from traceback import walk_tb
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from ..held_out import nearest_of_class
from ..maths.arrays import check_choice, to_numpy
from ..networks.batches import (
    Arguments,
    Batch,
    Unpack,
    as_call,
    batches,
    describe_batch,
    map_tensors,
    takes_arguments,
    tensors,
)
from ..networks.checks import check_class_indices, check_finite_rows
from ..networks.device import memory_errors
from ..networks.layer_features import (
    POOLS,
    capture_outputs,
    copy_rows,
    first_tensor,
    pool_rows,
    shape_of_one,
)

__all__ = []

PENULTIMATE = "penultimate"
_SHOWN = 30


class FeatureSource(nn.Module):
    """One pass of a network: its features (n, p) and its logits (n, k).

    Activations are captured by hooks that stay on their layers for as long as the source lives: a
    hook that comes and goes within a pass does not survive ``torch.compile``. They keep something
    only while a pass of this source is under way in their thread, and the network gets no
    attribute. `features` and `pool` are those of `dipedl.pretrained.DIPModule`; `layer` is the
    place of the penultimate layer among the modules, -1 if it is not known yet, and `shapes` the
    shape of one input's output of each module, once a batch was looked at.
    """

    layer: Tensor

    def __init__(self, network: nn.Module, features: Any, pool: str | None) -> None:
        super().__init__()
        if pool is not None:
            check_choice("pool", pool, POOLS)
        # In a tuple, so that it is registered once, by the owner of the source.
        self._network = (network,)
        self.function: Callable[..., Any] | None = features if callable(features) else None
        self.names: list[str] = [] if callable(features) else _names(network, features)
        is_list = not isinstance(features, str) and not callable(features)
        self.pool = "average" if pool is None and is_list else pool
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.register_buffer("layer", torch.tensor(-1, device="cpu"))
        self._activations = Activations()
        self._handles: list[RemovableHandle] = []
        self._head: str | None = None
        modules = dict(network.named_modules())
        for name in self.names:
            hook = Capture(self._activations, name, self.pool).keep_output
            self._keep(modules[name].register_forward_hook(hook))

    @property
    def is_known(self) -> bool:
        return bool(self.function or self.names or self._head is not None)

    @property
    def layers(self) -> str:
        if self.function is not None:
            return f"the function {getattr(self.function, '__name__', repr(self.function))}"
        if self.names:
            return " and ".join(f"the output of {name!r}" for name in self.names)
        if self._head is None:
            return "the input of the last nn.Linear that runs, known from the first batch on"
        return f"the input of {self._head!r} ({self.network.get_submodule(self._head)})"

    @property
    def call(self) -> Callable[..., Any]:
        """The function that takes the arguments of a pass."""
        network = self.network
        return network.forward if self.function is None else partial(self.function, network)

    @property
    def penultimate(self) -> nn.Linear | None:
        """The linear layer whose input the features are; None if they are something else."""
        head = None if self._head is None else self.network.get_submodule(self._head)
        return head if isinstance(head, nn.Linear) and self.pool is None else None

    @property
    def network(self) -> nn.Module:
        """The network, which is a module of the owner."""
        return self._network[0]

    def failing_layer(self, error: Exception) -> str | None:
        """Return the layer of the network, or the function, that raised an error, in words.

        None is an error of this library, about what came out of a pass.
        """
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        if frames[-1].f_globals["__name__"].partition(".")[0] == __name__.partition(".")[0]:
            return None
        modules = {id(module): (name, module) for name, module in self.network.named_modules()}
        inside = [id(frame.f_locals.get("self")) for frame in frames]
        layers = [modules[number] for number in inside if number in modules]
        if not layers:
            return f"{self.layers} says"
        name, layer = layers[-1]
        kind = type(layer).__name__ if any(layer.children()) else repr(layer)
        return f"its layer {name!r}, {kind}, says" if name else f"the network, {kind}, says"

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a batch once to see the shapes of all layers and to find the penultimate one."""
        if self.function is not None:
            return
        network = self.network
        modules: dict[str, Any] = {name: m for name, m in network.named_modules() if name}
        if isinstance(network, nn.Linear):
            modules = {"": network}
        with capture_outputs(network, list(modules), shape_of_one) as shapes:
            output = network(*args, **kwargs)
        self.shapes = shapes
        silent = [name for name in self.names if name not in self.shapes]
        if silent:
            raise ValueError(
                f"features names {silent}, which gave no tensor in a pass of the network (a nested "
                "one, as inside nn.TransformerEncoder, is none: build it with "
                f"enable_nested_tensor=False); modules that did: {list_shapes(self.shapes)}"
            )
        if self.names or self._head is not None:
            return
        remedy = (
            "name the module whose output the density should see, such as "
            "DIPModule(network, features='...', pool='average'); modules that ran, with shapes: "
            f"{list_shapes(self.shapes)}"
        )
        linears = [name for name in self.shapes if isinstance(modules[name], nn.Linear)]
        if not linears:
            raise ValueError(
                "features='penultimate' is the input of the last nn.Linear that runs, and none ran "
                f"(a convolution as the head, or a scripted network); {remedy}"
            )
        columns, k = modules[linears[-1]].out_features, logits_of(output).shape[1]
        if columns != k:
            raise ValueError(
                f"features='penultimate' found {linears[-1]!r}, the last nn.Linear that ran, but "
                f"it gives {columns} columns and there are {k} logits: it is not the head; {remedy}"
            )
        self._capture_head(linears[-1])

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Features (n, p) and logits (n, k) of a batch, in one pass."""
        network = self.network
        if self.function is not None:
            return self._split_pair(self.function(network, *args, **kwargs))
        activations = self._activations
        tensors: dict[str, Tensor] = {}
        activations.tensors = tensors
        try:
            output = network(*args, **kwargs)
        finally:
            activations.tensors = None
        names = self.names if self.names else [str(self._head)]
        for name in names:
            if name not in tensors:
                raise ValueError(
                    f"features: the layer {name!r} did not run in this pass, or not in this thread "
                    "(DataParallel, a network that was compiled before: wrap the plain network and "
                    "compile the DIPModule), or gave a nested tensor (nn.TransformerEncoder: build "
                    "it with enable_nested_tensor=False)"
                )
        parts = [self._as_rows(name, tensors[name]) for name in names]
        dtype = reduce(torch.promote_types, [part.dtype for part in parts])
        features = parts[0] if len(parts) == 1 else torch.cat([x.to(dtype) for x in parts], dim=1)
        return features, logits_of(output)

    def _as_rows(self, name: str, values: Tensor) -> Tensor:
        if values.ndim == 2:
            return values
        raise ValueError(
            f"features of {name!r} must have shape (n, p), got {tuple(values.shape)}; say how to "
            "make one row an input: pool='average' or pool='max' (over the pixels of a map, the "
            "tokens of a sequence), or give features=lambda network, *inputs: (features, logits)"
        )

    def _split_pair(self, pair: Any) -> tuple[Tensor, Tensor]:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Tensor):
            raise TypeError(
                "features must give a tuple (features, logits) when it is a function, got "
                f"{type(pair).__name__}"
            )
        return self._as_rows("the function", pool_rows(pair[0], self.pool)), logits_of(pair[1])

    def _capture_head(self, name: str) -> None:
        modules = dict(self.network.named_modules())
        self._head = name
        self.layer.fill_(list(modules).index(name))
        hook = Capture(self._activations, name, self.pool).keep_input
        self._keep(modules[name].register_forward_pre_hook(hook, with_kwargs=True))

    def _keep(self, handle: RemovableHandle) -> None:
        self._handles.append(handle)
        weakref.finalize(self, handle.remove).atexit = False

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        place = int(self.layer)
        if place < 0 or self.names or self.function is not None:
            return
        names = [name for name, _ in self.network.named_modules()]
        if place >= len(names):
            raise ValueError(
                f"the penultimate layer is module {place} in the state, and the network has "
                f"{len(names)}: it is another network"
            )
        if names[place] != self._head:
            for handle in self._handles:
                handle.remove()
            self._handles.clear()
            self._capture_head(names[place])


def logits_of(output: Any) -> Tensor:
    """Logits (n, k) in what a network gives, k >= 2; TypeError or ValueError if there are none."""
    logits = output
    if isinstance(output, Mapping):
        logits = output.get("logits")
    elif hasattr(output, "logits"):
        logits = output.logits
    elif isinstance(output, tuple | list) and output:
        logits = output[0]
    if not isinstance(logits, Tensor) or not logits.is_floating_point():
        raise TypeError(
            "network must give logits: a float tensor, an object or a dict with 'logits', or a "
            f"tuple that begins with them, got {type(output).__name__}; wrap it in a module that "
            "does, or give features=lambda network, *inputs: (features, logits)"
        )
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise ValueError(
            f"logits must have shape (n, k) with k >= 2, got {tuple(logits.shape)}; for one "
            "sigmoid output x wrap the network so that it gives [0, x], for several outputs an "
            "input pick one through features=lambda network, *inputs: (features, logits)"
        )
    return logits


def list_shapes(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Return the last modules that ran, with the shapes of one input's output, as text."""
    items = list(shapes.items())
    dropped = len(items) - _SHOWN
    head = [f"({dropped} before)"] if dropped > 0 else []
    texts = [f"{name or 'itself'} {'x'.join(map(str, s))}" for name, s in items[-_SHOWN:]]
    return ", ".join(head + texts)


def _names(network: nn.Module, features: Any) -> list[str]:
    """Names of the layers asked for, checked; none for the penultimate one."""
    if isinstance(features, str) and features == PENULTIMATE:
        return []
    names = [features] if isinstance(features, str) else features
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            "features must be 'penultimate', the name of a module, a list of names or a function "
            f"(network, *inputs) -> (features, logits), got {features!r}"
        )
    known = [name for name, _ in network.named_modules() if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        near = [match for name in unknown for match in get_close_matches(name, known, 3)]
        hint = f"did you mean {near}?" if near else f"it has {known[-_SHOWN:]}"
        raise ValueError(f"features must name modules of the network, got {features!r}; {hint}")
    return list(dict.fromkeys(names))


class Activations(threading.local):
    """Tensors of the pass that is under way in this thread, by layer; None between passes."""

    tensors: dict[str, Tensor] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy starts empty.
        return Activations, ()


class Capture:
    """Hooks that keep what a layer takes or gives while a pass of their source is under way."""

    def __init__(self, activations: Activations, name: str, pool: str | None) -> None:
        self.activations, self.name, self.pool = activations, name, pool

    def keep_input(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        tensors = self.activations.tensors
        if tensors is not None:
            tensors[self.name] = pool_rows(args[0] if args else kwargs["input"], self.pool)

    def keep_output(self, module: nn.Module, args: Any, output: Any) -> None:
        tensors, tensor = self.activations.tensors, first_tensor(output)
        if tensors is not None and tensor is not None:
            tensors[self.name] = copy_rows(tensor, self.pool)


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (m, p), logits (m, k) and labels (m,) of some rows.

    `between` are logits (q, k) half-way between each of the first q rows and another of its class.
    """

    features: Tensor
    logits: Tensor
    labels: Tensor
    between: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, where: np.ndarray) -> Rows:
        """Return the rows where a mask (m,) is true."""
        mask = torch.from_numpy(where).to(self.labels.device)
        return Rows(self.features[mask], self.logits[mask], self.labels[mask])


def read_rows(
    source: FeatureSource,
    unpack: Unpack | None,
    device: torch.device,
    loader: Any,
    name: str,
    most_between: int = 0,
) -> Iterator[Rows]:
    """Yield features, logits and labels of each batch of a loader, checked.

    Of the first `most_between` rows also the logits half-way to another row of the batch.
    """
    count = 0
    for batch in batches(loader, unpack, device, name):
        inputs = as_call(source.call, batch.inputs)
        if inputs.are_empty and not len(batch.labels):
            continue
        with torch.inference_mode(), network_errors(inputs, source, batch):
            if not source.shapes:
                source.look(*inputs)
            features, logits = source(*inputs.args, **inputs.kwargs)
        rows = Rows(features, logits, batch.labels.to(features.device))
        _check_rows(rows, batch.where)
        if len(rows):
            if count < most_between:
                between = _look_between(source, inputs, rows, most_between - count)
                rows = replace(rows, between=between)
            count += len(rows)
            yield rows
    if not count:
        raise ValueError(
            f"{name} gave no rows; pass a loader with at least one batch (a generator that was "
            "read before is empty: make it anew, or pass a DataLoader)"
        )


def _look_between(source: FeatureSource, inputs: Arguments, rows: Rows, most: int) -> Tensor | None:
    """Logits half-way from at most so many rows to the nearest of their class in the batch.

    None where there is no half-way: of inputs other than rows of numbers.
    """
    parts = list(tensors(inputs))
    if not all(part.is_floating_point() and part.shape[:1] == (len(rows),) for part in parts):
        return None
    near = torch.from_numpy(nearest_of_class(to_numpy(rows.features), rows.labels.cpu().numpy()))

    def middle(part: Tensor) -> Tensor:
        return (part[:most] + part[near[:most].to(part.device)]) / 2

    args, kwargs = map_tensors(inputs, middle)
    try:
        with torch.inference_mode():
            logits: Tensor = source(*args, **kwargs)[1]
            return logits
    except Exception:
        # A network may refuse inputs that are none of the user's.
        return None


@contextmanager
def network_errors(
    inputs: Arguments, source: FeatureSource, batch: Batch | None = None
) -> Iterator[None]:
    """Say in errors of a pass what came: `inputs`, or those of a `batch` of a loader, and a remedy.

    These are: out of memory, names that the network does not take, arrays, tensors of another
    dtype, shape or device, and features or logits that do not fit.
    """
    smaller = "try batches of {0} (batch_size={0} of the DataLoader)"
    alone = "the network needs a larger device, half precision or torch.autocast"
    try:
        with memory_errors(inputs.rows, smaller, alone):
            yield
    except (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as e:
        raise _refusal(e, inputs, source, batch) from e


#: In errors of PyTorch about dtypes.
_DTYPE = re.compile(r"dtype|(input|scalar) types?\b|not implemented for", re.IGNORECASE)


def _refusal(
    error: Exception, inputs: Arguments, source: FeatureSource, batch: Batch | None
) -> Exception:
    """Return the error of a pass that failed, with what came and what to pass instead."""
    args, kwargs = inputs
    parts = [*map(describe_batch, args), *(f"{k}={describe_batch(v)}" for k, v in kwargs.items())]
    came, where = " and ".join(parts) or "nothing", "X" if batch is None else batch.where
    layer = source.failing_layer(error)
    if layer is None:
        return type(error)(f"{error}; {where} holds {came}")
    wrong = None if isinstance(error, RuntimeError) else _name_error(inputs, source, batch)
    if wrong is not None:
        return wrong
    values = list(tensors(inputs))
    if not values or any(isinstance(value, np.ndarray) for value in (*args, *kwargs.values())):
        return TypeError(
            f"{where} must hold torch tensors as the network takes them, got {came}; convert it, "
            "such as torch.as_tensor(X, dtype=torch.float32)"
        )
    fault = f"got {came}: {layer} {str(error).partition(chr(10))[0]!r}"
    if _DTYPE.search(str(error)):
        weights = next(source.network.parameters(), torch.empty(0)).dtype
        integers = all(value.dtype == weights for value in values)
        remedy = "integers, X.long()" if integers else "X.to(next(network.parameters()).dtype)"
        return TypeError(
            f"{where} must have the dtype that the network takes, {fault}; give {remedy}"
        )
    return ValueError(
        f"{where} must be a batch that the network takes, {fault}; give one row an input, of "
        "shape, values and device as in its training (a single input as X[None])"
    )


def _name_error(inputs: Arguments, source: FeatureSource, batch: Batch | None) -> TypeError | None:
    """The error of names that a network does not take; None if it takes all."""
    args, kwargs = inputs
    alone = args[0] if len(args) == 1 and isinstance(args[0], Mapping) else {}
    names = list(kwargs or alone)
    unknown = [name for name in names if not takes_arguments(source.call, **{name: None})]
    if not unknown:
        return None
    parameters = inspect.signature(source.call).parameters
    takes, needed = list(parameters), [p for p in parameters.values() if p.default is p.empty]
    fault = f"the network takes no argument {', '.join(map(repr, unknown))}, only {takes}"
    known = [f"{name!r}: batch[{name!r}]" for name in names if name not in unknown]
    values = [f"batch[{name!r}]" for name in names[: max(len(needed), 1)]]
    remedy = values[0] if len(values) == 1 else f"({', '.join(values)})"
    remedy = f"{{{', '.join(known)}}}" if known else remedy
    if batch is None:
        return TypeError(f"the batch has the keys {names}, and {fault}; give {remedy}")
    labels = next((f"batch[{key!r}]" for key in batch.keys if key not in names), "labels")
    return TypeError(
        f"{batch.where} has the keys {list(batch.keys or names)}, and {fault}; say which are its "
        f"inputs and labels: unpack=lambda batch: ({remedy}, {labels})"
    )


def _check_rows(rows: Rows, where: str) -> None:
    n, k = rows.logits.shape
    if not len(rows.features) == n == len(rows.labels):
        raise ValueError(
            f"{where}: {len(rows.features)} rows of features, {n} of logits and "
            f"{len(rows.labels)} labels; there must be one of each an input"
        )
    for name, values in (("features", rows.features), ("logits", rows.logits)):
        check_finite_rows(f"{name} of {where}", values)
    check_class_indices(f"labels of {where}", rows.labels, k)
