"""An example batch as the named inputs of a graph, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ....networks.batches import as_call, move_tensors


@dataclass(frozen=True, eq=False)
class Call:
    """Arguments of a network; tensors are the inputs of the graph, other values are fixed.

    `names` are those of the `tensors` among the arguments, in order: the argument, or
    "argument.key" in a nesting. Each tensor has two rows or more.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: list[str]
    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, example: Any, function: Callable[..., Any], device: torch.device) -> Call:
        """From a tensor, a tuple of positional or a mapping of keyword arguments of `function`."""
        args, kwargs = as_call(function, move_tensors(example, device))
        named = [*zip(_positional(function, len(args)), args, strict=True), *kwargs.items()]
        found = [pair for name, value in named for pair in _tensors(name, value)]
        rows = next((len(tensor) for _, tensor in found if tensor.ndim), 0)
        if not rows:
            raise ValueError(
                "example must hold one batch of inputs with at least one row, as the network takes "
                f"it: a tensor, a tuple or a dict of tensors; got {type(example).__name__}"
            )
        tensors = tuple(_two_rows(tensor) if rows == 1 else tensor for _, tensor in found)
        return cls(args, kwargs, [name for name, _ in found], tensors)

    def filled(self, tensors: tuple[Tensor, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with these tensors in place of the example's."""
        following = iter(tensors)
        args = tuple(_filled(value, following) for value in self.args)
        return args, {key: _filled(value, following) for key, value in self.kwargs.items()}


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


def _filled(value: Any, tensors: Iterator[Tensor]) -> Any:
    if isinstance(value, Tensor):
        return next(tensors)
    if isinstance(value, Mapping):
        return {key: _filled(item, tensors) for key, item in value.items()}
    if isinstance(value, tuple | list):
        items = [_filled(item, tensors) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _two_rows(tensor: Tensor) -> Tensor:
    # PyTorch's tracer makes an axis of length 1 a constant.
    return torch.cat([tensor, tensor]) if tensor.ndim and len(tensor) == 1 else tensor
