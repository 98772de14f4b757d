"""Whether this machine has the devices that a suite asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .work import Work

__all__ = ["check_devices"]


def check_devices(todo: Iterable[Work]) -> None:
    """Where nothing can have the device it asks for, say so once and before anything begins."""
    missing = [_missing_device(work) for work in todo]
    if missing and all(missing):
        raise ValueError(missing[0])


def _missing_device(work: Work) -> str:
    """Why a step cannot have its device, or nothing."""
    wanted = [(step.unit, name) for step in work.steps for name in _devices(step.unit.table)]
    for unit, name in wanted:
        from ...nn.training._device import resolve_device

        try:
            resolve_device(name)
        except ValueError as error:
            return f"{unit.where}: {error}"
    return ""


def _devices(value: Any) -> Iterator[str]:
    """Every device that a table names."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "device" and item not in ("auto", "cpu"):
                yield str(item)
            else:
                yield from _devices(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _devices(item)
