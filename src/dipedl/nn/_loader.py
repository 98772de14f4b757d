"""Batches of a loader: arguments of the network, labels, device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..maths.masks import unmasked

_LABELS = ("labels", "label", "y", "target", "targets")
_UNPACK = (
    "unpack=lambda batch: (inputs, labels), where inputs is a tensor, a tuple of positional or a "
    "dict of keyword arguments of the network"
)
#: Maps a batch of the loader to the inputs of the network and the labels.
Unpack = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Batch:
    """One batch on the device of the network: arguments, class indices (b,), number from 0."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    labels: Tensor
    number: int


def batches(loader: Any, unpack: Unpack | None, device: torch.device, name: str) -> Iterator[Batch]:
    """Every batch of a loader; `name` is the argument named in errors."""
    if not isinstance(loader, Iterable) or isinstance(loader, Tensor | Mapping | str):
        raise TypeError(
            f"{name} must yield batches (inputs, labels), such as a torch DataLoader, got "
            f"{type(loader).__name__}; for one batch pass [(inputs, labels)]"
        )
    for number, raw in enumerate(loader):
        inputs, labels = _unpacked(raw, unpack, f"batch {number} of {name}")
        args, kwargs = as_call(moved(inputs, device))
        yield Batch(args, kwargs, _class_indices(labels, number, name).to(device), number)


def check_rereadable(loader: Any, name: str) -> None:
    """Raise ValueError if a loader can be read only once."""
    if isinstance(loader, Iterator):
        raise ValueError(
            f"{name} is read twice (once for the density, once for its scores), and "
            f"{type(loader).__name__} can be read only once; pass a DataLoader or a list of batches"
        )


def as_call(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments: a mapping is the latter, a tuple or list the former."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    if isinstance(inputs, tuple | list):
        return tuple(inputs), {}
    return (inputs,), {}


def moved(value: Any, device: torch.device) -> Any:
    """The same nesting with every tensor on `device`; memory formats stay."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {key: moved(item, device) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [moved(item, device) for item in value]
        # A named tuple is built from its fields one by one.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def device_of(network: nn.Module) -> torch.device:
    """The device of the first parameter or buffer; the CPU for a network that has none."""
    for tensor in (*network.parameters(), *network.buffers()):
        return tensor.device
    return torch.device("cpu")


def rows_of(args: Iterable[Any], kwargs: Mapping[str, Any]) -> int:
    """Rows of the first tensor with rows among the arguments of a network; 0 if there is none."""
    todo = [*args, *kwargs.values()]
    while todo:
        value = todo.pop(0)
        if isinstance(value, Tensor) and value.ndim:
            return len(value)
        if isinstance(value, Mapping):
            todo.extend(value.values())
        elif isinstance(value, tuple | list):
            todo.extend(value)
    return 0


def _unpacked(raw: Any, unpack: Unpack | None, where: str) -> tuple[Any, Any]:
    if unpack is not None:
        pair = unpack(raw)
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"unpack must give a tuple (inputs, labels), got {_shown(pair)} for {where}"
            )
        return pair
    if isinstance(raw, Mapping):
        return _labelled_mapping(raw, where)
    if isinstance(raw, tuple | list) and len(raw) == 2:
        return raw[0], raw[1]
    if isinstance(raw, Tensor) or (isinstance(raw, tuple | list) and len(raw) < 2):
        raise _no_labels(raw, where)
    raise TypeError(
        f"{where} must be (inputs, labels) or a dict with labels, got {_shown(raw)}; say how to "
        f"take it apart: {_UNPACK}"
    )


def _labelled_mapping(raw: Mapping[str, Any], where: str) -> tuple[dict[str, Any], Any]:
    found = [key for key in _LABELS if key in raw]
    if not found:
        raise _no_labels(raw, where)
    if len(found) > 1:
        raise ValueError(f"{where} has several labels, {found}; say which: {_UNPACK}")
    return {key: value for key, value in raw.items() if key != found[0]}, raw[found[0]]


def _no_labels(raw: Any, where: str) -> ValueError:
    return ValueError(
        f"{where} holds no labels, and a density per class needs them: got {_shown(raw)}; yield "
        f"(inputs, labels), or a dict with one of {list(_LABELS)}, or give {_UNPACK}"
    )


def _class_indices(labels: Any, number: int, name: str) -> Tensor:
    """Labels as int64 (b,), on their device."""
    if labels is None:
        raise _no_labels(labels, f"batch {number} of {name}")
    try:
        known = unmasked("labels", labels)
        found = known if isinstance(known, Tensor) else torch.as_tensor(known, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"labels must be class indices 0..k-1 (int), got {_shown(labels)} in batch {number} "
            f"of {name}; number the classes, and give their names as DIPModule(..., classes=...)"
        ) from error
    integer = not (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool)
    if found.ndim != 1 or not integer:
        raise ValueError(
            f"labels must be class indices, int of shape (b,), got {found.dtype} of shape "
            f"{tuple(found.shape)} in batch {number} of {name}; for one-hot labels give their "
            "argmax(1) through unpack"
        )
    return found.long()


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {list(value)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {len(value)}"
    return type(value).__name__
