"""Locks between processes that vanish with the process that holds them, also when it is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows: two runs on one folder are not told apart there
    fcntl = None

__all__ = ["locked", "try_locked"]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`; waits until it is free."""
    descriptor = _opened(path)
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def try_locked(path: Path) -> Iterator[bool]:
    """Hold the lock file `path` if it is free; gives whether it was."""
    descriptor = _opened(path)
    try:
        yield _taken(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    # not inherited (PEP 446): a lock must not outlive the run in a child of it
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)


def _taken(descriptor: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
