"""Batches of a loader: arguments of the network, labels, device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..maths.arrays import drop_mask

__all__ = []

_LABELS = ("labels", "label", "y", "target", "targets")
_UNPACK = (
    "unpack=lambda batch: (inputs, labels), where inputs is a tensor, a tuple of positional or a "
    "dict of keyword arguments of the network"
)
#: Maps a batch of the loader to the inputs of the network and the labels.
Unpack = Callable[[Any], tuple[Any, Any]]


class Arguments(NamedTuple):
    """Positional and keyword arguments of a network: one batch."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def are_empty(self) -> bool:
        """True if they hold tensors, and none with a row."""
        rows = [len(tensor) for tensor in tensors(self) if tensor.ndim]
        return bool(rows) and not any(rows)

    @property
    def rows(self) -> int:
        """Rows of the first tensor that has a dimension; 0 if there is none."""
        return next((len(tensor) for tensor in tensors(self) if tensor.ndim), 0)


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch on the device of the network: inputs and class indices (b,).

    `where` is its place in words; `keys` are those of the mapping that it came as, if any.
    """

    inputs: Any
    labels: Tensor
    where: str
    keys: tuple[str, ...]


def batches(loader: Any, unpack: Unpack | None, device: torch.device, name: str) -> Iterator[Batch]:
    """Every batch of a loader; `name` is the argument named in errors."""
    if not isinstance(loader, Iterable) or isinstance(loader, Tensor | Mapping | str):
        raise TypeError(
            f"{name} must yield batches (inputs, labels), such as a torch DataLoader, got "
            f"{type(loader).__name__}; for one batch pass [(inputs, labels)]"
        )
    for number, raw in enumerate(loader):
        where = f"batch {number} of {name}"
        inputs, labels = _unpack_batch(raw, unpack, where)
        keys = tuple(raw) if isinstance(raw, Mapping) and unpack is None else ()
        labels = class_indices(labels, where).to(device)
        yield Batch(move_tensors(inputs, device), labels, where, keys)


def as_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Arguments:
    """Arguments of `function`, the pass of a network, from one batch, or as they are.

    One mapping with names that it knows is its keyword arguments, and one tuple or list that is
    not too long its positional ones; any other is one argument.
    """
    if len(args) != 1 or kwargs:
        return Arguments(args, kwargs)
    (batch,) = args
    if isinstance(batch, Arguments):
        return batch
    if isinstance(batch, Mapping) and any(
        takes_arguments(function, **{key: None}) for key in batch
    ):
        return Arguments((), dict(batch))
    if isinstance(batch, tuple | list) and takes_arguments(function, *batch):
        return Arguments(tuple(batch), {})
    return Arguments(args, {})


def takes_arguments(function: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
    """Return True if a function takes these arguments, among others, or if that is unknown."""
    try:
        inspect.signature(function).bind_partial(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def move_tensors(value: Any, device: torch.device) -> Any:
    """Return the nesting with every tensor on `device`; memory formats stay."""
    return map_tensors(value, lambda tensor: tensor.to(device, non_blocking=True))


def map_tensors(value: Any, function: Callable[[Tensor], Tensor]) -> Any:
    """Return the nesting with a function of every tensor."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, Mapping):
        return {key: map_tensors(item, function) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [map_tensors(item, function) for item in value]
        # A named tuple is built from its fields one by one.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def device_of(network: nn.Module) -> torch.device:
    """The device of the first parameter or buffer; the CPU for a network that has none."""
    for tensor in (*network.parameters(), *network.buffers()):
        return tensor.device
    return torch.device("cpu")


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a nesting of tuples, lists and mappings."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)


def _unpack_batch(raw: Any, unpack: Unpack | None, where: str) -> tuple[Any, Any]:
    if unpack is not None:
        pair = unpack(raw)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"unpack must give a tuple (inputs, labels), got {describe_batch(pair)} for {where}"
            )
        return pair
    if isinstance(raw, Mapping):
        return _split_labels(raw, where)
    if isinstance(raw, tuple | list) and len(raw) == 2:
        return raw[0], raw[1]
    if isinstance(raw, Tensor) or (isinstance(raw, tuple | list) and len(raw) < 2):
        raise _missing_labels(raw, where)
    raise TypeError(
        f"{where} must be (inputs, labels) or a dict with labels, got {describe_batch(raw)}; say "
        f"how to take it apart: {_UNPACK}"
    )


def _split_labels(raw: Mapping[str, Any], where: str) -> tuple[dict[str, Any], Any]:
    keys = [key for key in _LABELS if key in raw]
    if not keys:
        raise _missing_labels(raw, where)
    if len(keys) > 1:
        raise ValueError(f"{where} has several labels, {keys}; say which: {_UNPACK}")
    return {key: value for key, value in raw.items() if key != keys[0]}, raw[keys[0]]


def _missing_labels(raw: Any, where: str) -> ValueError:
    return ValueError(
        f"{where} holds no labels, and a density per class needs them: got {describe_batch(raw)}; "
        f"yield (inputs, labels), or a dict with one of {list(_LABELS)}, or give {_UNPACK}"
    )


def class_indices(labels: Any, where: str) -> Tensor:
    """Labels as int64 (b,), on their device."""
    if labels is None:
        raise _missing_labels(labels, where)
    try:
        known = drop_mask("labels", labels)
        indices = known if isinstance(known, Tensor) else torch.as_tensor(known, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"labels must be class indices 0..k-1 (int), got {describe_batch(labels)} in {where}; "
            "number the classes, and give their names as DIPModule(..., classes=...)"
        ) from error
    integer = not (
        indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool
    )
    # An empty list becomes a tensor of floats.
    integer = integer or not indices.numel()
    if indices.ndim != 1 or not integer:
        raise ValueError(
            f"labels must be class indices, int of shape (b,), got {indices.dtype} of shape "
            f"{tuple(indices.shape)} in {where}; for one-hot labels give their argmax(1) through "
            "unpack"
        )
    return indices.long()


def describe_batch(value: Any) -> str:
    """Return type, shape and dtype of a batch, or of a part of it, in words."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)} and {value.dtype}"
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {list(value)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__
