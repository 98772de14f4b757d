"""Hooks that capture what a layer takes or gives, in the thread of the pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

POOLS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "average": lambda x, dim: x.mean(dim),
    "max": lambda x, dim: x.amax(dim),
}


class _Captured(threading.local):
    """Tensors of the pass that is under way in this thread; None between passes."""

    tensors: dict[str, Tensor] | None = None


class ActivationCapture:
    """Shared by the hooks of one source; a copy starts empty."""

    def __init__(self) -> None:
        self.captured = _Captured()

    def __reduce__(self) -> tuple[Any, ...]:
        return ActivationCapture, ()


class _Capture:
    def __init__(self, capture: ActivationCapture, name: str, pool: str | None) -> None:
        self.capture, self.name, self.pool = capture, name, pool


class CaptureInput(_Capture):
    """Forward pre-hook that keeps the first argument of its module."""

    def __call__(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        tensors = self.capture.captured.tensors
        if tensors is not None:
            tensors[self.name] = pooled(args[0] if args else kwargs["input"], self.pool)


class CaptureOutput(_Capture):
    """Forward hook that keeps what its module gives."""

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        tensors = self.capture.captured.tensors
        found = first_tensor(output)
        if tensors is not None and found is not None:
            kept = pooled(found, self.pool)
            # The next layer may work in place (ReLU(inplace=True)).
            tensors[self.name] = kept.clone() if kept is found else kept


def first_tensor(output: Any) -> Tensor | None:
    """A tensor, or the first of a tuple or mapping; None if that is none, or a ragged one."""
    if isinstance(output, Mapping):
        output = next(iter(output.values()), None)
    elif isinstance(output, tuple | list) and output:
        output = output[0]
    # nn.TransformerEncoder packs padded rows into a nested tensor, which has no shape.
    return output if isinstance(output, Tensor) and not output.is_nested else None


def pooled(found: Tensor, pool: str | None) -> Tensor:
    if pool is None or found.ndim < 3:
        return found
    # (n, tokens, channels), or (n, channels, height, width) and deeper.
    return POOLS[pool](found, 1) if found.ndim == 3 else POOLS[pool](found.flatten(2), 2)
