"""Whether this machine has the devices that a suite asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..spec.plan import MethodPart, trained_parts

__all__ = ["check_devices"]


def check_devices(methods: Iterable[MethodPart]) -> None:
    """Where no method can have the device it asks for, say so once and before anything begins."""
    missing = [_missing_device(method) for method in methods]
    if missing and all(missing):
        raise ValueError(missing[0])


def _missing_device(method: MethodPart) -> str:
    """Why a part of a method cannot have its device, or nothing."""
    asked = [(part, name) for part in trained_parts(method) for name in _devices(part.table)]
    for part, name in asked:
        from ...nn.training._device import resolve_device

        try:
            resolve_device(name)
        except ValueError as error:
            return f"{part.where}: {error}"
    return ""


def _devices(value: Any) -> Iterator[str]:
    """Every device that a table asks for by name."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "device" and item not in ("auto", "cpu"):
                yield str(item)
            else:
                yield from _devices(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _devices(item)
